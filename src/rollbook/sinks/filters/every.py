"""Every: let through one row per interval of time, steps or rows."""

from __future__ import annotations

from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.schema.records import Row
from rollbook.sinks.filters._base import Filter, with_values
from rollbook.sinks.filters._rows import row_from_json, row_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal

    from rollbook.protocols import Sink

_PER = ("keyset", "key", "all")


class Every(Filter):
    """Lets the first row of each interval pass. The last held-back one follows at the final mark or at `close`.

    Time is the rows' own, so replaying a run thins it in the same way. Rows that do not know the clock of `steps`, rows
    that hold text (a note is reported once) and marks always pass.

    Args:
      to: the sink behind.
      seconds: an interval lasts this long, from the row that began it.
      steps: (clock, n): intervals begin at the multiples of n of that clock.
      rows: an interval is this many rows.
      per: what has separate intervals. "keyset": rows with the same keys, so that frequent rows do not suppress rare
        ones. "key": each key, so that a part of a row may pass. "all": everything together.
    Raises:
      BadInput: not exactly one of `seconds`, `steps` and `rows`, or an interval that is not above 0.
      UnknownOption: `per` has another value.
    """

    name = "every"

    def __init__(
        self,
        to: Sink,
        *,
        seconds: float | None = None,
        steps: tuple[str, int] | None = None,
        rows: int | None = None,
        per: Literal["keyset", "key", "all"] = "keyset",
    ) -> None:
        given = [name for name, value in (("seconds", seconds), ("steps", steps), ("rows", rows)) if value is not None]
        if len(given) != 1:
            raise BadInput(
                f"Every takes one of seconds=, steps= and rows=, and was given {' and '.join(given) or 'none'}. "
                "To ask for two of them, put one Every in front of another."
            )
        if per not in _PER:
            raise UnknownOption(f"Every has no per={per!r}.", did_you_mean(str(per), list(_PER)))
        self._clock = ""
        length: float
        if steps is not None:
            self._clock, length = _checked_steps(steps)
        else:
            length = float(seconds) if seconds is not None else int(rows or 0)
        if not length > 0:
            raise BadInput(f"Every was given {given[0]}={length!r}; a stretch has to be longer than 0")
        super().__init__(to, seconds=seconds, steps=list(steps) if steps else None, rows=rows, per=per)
        self._length = length
        self._kind = given[0]
        self._per_key = per == "key"
        self._together = per == "all"
        self._begun: dict[Any, float] = {}  # group with separate intervals -> where the current one began
        self._held: dict[Any, Row] = {}  # -> the last row (or the part of it) that did not pass

    def _row(self, row: Row) -> Iterable[Row]:
        if any(type(value) is str for value in row.values.values()):
            return (row,)
        if self._per_key:
            return self._by_key(row)
        group: object = () if self._together else (row.scope, *row.values)
        if self._passes(group, row):
            self._held.pop(group, None)
            return (row,)
        self._held[group] = row
        return ()

    def _by_key(self, row: Row) -> Iterable[Row]:
        due = {key: value for key, value in row.values.items() if self._passes(key, row)}
        for key in row.values:
            if key in due:
                self._held.pop(key, None)
            else:
                self._held[key] = row
        if len(due) == len(row.values):
            return (row,)
        return (with_values(row, due),) if due else ()

    def _passes(self, group: object, row: Row) -> bool:
        """Whether a row begins a new interval of `group`; if so, it begins one."""
        last = self._begun.get(group)
        if self._kind == "rows":
            seen = 0 if last is None else int(last)
            self._begun[group] = (seen + 1) % self._length
            return seen == 0
        if self._kind == "seconds":
            at: float = row.time
            begins = last is None or at >= last + self._length
        else:
            reading = row.clocks.get(self._clock)
            if reading is None:
                return True
            at = reading - reading % self._length
            begins = last is None or at > last
        # A step back by more than an interval is not a row out of order: the clock was set back, or the run rewound.
        if begins or (last is not None and at < last - self._length):
            self._begun[group] = at
            return True
        return False

    def _mark(self, row: Row) -> Iterable[Row]:
        return (*self._rest(), row) if row.mark in ("final", "rewind") else (row,)

    def _rest(self) -> Iterable[Row]:
        if self._per_key:  # the held-back keys of one row leave together
            parts: dict[int, tuple[Row, dict[str, Any]]] = {}
            for key, row in self._held.items():
                parts.setdefault(id(row), (row, {}))[1][key] = row.values[key]
            rest = [with_values(row, values) for row, values in parts.values()]
        else:
            rest = list(self._held.values())
        self._held = {}
        return sorted(rest, key=lambda row: row.time)

    def _remember(self) -> object:
        return dict(self._begun), dict(self._held)

    def _recall(self, token: Any) -> None:
        self._begun, self._held = token

    def _save(self) -> dict[str, object]:
        rows = list({id(row): row for row in self._held.values()}.values())
        index_of = {id(row): number for number, row in enumerate(rows)}
        return {
            "begun": [[_as_json(group), at] for group, at in self._begun.items()],
            "rows": [row_to_json(row) for row in rows],
            "held": [[_as_json(group), index_of[id(row)]] for group, row in self._held.items()],
        }

    def _load(self, saved: Mapping[str, Any]) -> None:
        rows = [row_from_json(row) for row in saved.get("rows", ())]
        self._begun = {_from_json(group): at for group, at in saved.get("begun", ())}
        self._held = {_from_json(group): rows[index] for group, index in saved.get("held", ())}


def _checked_steps(steps: tuple[str, int]) -> tuple[str, int]:
    try:
        clock, n = steps
        good = isinstance(clock, str) and int(n) == n
    except (TypeError, ValueError):
        good = False
    if not good:
        raise BadInput(
            f"Every was given steps={steps!r}; it takes a clock and a whole number: steps=('env_step', 1000)"
        )
    return clock, int(n)


def _as_json(group: object) -> object:
    return list(group) if isinstance(group, tuple) else group


def _from_json(group: object) -> object:
    return tuple(group) if isinstance(group, list) else group
