"""The containers of the log: they look like the dicts and lists of MRL's, and read from the book.

log.metrics["rewards"][-10:]        log.batch_log["rewards"][5]        log.timelog["sample_batch"]
"CCO" in log.unique_samples         log.unique_samples["CCO"]          # its first reward
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, TypeVar, overload

from rollbook.adapters.mrl.history import BatchHistory, SeriesHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsInt

    import numpy.typing as npt

    from rollbook.values.array_types import NDArray

T = TypeVar("T")


class Lazy(Sequence[T]):
    """A list that is read on access: index, negative index, slice, len, iterate, compare, add, as an array.

    Complete values are in the book and do not change: there is `append`, but no `insert` or `pop`. A pickle or a copy
    of it is a list.

    Args:
      length: its present length.
      get: the value at an index.
    """

    def __init__(self, length: Callable[[], int], get: Callable[[int], T]) -> None:
        self._length, self._get = length, get

    def __add__(self, other: object) -> list[T]:
        return [*self, *other] if isinstance(other, (Lazy, list, tuple)) else NotImplemented

    def __radd__(self, other: object) -> list[T]:
        return [*other, *self] if isinstance(other, (list, tuple)) else NotImplemented

    def __mul__(self, times: SupportsInt) -> list[T]:
        return [*self] * int(times)

    __rmul__ = __mul__

    def copy(self) -> list[T]:
        """The present values, as a list."""
        return list(self)

    def __reduce__(self) -> tuple[object, ...]:
        return list, (list(self),)

    def __len__(self) -> int:
        return self._length()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        length = len(self)
        if isinstance(index, slice):
            return [self._get(i) for i in range(*index.indices(length))]
        number = index.__index__()
        if not -length <= number < length:
            raise IndexError(f"there is no batch {number}; {length} are complete")
        return self._get(number % length if number < 0 else number)

    def __iter__(self) -> Iterator[T]:
        index = 0
        while index < len(self):
            yield self._get(index)
            index += 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Lazy, list, tuple)):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: object = None) -> NDArray:
        import numpy as np

        return np.array(list(self), dtype=dtype)

    def __repr__(self) -> str:
        last = ", ".join(map(repr, self[-3:]))
        return f"[{'… ' if len(self) > 3 else ''}{last}] ({len(self)} batches)"


class Growing(Lazy[T]):
    """A list with `append`.

    Args:
      put: called with the next value.
    """

    def __init__(self, length: Callable[[], int], get: Callable[[int], T], put: Callable[[T], None]) -> None:
        super().__init__(length, get)
        self._put = put

    def append(self, value: T) -> None:
        """Add a value."""
        self._put(value)

    def extend(self, values: Iterable[T]) -> None:
        """Add values."""
        for value in values:
            self._put(value)

    def __iadd__(self, values: Iterable[T]) -> Growing[T]:  # type: ignore[override, misc]
        self.extend(values)
        return self


class TimeSeries(Growing[Any]):
    """The seconds of one stage; `append` adds a row to the run's `timings`.

    A stage of the current batch is `pending`: it counts here, and is written when the batch is complete. An unfinished
    batch therefore leaves no rows.
    """

    def __init__(self, history: SeriesHistory, write: Callable[[float], None], *, waits: bool = False) -> None:
        self.pending: float | None = None

        def get(index: int) -> object:
            return self.pending if index >= history.length else history.get(index)

        super().__init__(lambda: history.length + (self.pending is not None), get, self._take)
        self._history, self._write, self._waits = history, write, waits

    def _take(self, seconds: float) -> None:
        if self._waits:
            self.pending = float(seconds)
        else:
            self._keep(float(seconds))

    def complete(self) -> None:
        """Mark the current batch as complete."""
        if self.pending is not None:
            seconds, self.pending = self.pending, None
            self._keep(seconds)

    def _keep(self, seconds: float) -> None:
        self._write(seconds)
        self._history.append(seconds)


class Metrics(Mapping[str, Growing[Any]]):
    """Metric name -> one value per batch, in the order in which the metrics were added.

    A batch without a value has NaN; the current batch counts as soon as the metric is updated.

    Args:
      update: sets the value of a metric in the current batch; `metrics[name].append(value)` calls it.
      add: adds a metric; `metrics[name] = []` calls it.
    """

    def __init__(self, update: Callable[[str, object], None], add: Callable[[str], None]) -> None:
        self.series: dict[str, SeriesHistory] = {}
        self.pending: dict[str, object] = {}
        self._update, self._add = update, add

    def __setitem__(self, name: str, values: Sequence[object]) -> None:
        """Add a metric: `metrics[name] = []`. After `metrics[name] += …` there is nothing left to do."""
        if len(values) and not isinstance(values, Growing):
            raise TypeError(
                f"metrics[{name!r}] = {len(values)} values: earlier batches remain in the book as they were. Assign [] "
                "to add a metric, and append to it"
            )
        self._add(name)

    def __getitem__(self, name: str) -> Growing[Any]:
        history = self.series[name]

        def length() -> int:
            return history.length + (name in self.pending)

        def get(index: int) -> object:
            value = self.pending[name] if index >= history.length else history.get(index)
            return float("nan") if value is None else value

        return Growing(length, get, lambda value: self._update(name, value))

    def __iter__(self) -> Iterator[str]:
        return iter(self.series)

    def __len__(self) -> int:
        return len(self.series)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, ({name: list(values) for name, values in self.items()},)

    def __repr__(self) -> str:
        return f"<metrics: {', '.join(self)}>"


class BatchLog(Mapping[str, Lazy[Any]]):
    """Term -> one sequence per complete batch: an array of the items' numbers, or a list of other values."""

    def __init__(self, history: BatchHistory) -> None:
        self.history = history
        self.terms: dict[str, None] = {}

    def __getitem__(self, term: str) -> Lazy[Any]:
        if term not in self.terms:
            raise KeyError(term)

        def get(batch: int) -> object:
            columns = self.history.get(batch)
            if term in columns:
                return columns[term]
            return [None] * max((len(values) for values in columns.values()), default=0)

        return Lazy(lambda: self.history.length, get)

    def __iter__(self) -> Iterator[str]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, ({term: list(batches) for term, batches in self.items()},)

    def __repr__(self) -> str:
        return f"<batch log: {', '.join(self)}; {self.history.length} batches>"


class TimeLog(Mapping[str, TimeSeries]):
    """Stage -> seconds, one per batch. Reading a stage creates it, as in a defaultdict."""

    def __init__(self, make: Callable[[str], TimeSeries]) -> None:
        self._make = make
        self._stages: dict[str, TimeSeries] = {}

    def __getitem__(self, stage: str) -> TimeSeries:
        view = self._stages.get(stage)
        if view is None:
            view = self._stages[stage] = self._make(stage)
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __contains__(self, stage: object) -> bool:
        return stage in self._stages

    def put(self, stage: str, series: TimeSeries) -> None:
        """Set the series of a stage."""
        self._stages[stage] = series

    def __reduce__(self) -> tuple[object, ...]:
        return dict, ({stage: list(seconds) for stage, seconds in self.items()},)

    def __repr__(self) -> str:
        return f"<timelog: {', '.join(self)}>"


class UniqueSamples(Mapping[Any, Any]):
    """Every sample seen so far -> its first reward.

    `in` is exact for the first million samples; beyond that see `rollbook.capture.samples`. It only uses memory. The
    reward of an older sample, and iterating over all of them, read the book.
    """

    def __init__(
        self,
        contains: Callable[[object], bool],
        count: Callable[[], int],
        reward: Callable[[object], object],
        rewards: Callable[[], dict[Any, Any]],
    ) -> None:
        self._contains, self._count, self._reward, self._rewards = contains, count, reward, rewards

    def __contains__(self, sample: object) -> bool:
        return self._contains(sample)

    def __len__(self) -> int:
        return self._count()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rewards())

    def __getitem__(self, sample: object) -> Any:
        if not self._contains(sample):
            raise KeyError(sample)
        return self._reward(sample)

    def items(self) -> ItemsView[Any, Any]:
        """(sample, first reward) of all, read at once."""
        return self._rewards().items()

    def values(self) -> ValuesView[Any]:
        """The first rewards of all, read at once."""
        return self._rewards().values()

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self._rewards(),)

    def __repr__(self) -> str:
        return f"<{len(self)} unique samples>"
