"""Read the log's data from the book: batches of items, metrics, timings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rollbook.adapters.mrl.history import item_of
from rollbook.errors import BadInput, UnknownKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from rollbook.adapters.mrl.history import Columns
    from rollbook.book import Book
    from rollbook.values.array_types import NDArray

_BATCHES_AT_ONCE = 4096


def metric(book: Book, key: str, start: int, stop: int) -> list[object]:
    """The values of a key for batches [start, stop); None where missing."""
    metrics: list[object] = [None] * (stop - start)
    if key in set(book.keys()):
        table = book.metrics([key], x="step", start=start, stop=stop)
        for step, value in zip(table.column("step").to_pylist(), table.column(key).to_pylist(), strict=True):
            if step is not None and value is not None:
                metrics[step - start] = value
        return metrics
    for row in book.text().to_pylist():  # a metric that is a text
        if row["key"] == key and row.get("step") is not None and start <= row["step"] < stop:
            metrics[row["step"] - start] = row["text"]
    return metrics


def batch_count(book: Book) -> int:
    """The number of batches in the effective history."""
    keys = [key for key in book.keys() if key.startswith("metrics/")]  # noqa: SIM118 - a method, no dict
    if not keys:
        return 0
    steps = [step for step in book.metrics(keys).column("step").to_pylist() if step is not None]
    return max(steps, default=-1) + 1


def batches(book: Book, terms: Iterable[str], start: int, stop: int) -> dict[int, Columns]:
    """{batch: {term: values}} of batches [start, stop)."""
    table = book.samples(where=f"scope = 'batch' AND step >= {start} AND step < {stop}")
    return _by_batch(table, terms)


def all_batches(book: Book, terms: Iterable[str]) -> Iterator[tuple[int, Columns]]:
    """Every batch in order, reading a few thousand at a time."""
    terms = list(terms)
    total = batch_count(book)
    for start in range(0, total, _BATCHES_AT_ONCE):
        yield from sorted(batches(book, terms, start, start + _BATCHES_AT_ONCE).items())


def _by_batch(table: pa.Table, terms: Iterable[str]) -> dict[int, Columns]:
    import numpy as np

    if not table.num_rows:
        return {}
    names = set(table.column_names)
    order = [name for name in ("seq", "index") if name in names]
    steps = np.asarray(table.column("step").to_pylist(), np.int64)
    # Rows of a batch are contiguous and in the order of its items; batches come in order.
    keys = [np.asarray(table.column(name).to_pylist()) for name in reversed(order)]
    sorted_rows = np.lexsort([*keys, steps]) if keys else np.argsort(steps, kind="stable")
    columns: dict[str, list[object]] = {}
    kinds_of: dict[str, npt.DTypeLike | None] = {}
    for term in terms:
        column = "item" if term == "samples" else _column_of(term, names)
        if column is None:
            continue
        values = table.column(column).to_pylist()
        kinds_of[term] = _numeric_type(table.column(column).type)
        if term == "samples" and "item_type" in names:
            kinds = table.column("item_type").to_pylist()
            values = [item_of(value, kind) for value, kind in zip(values, kinds, strict=True)]
        columns[term] = values
    batches: dict[int, Columns] = {}
    bounds = np.flatnonzero(np.diff(steps[sorted_rows], prepend=steps[sorted_rows][0] - 1))
    for begin, end in zip(bounds, [*bounds[1:], len(sorted_rows)], strict=True):
        chosen = sorted_rows[begin:end]
        rows = {term: _typed(term, [values[i] for i in chosen], kinds_of[term]) for term, values in columns.items()}
        batches[int(steps[chosen[0]])] = {term: values for term, values in rows.items() if values is not None}
    return batches


def _column_of(term: str, names: set[str]) -> str | None:
    for name in (term, f"term/{term}", f"given/{term}", f"value/{term}"):
        if name in names:
            return name
    return None


def _numeric_type(column_type: pa.DataType) -> npt.DTypeLike | None:
    """The numpy type of a column of numbers; None for others."""
    import pyarrow as pa

    if pa.types.is_floating(column_type):
        return f"f{column_type.bit_width // 8}"
    if pa.types.is_integer(column_type):
        return f"{'i' if pa.types.is_signed_integer(column_type) else 'u'}{column_type.bit_width // 8}"
    return None


def _typed(term: str, values: list[object], kind: npt.DTypeLike | None) -> Sequence[object] | NDArray | None:
    """An array of `kind` if these are numbers, a list otherwise; None if the batch had no such term."""
    if term == "samples":
        return values
    if all(value is None for value in values):
        return None
    if any(value is None or not isinstance(value, (int, float, bool)) for value in values):
        return values
    import numpy as np

    return np.asarray(values, kind)


def first_reward(book: Book, sample: object, fingerprint: int | None) -> object:
    """The reward of a sample at its first occurrence; None if the book does not have it (yet)."""
    if fingerprint is None:
        return None
    for column in ("content", "sample_id"):  # sample_id: older runs, which identified samples by content only
        try:
            table = book.samples(where=f"scope = 'batch' AND {column} = '{fingerprint:016x}' AND is_new", limit=1)
        except (BadInput, UnknownKey):  # there is no such column
            continue
        if table.num_rows:
            return table.column("rewards").to_pylist()[0] if "rewards" in table.column_names else None
    return None


def timings(book: Book, stage: str, start: int, stop: int, by_batch: bool) -> Sequence[object]:
    """The seconds of a stage, of calls [start, stop), or of batches [start, stop) with NaN where missing."""
    rows = _seconds(book, stage)
    if not by_batch:
        return [seconds for _, seconds in rows][start:stop]
    known = {batch: seconds for batch, seconds in rows if batch is not None}  # if a batch was repeated, the later one
    return [known.get(batch, float("nan")) for batch in range(start, stop)]


def timings_count(book: Book, stage: str, batches: int | None) -> int:
    """How many calls of a stage the effective history has; with `batches`, how many of that many batches it covers."""
    rows = _seconds(book, stage)
    if batches is None:
        return len(rows)
    return min(batches, max((batch for batch, _ in rows if batch is not None), default=-1) + 1)


def _seconds(book: Book, stage: str) -> list[tuple[int | None, float]]:
    """(batch, seconds) of every call of a stage, in order."""
    table = book.timings()
    if not table.num_rows:
        return []
    names, seconds = table.column("name").to_pylist(), table.column("seconds").to_pylist()
    steps = table.column("step").to_pylist() if "step" in table.column_names else [None] * len(names)
    rows = zip(names, steps, seconds, strict=True)
    return [(step, value) for name, step, value in rows if name == stage]
