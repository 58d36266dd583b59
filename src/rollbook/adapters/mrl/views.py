"""The containers of the log: they look like the dicts and lists of MRL's, and read from the book.

log.metrics["rewards"][-10:]        log.batch_log["rewards"][5]        log.timelog["sample_batch"]
"CCO" in log.unique_samples         log.unique_samples["CCO"]          # its first reward
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from rollbook.adapters.mrl.history import BatchHistory, SeriesHistory

__all__ = ["BatchLog", "Lazy", "Metrics", "TimeLog", "UniqueSamples"]


class Lazy(Sequence[Any]):
    """A list that is read when it is asked: index, negative index, slice, len, iterate, compare, as an array.

    Args:
      length: how long it is now.
      get: the value at a place.
    """

    def __init__(self, length: Callable[[], int], get: Callable[[int], Any]) -> None:
        self._length, self._get = length, get

    def __len__(self) -> int:
        return self._length()

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        length = len(self)
        if isinstance(place, slice):
            return [self._get(i) for i in range(*place.indices(length))]
        found = place.__index__()
        if not -length <= found < length:
            raise IndexError(f"there is no batch {found}; {length} are complete")
        return self._get(found % length if found < 0 else found)

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while place < len(self):
            yield self._get(place)
            place += 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Lazy, list, tuple)):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.array(list(self), dtype=dtype)

    def __repr__(self) -> str:
        last = ", ".join(map(repr, self[-3:]))
        return f"[{'… ' if len(self) > 3 else ''}{last}] ({len(self)} batches)"


class TimeSeries(Lazy):
    """The seconds of one stage; `append` adds a row to the run's `timings`."""

    def __init__(self, history: SeriesHistory, write: Callable[[float], None]) -> None:
        super().__init__(lambda: history.length, history.get)
        self._history, self._write = history, write

    def append(self, seconds: float) -> None:
        """The seconds of one more call."""
        self._write(float(seconds))
        self._history.append(float(seconds))


class Metrics(Mapping[str, Lazy]):
    """Metric name -> one value per batch, in the order in which the metrics were added.

    A batch without a value has NaN; the batch that is running counts as soon as the metric is updated.
    """

    def __init__(self) -> None:
        self.series: dict[str, SeriesHistory] = {}
        self.pending: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Lazy:
        history = self.series[name]

        def length() -> int:
            return history.length + (name in self.pending)

        def get(place: int) -> Any:
            value = self.pending[name] if place >= history.length else history.get(place)
            return float("nan") if value is None else value

        return Lazy(length, get)

    def __iter__(self) -> Iterator[str]:
        return iter(self.series)

    def __len__(self) -> int:
        return len(self.series)

    def __repr__(self) -> str:
        return f"<metrics: {', '.join(self)}>"


class BatchLog(Mapping[str, Lazy]):
    """Term -> one sequence per complete batch: an array of the items' numbers, or a list of other things."""

    def __init__(self, history: BatchHistory) -> None:
        self.history = history
        self.terms: dict[str, None] = {}

    def __getitem__(self, term: str) -> Lazy:
        if term not in self.terms:
            raise KeyError(term)

        def get(batch: int) -> Any:
            columns = self.history.get(batch)
            if term in columns:
                return columns[term]
            return [None] * max((len(values) for values in columns.values()), default=0)

        return Lazy(lambda: self.history.length, get)

    def __iter__(self) -> Iterator[str]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    def __repr__(self) -> str:
        return f"<batch log: {', '.join(self)}; {self.history.length} batches>"


class TimeLog(Mapping[str, TimeSeries]):
    """Stage -> seconds, one per batch. A stage that is asked for begins to exist, as in a defaultdict."""

    def __init__(self, make: Callable[[str], TimeSeries]) -> None:
        self._make = make
        self._stages: dict[str, TimeSeries] = {}

    def __getitem__(self, stage: str) -> TimeSeries:
        found = self._stages.get(stage)
        if found is None:
            found = self._stages[stage] = self._make(stage)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __contains__(self, stage: object) -> bool:
        return stage in self._stages

    def __repr__(self) -> str:
        return f"<timelog: {', '.join(self)}>"


class UniqueSamples(Mapping[Any, Any]):
    """Every sample seen so far -> its first reward.

    `in` is exact for the first million samples; beyond that see `rollbook.capture.samples`. It asks memory alone. The
    reward of an older sample, and iterating over all of them, asks the book.
    """

    def __init__(
        self,
        contains: Callable[[Any], bool],
        count: Callable[[], int],
        rewards: Callable[[Any], Any],
        all_: Callable[[], Sequence[Any]],
    ) -> None:
        self._contains, self._count, self._rewards, self._all = contains, count, rewards, all_

    def __contains__(self, sample: object) -> bool:
        return self._contains(sample)

    def __len__(self) -> int:
        return self._count()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __getitem__(self, sample: Any) -> Any:
        if not self._contains(sample):
            raise KeyError(sample)
        return self._rewards(sample)

    def __repr__(self) -> str:
        return f"<{len(self)} unique samples>"
