"""Settings with which no training can work."""

from __future__ import annotations

from rollbook.health._config import plain
from rollbook.health._keyed import meaning
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.schema.columns import Columns

_MOST_LEVELS = 8
_MYOPIC = "no reward but the next one counts, in episodes of several steps"


class ImpossibleSettings:
    """A configuration with a discount above 1 or of 0, no positive learning rate, or a negative weight of the entropy.

    "warn", with the first rows; for a discount of 0 once an episode had several steps. Only plain numbers are judged. A
    name with another meaning in your program can be left out.

    Args:
      ignore: names of settings that are not checked.
    """

    name = "settings"
    source = "a discounted sum of rewards is bounded for a discount up to 1; the rest by definition"
    tables = frozenset({"metrics", "episodes"})

    def __init__(self, ignore: Iterable[str] = ()) -> None:
        self._ignore = {ignore} if isinstance(ignore, str) else set(ignore)
        self._found: list[tuple[str, float, str]] = []
        self._gammas: list[tuple[str, float, str]] = []
        self._reported = self._reported_gamma = False

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self._found = [found for found in _odd(run.config, "", 0) if found[0].rpartition(".")[2] not in self._ignore]
        self._gammas = [found for found in self._found if found[1] == 0 and found[2] == _MYOPIC]
        self._found = [found for found in self._found if found not in self._gammas]
        self._reported = self._reported_gamma = False

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {"said": self._reported, "gamma": self._reported_gamma}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._reported, self._reported_gamma = bool(state["said"]), bool(state.get("gamma"))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        if self._gammas and not self._reported_gamma and self._has_long_episodes(columns):
            self._reported_gamma = True
            return [*self._alerts_of(self._found if not self._reported else ()), *self._alerts_of(self._gammas)]
        if self._reported or not self._found or not len(columns):
            return ()
        return self._alerts_of(self._found)

    def _has_long_episodes(self, columns: Columns) -> bool:
        if "length" in columns.keys("episodes") and max(columns.column("length", "episodes").values) > 1:
            return True
        lengths = (key for key in columns.keys("metrics") if meaning(key) == "train/length")
        return any(max(columns.column(key).values) > 1 for key in lengths)

    def _alerts_of(self, found: Iterable[tuple[str, float, str]]) -> list[Alert]:
        self._reported = True
        return [
            Alert(
                self.name,
                "warn",
                f"the configuration has {path} = {value:g}: {words}",
                {"setting": path, "value": value},
                self.source,
                path,
            )
            for path, value, words in found
        ]


def _odd(config: Any, prefix: str, level: int) -> Iterator[tuple[str, float, str]]:
    """Each impossible setting: its path, its value, and what is wrong."""
    if not hasattr(config, "items") or level > _MOST_LEVELS:
        return
    for name, value in config.items():
        path = f"{prefix}{name}"
        number = plain(value)
        if number is not None:
            words = _judged(str(name).lower(), number)
            if words:
                yield path, number, words
        else:
            yield from _odd(value, f"{path}.", level + 1)


def _judged(name: str, value: float) -> str:
    if name in ("gamma", "discount", "discount_factor") and value > 1:
        return "with a discount above 1 values grow without bound"
    if name in ("gamma", "discount", "discount_factor") and value == 0:
        return _MYOPIC
    if name in ("learning_rate", "lr") and value <= 0:
        return "nothing is learned" if value == 0 else "each step goes the wrong way"
    # `entropy_coeff` is left out: RLlib refuses a negative one, which before 0.7 was its bonus, and with verl one
    # minimises the entropy on purpose.
    if name in ("ent_coef", "entropy_coef", "entropy_coefficient") and value < 0:
        return "exploration is punished"
    return ""
