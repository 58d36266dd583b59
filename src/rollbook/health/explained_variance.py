"""A value function that predicts no better than nothing."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.protocols import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from rollbook.ground.columns import Column

__all__ = ["ExplainedVariance"]


class ExplainedVariance(KeyedRule):
    """A value function whose explained variance stays at or below 0: worse than predicting one number for all.

    "warn" when `rows` updates in a row are at or below 0, "fail" when they are below -0.5, over `steps` environment
    steps at least: of the few steps of one small update the number says nothing. What is NaN (no variance to explain)
    does not count.

    Args:
      rows: how many updates in a row.
      steps: over how many environment steps, where that clock is known.
      skip: so many first updates are not judged.
      keys: further keys to look at.
    """

    name = "explained_variance"
    source = "Stable-Baselines3's documentation (0: as good as zero); Schulman (negative: over-fit or noisy)"
    meanings = frozenset({"update/explained_variance"})

    def __init__(self, rows: int = 10, steps: int = 10_000, skip: int = 20, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 1 or skip < 0 or steps < 0:
            raise BadInput(f"rule 'explained_variance': rows={rows!r} must be at least 1, skip and steps not negative")
        self._rows, self._steps, self._skip = rows, steps, skip

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a key that is looked at."""
        memory = self.memory.setdefault(key, {"begun": {}, "said": []})
        last, values = Last(memory, self._rows), column.values
        places: Sequence[int] = range(len(values))
        total, lowest = sum(values), min(values)
        if total != total:
            places = [i for i in places if values[i] == values[i]]
            lowest = min((values[i] for i in places), default=1.0)
        if lowest > 0 and places:
            memory["begun"], memory["said"] = {}, []
        else:
            for n in range(max(0, self._skip - last.seen), len(places)):
                i = places[n]
                value = values[i]
                if value > 0 and not memory["begun"] and not memory["said"]:
                    continue
                failing = self._stays(memory, "-0.5", value < -0.5, column, i)
                if self._stays(memory, "0", value <= 0, column, i) or failing:
                    yield self._alert(key, failing, last.up_to(column, places, n + 1))
        last.take_all(column, places)

    def _alert(self, key: str, failing: bool, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        return where["time"], Alert(
            self.name,
            "fail" if failing else "warn",
            f"{key} has been {'below -0.5' if failing else 'at or below 0'} in {self._rows} updates in a row, now "
            f"{values[-1]:.3g}{place(where['clocks'])}: the value function predicts worse than a constant",
            last.evidence(limit=-0.5 if failing else 0.0),
            self.source,
            key,
            where["clocks"],
        )

    def _stays(self, memory: dict[str, Any], limit: str, is_low: bool, column: Column, i: int) -> bool:
        """Whether a value has just now been that low for long enough."""
        begun, said = memory["begun"], memory["said"]
        if not is_low:
            if limit in begun:
                del begun[limit]
            if limit in said:
                said.remove(limit)
            return False
        stretch = begun.get(limit)
        if stretch is None:
            stretch = begun[limit] = [column.where(i)["clocks"], 0]
        stretch[1] += 1
        if stretch[1] < self._rows or limit in said:
            return False
        clocks = stretch[0]
        if "env_step" in clocks and column.where(i)["clocks"].get("env_step", 0) - clocks["env_step"] < self._steps:
            return False
        said.append(limit)
        return True
