"""The data frames of the log: the first occurrence of each sample, and all rows."""

from __future__ import annotations

from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from rollbook.adapters.mrl.history import Columns
    from rollbook.values.array_types import NDArray


def frame_of(columns: Mapping[str, Sequence[object] | NDArray]) -> pd.DataFrame:
    """A pandas DataFrame of columns of one length; text stays Python text."""
    pandas = need("pandas", extra="mrl", why="the data frame of the log")
    n = max((len(values) for values in columns.values()), default=0)
    data = {name: pandas.Series(values, dtype=_dtype(values), index=range(n)) for name, values in columns.items()}
    return pandas.DataFrame(data, columns=list(columns))


def _dtype(values: Sequence[object] | NDArray) -> object:
    kind = getattr(values, "dtype", None)
    return kind if kind is not None else (object if any(isinstance(v, (str, tuple)) for v in values[:100]) else None)


class FirstSeen:
    """One row per unique sample, with the values of its first occurrence; rows are only added.

    Columns grow by doubling, so that a frame after each of n batches costs O(n) in total, not O(n²). Each `frame()` is
    a new object over the same memory; changes by a caller (drop_duplicates in place) do not affect this object.
    """

    def __init__(self) -> None:
        self._columns: dict[str, NDArray] = {}
        self._length = 0
        self._known: set[object] = set()
        self._frame: object = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self._length == 0 and self._frame is None

    def __len__(self) -> int:
        return self._length

    def add(self, columns: Columns) -> None:
        """Add the rows whose sample is new. `columns["samples"]` holds the samples."""
        chosen = []
        for index, sample in enumerate(columns.get("samples", ())):
            try:
                if sample in self._known:
                    continue
                self._known.add(sample)
            except TypeError:  # not hashable: identified by its content
                if repr(sample) in self._known:
                    continue
                self._known.add(repr(sample))
            chosen.append(index)
        if not chosen:
            return
        import numpy as np

        start, stop = self._length, self._length + len(chosen)
        for name, values in columns.items():
            picked = np.empty(len(chosen), object)
            picked[:] = [values[index] for index in chosen]
            if name not in ("samples", "sources"):
                picked = _numeric(picked)
            self._put(name, picked, start, stop)
        for name in self._columns.keys() - columns.keys():
            self._put(name, np.full(len(chosen), np.nan), start, stop)
        self._length = stop
        self._frame = None

    def _put(self, name: str, values: NDArray, start: int, stop: int) -> None:
        import numpy as np

        column = self._columns.get(name)
        if column is None:
            column = np.full(max(stop, 256), np.nan, values.dtype if values.dtype.kind in "fO" else float)
            if start == 0:
                column = column.astype(values.dtype)
        wanted = np.promote_types(column.dtype, values.dtype) if column.dtype != values.dtype else column.dtype
        if len(column) < stop or wanted != column.dtype:
            grown = np.empty(max(stop, 2 * len(column) if len(column) < stop else len(column)), wanted)
            grown[:start] = column[:start]
            column = grown
        column[start:stop] = values
        self._columns[name] = column

    @classmethod
    def of(cls, frame: pd.DataFrame) -> FirstSeen:
        """The rows of a DataFrame; it is returned unchanged until there are more."""
        made = cls()
        made.add({str(name): frame[name].to_numpy() for name in frame.columns})
        made._frame = frame
        return made

    def frame(self) -> pd.DataFrame:
        """The rows so far; the same object until there are more."""
        if self._frame is None:
            pandas = need("pandas", extra="mrl", why="the data frame of the log")
            data = {
                name: pandas.Series(column[: self._length], dtype=column.dtype, copy=False)
                for name, column in self._columns.items()
            }
            self._frame = pandas.DataFrame(data, copy=False)
        return self._frame


def _numeric(values: NDArray) -> NDArray:
    import numpy as np

    try:
        array = np.array(values.tolist())
    except ValueError:  # ragged: one array per item
        return values
    return array if array.dtype.kind in "biuf" and array.ndim == 1 else values
