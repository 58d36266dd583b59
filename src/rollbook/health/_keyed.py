"""What rules about single keys have in common: which keys they look at, and how a place in training is said."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rollbook import aliases
from rollbook.protocols import Alert, Row, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["KeyedRule", "Last", "evidence_of", "meaning", "median", "place"]


class KeyedRule(ABC):
    """A rule that looks at the values of some keys, each on its own. Subclasses answer `take`.

    Args:
      keys: further keys to look at, beside those of `meanings`.
    """

    name = ""
    source = ""
    tables: frozenset[str] = frozenset({"metrics"})
    meanings: frozenset[str] = frozenset()
    """Canonical names (`rollbook.aliases`); a key of any framework that means one of them is looked at."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = {keys} if isinstance(keys, str) else set(keys)
        self._chosen: dict[str, bool] = {}

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        self.run = run
        self._troubled: set[str] = set()

    def look(self, rows: Sequence[Row], now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        for row in rows:
            for key, value in row.values.items():
                chosen = self._chosen.get(key)
                if chosen is None:
                    chosen = self._chosen[key] = key in self._keys or meaning(key) in self.meanings
                if chosen and isinstance(value, (float, int)):
                    yield from self.take(key, float(value), row)

    def begins(self, key: str, last: Last, is_bad: Callable[[float], bool]) -> bool:
        """Whether a trouble begins: all of the last values are bad, and all were good since the last time it began."""
        if last.all(is_bad):
            if key not in self._troubled:
                self._troubled.add(key)
                return True
        elif last.all(lambda value: not is_bad(value)):
            self._troubled.discard(key)
        return False

    @abstractmethod
    def take(self, key: str, value: float, row: Row) -> Iterable[Alert]:
        """One value of a key that is looked at."""


def meaning(key: str) -> str:
    """The canonical name of a key, or the key itself."""
    return aliases.canonical(key) or key


class Last:
    """The last few values of a key with their rows' places, oldest first."""

    __slots__ = ("most", "rows", "seen")

    def __init__(self, most: int) -> None:
        self.most, self.seen = most, 0
        self.rows: list[tuple[float, Row]] = []

    def take(self, value: float, row: Row) -> None:
        """Append one; the oldest goes."""
        self.seen += 1
        self.rows.append((value, row))
        if len(self.rows) > self.most:
            del self.rows[0]

    def all(self, condition: Callable[[float], bool]) -> bool:
        """Whether there are `most` values and the condition holds for each."""
        return len(self.rows) == self.most and all(condition(value) for value, _row in self.rows)

    def evidence(self, **more: object) -> dict[str, object]:
        """The values, the rows they came from, and the numbers in `more`."""
        first, last = self.rows[0][1], self.rows[-1][1]
        return {
            "values": [value for value, _row in self.rows[-20:]],
            "rows_seen": self.seen,
            "from": dict(first.clocks),
            **evidence_of(last),
            **more,
        }


def evidence_of(row: Row) -> dict[str, object]:
    """Which row it was: its clocks, time and identity."""
    return {
        "clocks": dict(row.clocks),
        "time": row.time,
        "row": {"writer": row.writer, "lane": row.lane, "seq": row.seq},
    }


def place(clocks: Mapping[str, int]) -> str:
    """Where in training, in words: " at env_step 2,048"; "" where no clock is known."""
    for clock, reading in clocks.items():
        return f" at {clock} {reading:,}"
    return ""


def median(values: Sequence[float]) -> float:
    """The upper median."""
    return sorted(values)[len(values) // 2]
