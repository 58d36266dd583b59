"""Histograms of one key over training, converted to common bins so that they can be compared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollbook.book.questions import axis_values, cells_of, in_time
from rollbook.errors import BadInput
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import default_axis, started
from rollbook.server.shared.shapes import Answer, Num, OfRun, num, plain
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext

_MOST_BINS, _MOST_STEPS, _MOST_KEYS = 200, 400, 500


class HistogramsAsk(OfRun, kw_only=True):
    """Which histograms.

    Attributes:
      key: one of `keys`; default: the first. bins: number of common bins.
      steps: the largest number of histograms, evenly spread over training, with the last one.
    """

    key: str | None = None
    x: str | None = None
    bins: int = 48
    steps: int = 200


class HistogramsAnswer(Answer, kw_only=True):
    """Histograms of one key.

    Attributes:
      keys: all keys with histograms; total: how many the key has.
      edges: of the bins, one more than bins; positions: of the histograms on the axis `x`.
      counts: for each position the numbers in each bin; shares of bins that were recorded wider are no integers.
      low, high, mean: of each histogram, exact.
    """

    keys: list[str]
    key: str
    x: str
    total: int
    edges: list[float]
    positions: list[Num]
    counts: list[list[float]]
    low: list[Num]
    high: list[Num]
    mean: list[Num]


def histograms(context: ServerContext, ask: HistogramsAsk) -> HistogramsAnswer:
    """The histograms of a key over training, in common bins."""
    if not (1 <= ask.bins <= _MOST_BINS and 1 <= ask.steps <= _MOST_STEPS):
        raise BadInput(f"bins={ask.bins}, steps={ask.steps}: 1 to {_MOST_BINS} bins, 1 to {_MOST_STEPS} steps")
    row = context.row(ask.run)
    x = ask.x or default_axis(context, row)

    def work(db: Locked) -> tuple[list[str], str, int, pa.Table]:
        columns = db.columns["histograms"]
        if "key" not in columns:
            return [], "", 0, db.table("select * from histograms limit 0")
        found = db.table(f"select distinct key from histograms where key is not null order by key limit {_MOST_KEYS}")
        keys = [str(key) for key in found["key"].to_pylist()]
        key = ask.key if ask.key is not None else (keys[0] if keys else "")
        total = int(db.table("select count(*) as n from histograms where key = ?", [key])["n"][0].as_py())
        every = max(1, -(-total // ask.steps))
        numbered = f"select *, row_number() over ({in_time(columns)}) as place_ from histograms where key = ?"
        window = (
            f"select * exclude (place_) from ({numbered}) where (place_ - {total}) % {every} = 0 {in_time(columns)}"
        )
        return keys, key, total, db.table(window, [key])

    keys, key, total, picked = with_tables(context, row, ["histograms"], "effective", work)
    recorded = [recorded_ for cells in cells_of(picked) if (recorded_ := _recorded(cells)) is not None]
    positions = axis_values(picked, x, started(row)) if picked.num_rows else np.empty(0)
    kept = [n for n, cells in enumerate(cells_of(picked)) if _recorded(cells) is not None]
    edges = _edges(recorded, ask.bins)
    return HistogramsAnswer(
        keys=[plain(each) for each in keys],
        key=plain(key),
        x=plain(x),
        total=total,
        edges=edges.tolist(),
        positions=[num(float(positions[n])) for n in kept],
        counts=[np.round(_binned(one, edges), 3).tolist() for one in recorded],
        low=[num(float(one[0][0])) for one in recorded],
        high=[num(float(one[0][-1])) for one in recorded],
        mean=[num(_mean(one)) for one in recorded],
    )


_Recorded = tuple[NDArray[np.float64], NDArray[np.float64] | None]
"""Sorted values and None, or the edges of bins and their counts."""


def _recorded(cells: dict[str, object]) -> _Recorded | None:
    """A row as it was recorded; None if nothing finite is in it."""
    values, edges, counts = cells.get("values"), cells.get("edges"), cells.get("counts")
    if values is not None and len(values):  # type: ignore[arg-type]
        numbers = np.asarray(values, dtype=np.float64)
        numbers = np.sort(numbers[np.isfinite(numbers)])
        return (numbers, None) if len(numbers) else None
    if edges is None or counts is None:
        return None
    ends, many = np.asarray(edges, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    usable = len(ends) == len(many) + 1 > 1 and bool(np.isfinite(ends).all()) and bool((np.diff(ends) >= 0).all())
    return (ends, np.nan_to_num(many)) if usable else None


def _edges(recorded: list[_Recorded], bins: int) -> NDArray[np.float64]:
    if not recorded:
        return np.empty(0)
    low, high = min(one[0][0] for one in recorded), max(one[0][-1] for one in recorded)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def _binned(one: _Recorded, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers in each bin; what was recorded in wider bins is spread evenly over them."""
    values, counts = one
    if counts is None:
        return np.histogram(values, edges)[0].astype(np.float64)
    below = np.concatenate([[0.0], np.cumsum(counts)])
    return np.diff(np.interp(edges, values, below))


def _mean(one: _Recorded) -> float:
    values, counts = one
    if counts is None:
        return float(values.mean())
    return float(((values[:-1] + values[1:]) / 2 * counts).sum() / max(counts.sum(), 1e-300))


ENDPOINTS = [
    Endpoint(
        "GET",
        "/api/runs/{run}/histograms",
        HistogramsAsk,
        HistogramsAnswer,
        histograms,
        "Histograms of a key over training, in common bins",
    ),
]
