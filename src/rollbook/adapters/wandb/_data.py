"""The value classes of `wandb`, and how a run of rollbook stores each.

Each has `keep(run, key, step)`, which logs it with the methods of a run. Arguments are those of wandb 0.31.
"""

from __future__ import annotations

import os
import re
from types import ModuleType
from weakref import WeakKeyDictionary

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from rollbook.run.run import Run

__all__ = [
    "Audio", "Classes", "EvalTable", "Graph", "Histogram", "Html", "Image", "JoinedTable", "Molecule", "Object3D",
    "Plotly", "Table", "Value", "Video", "copied", "keep_file", "table_name",
]  # fmt: skip

_LONGEST_TEXT = 1_000_000


class Value:
    """Values that `wandb.log` accepts besides numbers, texts and nested dicts.

    Arguments as in the class of that name in `wandb`.
    """

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step.

        Args:
          run: rollbook's run.
          key: its full name.
          step: the clock `step`.
        Raises:
          TypeError: a subclass does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not say how it is kept")


_logged: WeakKeyDictionary[Run, dict[str, list[list[Any]]]] = WeakKeyDictionary()
"""Of each run the rows of the table that was logged last under a key, the latest key last."""
_MOST_KEPT = 20


class Table(Value):
    """Rows and columns. Stored as a table of the run, `book.table(key)`.

    A table that has the rows of the last one under its key and more after them adds the new rows alone: programs log
    all of their rows each time, because a table of wandb cannot be changed once it is logged.

    Args:
      columns: their names.
      data, rows: the rows.
      dataframe: a pandas frame instead of these.
      dtype, optional, allow_mixed_types, log_mode: accepted, without effect.
    """

    def __init__(
        self,
        columns: Sequence[object] | None = None,
        data: Any = None,
        rows: Any = None,
        dataframe: Any = None,
        dtype: object = None,
        optional: object = True,
        allow_mixed_types: bool = False,
        log_mode: str | None = "IMMUTABLE",
    ) -> None:
        if dataframe is None and hasattr(data, "columns") and hasattr(data, "itertuples"):
            dataframe, data = data, None
        if dataframe is not None:
            columns = list(dataframe.columns)
            data = [list(row) for row in dataframe.itertuples(index=False)]
        given = data if data is not None else rows
        self.data: list[list[Any]] = [list(row) for row in given] if given is not None else []
        widest = max((len(row) for row in self.data), default=3)
        default = ["Input", "Output", "Expected"] if not self.data else [str(n) for n in range(widest)]
        self.columns: list[Any] = list(columns) if columns is not None else default

    def add_data(self, *row: object) -> None:
        """Add a row.

        Raises:
          ValueError: not one value per column.
        """
        if len(row) != len(self.columns):
            raise ValueError(f"This table has {len(self.columns)} columns: {self.columns}, but {len(row)} were given")
        self.data.append(list(row))

    def add_row(self, *row: object) -> None:
        """Add a row."""
        self.add_data(*row)

    def add_column(self, name: str, data: Any) -> None:
        """Add a column with one value per row.

        Args:
          name: its name.
          data: its values.
        Raises:
          ValueError: not one value per row.
        """
        values = list(data)
        if self.data and len(values) != len(self.data):
            raise ValueError(f"the column {name!r} has {len(values)} values, the table {len(self.data)} rows")
        if not self.data:
            self.data = [[] for _ in values]
        self.columns.append(name)
        for row, value in zip(self.data, values, strict=True):
            row.append(value)

    def get_column(self, name: str, convert_to: str | None = None) -> Any:
        """The values of a column, as an array with convert_to="numpy"."""
        index = self.columns.index(name)
        values = [row[index] for row in self.data]
        if convert_to == "numpy":
            import numpy as np

            return np.array(values)
        return values

    def get_dataframe(self) -> Any:
        """The table as a pandas frame."""
        from rollbook.system.optional import need

        return need("pandas", extra="pandas", why="Table.get_dataframe()").DataFrame(self.data, columns=self.columns)

    def iterrows(self) -> Iterable[tuple[int, list[Any]]]:
        """Yield (index, row) of each row."""
        return enumerate(self.data)

    def get_index(self) -> list[int]:
        """The index of each row."""
        return list(range(len(self.data)))

    def add_computed_columns(self, fn: Callable[[int, dict[Any, Any]], Mapping[Any, Any]]) -> None:
        """Add the columns that a function of (index, row as a dict) returns for each row."""
        made: dict[Any, list[Any]] = {}
        for index, row in self.iterrows():
            for name, value in fn(index, dict(zip(self.columns, row, strict=False))).items():
                made.setdefault(name, []).append(value)
        for name, values in made.items():
            self.add_column(name, values)

    def cast(self, col_name: str, dtype: object, optional: bool = False) -> None:
        """Does nothing: values keep their own types."""

    def set_pk(self, col_name: str) -> None:
        """Does nothing: tables here have no keys."""

    def set_fk(self, col_name: str, table: object, table_col: str) -> None:
        """Does nothing."""

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        name, count = without_count(key)
        known = 0 if count else self._known_to(run, key)  # each number is a table of its own
        rows = self.data[known:]
        if not rows:
            return
        columns: dict[str, list[Any]] = {}
        for n, column in enumerate(self.columns):
            cells = [row[n] if n < len(row) else None for row in rows]
            for index, cell in enumerate(cells, known):
                if isinstance(cell, Value):
                    cell.keep(run, f"{key}/{column}/{index}", step)
            columns[_column(column)] = [_cell(cell) for cell in cells]
        columns = {word: [number] * len(rows) for word, number in count.items()} | columns
        run.record(table_name(name), columns, n=len(rows), step=step)

    def _known_to(self, run: Run, key: str) -> int:
        """How many of the first rows were logged under this key before; 0 if this is no longer form of that table."""
        logged = _logged.setdefault(run, {})
        before = logged.pop(key, [])
        logged[key] = [list(row) for row in self.data]
        if len(logged) > _MOST_KEPT:  # the one that was logged longest ago: their cells stay in memory
            del logged[next(iter(logged))]
        with tolerating(Exception):  # cells that cannot be compared, such as arrays
            if len(before) < len(self.data) and before == self.data[: len(before)]:
                return len(before)
        return 0


class EvalTable(Table):
    """A `Table`; its scorers' columns are columns."""


_COUNTED = re.compile(
    r"(?P<stem>.*?)(?<![A-Za-z])(?P<word>iter|iteration|global_step|step|epoch|update|episode|round|batch)"
    r"[_\-. =:/]*(?P<count>\d+)",
    re.IGNORECASE | re.DOTALL,
)


def without_count(key: str) -> tuple[str, dict[str, int]]:
    """(a key without the number that it counts, what it counts): a program logs a table each time under a new key.

    "episodes/iter_000123" is ("episodes/iter", {"iteration": 123}): all are rows of one table. A number alone, as in
    "math_500", counts nothing.
    """
    counted = _COUNTED.fullmatch(key)
    if counted is None:
        return key, {}
    word = counted["word"].lower()
    return counted["stem"] + counted["word"], {"iteration" if word == "iter" else word: int(counted["count"])}


def table_name(key: str) -> str:
    """The name of the table that stores a key's Table: letters, digits and "_"."""
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in key).strip("_").lower() or "table"
    return name if name[0].isalpha() else f"table_{name}"


def _column(name: object) -> str:
    text = str(name)
    return f"value_{text}" if text in ("time", "scope", "at", "attempt", "writer", "lane", "seq", "index") else text


def _cell(cell: object) -> object:
    if cell is None or isinstance(cell, (bool, int, float, str)):
        return cell
    item = getattr(cell, "item", None)
    if callable(item) and getattr(cell, "size", 0) == 1:
        return item()
    return str(cell)[:_LONGEST_TEXT]


class Histogram(Value):
    """A distribution: values, or counts and edges as numpy.histogram returns them.

    Raises:
      ValueError: not exactly one of `sequence` and `np_histogram`.
    """

    def __init__(self, sequence: Any = None, np_histogram: Any = None, num_bins: int = 64) -> None:
        if (sequence is None) == (np_histogram is None):
            raise ValueError("Histogram: pass either a sequence or np_histogram=(counts, edges)")
        self._values, self._made, self._bins = sequence, np_histogram, num_bins

    def _counted(self) -> tuple[Any, Any]:
        if self._made is None:
            import numpy as np

            return np.histogram(self._values, bins=self._bins)
        counts, edges = self._made
        return counts, edges

    @property
    def histogram(self) -> list[float]:
        """The counts [bins]."""
        return [float(n) if n % 1 else int(n) for n in self._counted()[0]]

    @property
    def bins(self) -> list[float]:
        """The edges [bins + 1]."""
        return [float(edge) for edge in self._counted()[1]]

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        if self._made is None:
            run.log_histogram(key, self._values, step=step)
            return
        from rollbook.values import Histogram as Kept

        counts, edges = self._made
        run.log_histogram(key, Kept([float(e) for e in edges], [float(c) for c in counts]), step=step)


class Image(Value):
    """An image: an array (height x width, with 1, 3 or 4 channels), a PIL image, a figure, or the path of a file."""

    def __init__(
        self,
        data_or_path: Any,
        mode: str | None = None,
        caption: str | None = None,
        grouping: int | None = None,
        classes: object = None,
        boxes: object = None,
        masks: object = None,
        file_type: str | None = None,
        normalize: bool = True,
    ) -> None:
        is_pyplot = isinstance(data_or_path, ModuleType) and hasattr(data_or_path, "gcf")  # its current figure is meant
        self._data = data_or_path.gcf() if is_pyplot else data_or_path
        self._caption, self._overlaid = caption, bool(boxes or masks)

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        if self._overlaid:
            run.count(
                "wandb_not_kept", 1, f"wandb.Image under {key!r}: the picture is kept, its boxes and masks are not"
            )
        data = self._data
        if isinstance(data, (str, os.PathLike)):
            keep_file(run, key, data, step)
        elif hasattr(data, "savefig"):
            run.log_figure(key, data, step=step)
        else:
            run.log_image(key, _pixels(data), step=step)
        if self._caption:
            run.log_text(f"{key}/caption", str(self._caption), step=step)


class Video(Value):
    """A video: an array of frames x channels x height x width (as in wandb), or the path of a file."""

    def __init__(
        self, data_or_path: Any, caption: str | None = None, fps: int | None = None, format: str | None = None
    ) -> None:
        self._data, self._caption, self._fps = data_or_path, caption, fps

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        if isinstance(self._data, (str, os.PathLike)):
            keep_file(run, key, self._data, step)
        else:
            frames = _frames(self._data)
            run.log_video(key, frames, fps=float(self._fps or 4), step=step)
        if self._caption:
            run.log_text(f"{key}/caption", str(self._caption), step=step)


class Html(Value):
    """An HTML page, as text or as an open file. Stored as text."""

    def __init__(self, data: Any, inject: bool = True, data_is_not_path: bool = False) -> None:
        if hasattr(data, "read"):
            data = data.read()
        if isinstance(data, os.PathLike) or (isinstance(data, str) and not data_is_not_path and os.path.isfile(data)):
            with open(data, encoding="utf-8", errors="backslashreplace") as file:
                data = file.read()
        self.html = str(data)

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        run.log_text(key, self.html[:_LONGEST_TEXT], step=step)


class _File(Value):
    """A value that rollbook stores as a file. Values made from data are only counted."""

    def __init__(self, data_or_path: Any, caption: str | None = None, **_options: object) -> None:
        self._data = data_or_path

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        if isinstance(self._data, (str, os.PathLike)) and os.path.isfile(self._data):
            keep_file(run, key, self._data, step)
        else:
            kind = type(self).__name__
            run.count(
                "wandb_not_kept", 1, f"wandb.{kind} under {key!r} was not kept: rollbook keeps it as a file alone"
            )


class Audio(_File):
    """A sound; stored if it is a file."""

    def __init__(self, data_or_path: Any, sample_rate: int | None = None, caption: str | None = None) -> None:
        super().__init__(data_or_path)


class Object3D(_File):
    """A 3D object; stored if it is a file."""


class Molecule(_File):
    """A molecule; stored if it is a file."""


class Classes(_File):
    """The labels of an image's masks and boxes; only counted."""


class JoinedTable(_File):
    """Two tables of an artifact and their common key; only counted. Log one `Table`."""

    def __init__(self, table1: object, table2: object, join_key: str = "") -> None:
        super().__init__(None)


class Graph(_File):
    """A graph; only counted."""

    def __init__(self, format: str = "keras") -> None:
        super().__init__(format)


class Plotly(Value):
    """A plotly figure; stored as its JSON."""

    def __init__(self, val: Any) -> None:
        self._figure = val

    def keep(self, run: Run, key: str, step: int) -> None:
        """Log it under a key at a step."""
        to_json = getattr(self._figure, "to_json", None)
        run.log_text(key, str(to_json() if callable(to_json) else self._figure)[:_LONGEST_TEXT], step=step)


def keep_file(run: Run, key: str, path: str | os.PathLike[str], step: int) -> Path | None:
    """Copy a file into `<run>/files/media` and log its path; a missing file is counted."""
    return copied(
        run, os.fspath(path), os.path.join("media", f"{table_name(key)}_{step}_{os.path.basename(path)}"), key, step
    )


def copied(run: Run, source: str, name: str, key: str, step: int | None, base: Path | None = None) -> Path | None:
    """Copy a file into a folder of the run, `files` or one in it, never outside of it, and log its path."""
    import shutil

    from rollbook.system.files import make_folders

    base = base or run.folder / "files"
    target = base / name
    if base.resolve() not in target.resolve().parents:
        run.count("wandb_not_kept", 1, f"{name!r} is no name inside of {base.name}; nothing was copied")
        return None
    try:
        make_folders(target.parent, inside=run.folder)
        shutil.copyfile(source, target)
    except OSError as err:
        run.count("wandb_not_kept", 1, f"{source}: the file was not kept: {err}")
        return None
    run.log_text(key, str(target.relative_to(run.folder)), **({} if step is None else {"step": step}))
    return target


def _pixels(data: Any) -> Any:
    """An array in the image layout of rollbook; accepts PIL images and tensors with the channels first."""
    from rollbook.values.arrays import host_array

    array = _bytes(host_array(data))
    if array.ndim > 3:
        array = array.squeeze()
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] not in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    return array


def _frames(data: Any) -> Any:
    """Frames with the channels last; of a batch of videos the first."""
    from rollbook.values.arrays import host_array

    array = _bytes(host_array(data))
    if array.ndim == 5:
        array = array[0]
    if array.ndim == 4 and array.shape[1] in (1, 3, 4):
        array = array.transpose(0, 2, 3, 1)
    return array


def _bytes(array: Any) -> Any:
    """Pixels as wandb keeps them: the lowest eight bits of the whole part; floats in [0, 1] are scaled."""
    import numpy as np

    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        return array.astype(np.uint8)
    if array.dtype.kind == "f" and array.size and not (array.min() >= 0 and array.max() <= 1):
        return np.nan_to_num(array.astype(np.float64), posinf=255, neginf=0).astype(np.int64).astype(np.uint8)
    return array
