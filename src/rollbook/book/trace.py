"""A run's timings in the Chrome trace format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import numpy as np

from rollbook.book.table_charts import column, moments
from rollbook.book.table_protocols import ChartTables

__all__ = ["write_trace"]


def write_trace(book: ChartTables, path: str | os.PathLike[str]) -> str:
    """See `Book.trace`."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        for n, event in enumerate(_events(book)):
            file.write((",\n" if n else "") + json.dumps(event, default=str, allow_nan=False))
        file.write("\n]}\n")
    return os.fspath(path)


def _events(book: ChartTables) -> Iterator[dict[str, object]]:
    table = book.timings()
    ends, seconds = moments(table), column(table, "seconds")
    starts = ends - seconds
    first = float(np.nanmin(starts)) if len(starts) and np.isfinite(starts).any() else 0.0
    names = [str(name) for name in table["name"].to_pylist()]
    writers = [str(w) for w in table["writer"].to_pylist()] if "writer" in table.column_names else [""] * len(names)
    clocks = {clock: table[clock].to_pylist() for clock in book.clocks if clock in table.column_names}
    processes = {writer: n for n, writer in enumerate(dict.fromkeys(writers), 1)}
    for writer, number in processes.items():
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"{book.name} {writer}".strip()}}
    lanes: dict[str, list[list[float]]] = {}
    good = np.isfinite(starts) & np.isfinite(seconds)
    # Outer spans first where two begin together: then the spans of a lane nest, as the format wants them.
    for n in np.lexsort((-seconds, starts)).tolist():
        if not good[n]:
            continue
        begin, end = float(starts[n]), float(ends[n])
        lane = _lane(lanes.setdefault(writers[n], []), begin, end)
        known = {clock: cells[n] for clock, cells in clocks.items() if cells[n] is not None}
        yield {
            "ph": "X", "name": names[n].rpartition("/")[2], "cat": names[n], "pid": processes[writers[n]], "tid": lane,
            "ts": round((begin - first) * 1e6, 3), "dur": round(max(0.0, end - begin) * 1e6, 3), "args": known,
        }  # fmt: skip
    for kind, marks, word in (("alert", book.alerts(), "rule"), ("checkpoint", book.checkpoints(), "checkpoint_id")):
        words = marks[word].to_pylist() if word in marks.column_names else []
        for moment, said in zip(moments(marks).tolist(), words, strict=False):
            if np.isfinite(moment):
                yield {"ph": "i", "s": "g", "name": f"{kind}: {said}", "pid": 1, "tid": 0, "ts": (moment - first) * 1e6}


def _lane(lanes: list[list[float]], begin: float, end: float) -> int:
    """The first lane where a span lies beside or inside what is open: the rows do not tell threads apart."""
    slack = 2e-6  # times are kept in microseconds
    for n, open_until in enumerate(lanes):
        while open_until and open_until[-1] <= begin + slack:
            open_until.pop()
        if not open_until or end <= open_until[-1] + slack:
            open_until.append(end)
            return n
    lanes.append([end])
    return len(lanes) - 1
