"""Jsonl: one JSON object a line in log/jsonl/metrics.jsonl."""

from __future__ import annotations

import json
import math

from rollbook.sinks._files import FileSink
from rollbook.sinks._plain import whole_number
from rollbook.values.known import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rollbook.protocols import Row, RunInfo

PATH = "log/jsonl/metrics.jsonl"


class Jsonl(FileSink):
    """Rows as JSON lines: {"time": 1700000000.25, "attempt": 1, "scope": "train", "env_step": 64, "train/return": 9.5}.

    Each line is valid JSON (RFC 8259) in ASCII. JSON has no NaN and no infinities: they are written as the strings
    "NaN", "Infinity" and "-Infinity", which `float()` in Python reads. Integers keep all their digits. Histograms,
    images, videos and other kinds of values are objects with a "kind". A key with the name of a clock, or of one of the
    first three fields, is written as "value/<key>". A scope of "" is left out.
    """

    accepts: frozenset[type] = frozenset({float, int, bool, str, *(kind.type for kind in KINDS.values())})

    def __init__(self) -> None:
        super().__init__()
        self._reserved: frozenset[str] = frozenset()

    def _opened(self, run: RunInfo) -> None:
        self._reserved = frozenset({"time", "attempt", "scope", *run.clocks})

    def _owned(self) -> Iterable[str]:
        return (PATH,)

    def _render(self, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
        for row in rows:
            if not row.values:
                continue
            line: dict[str, object] = {"time": row.time, "attempt": row.attempt}
            if row.scope:
                line["scope"] = row.scope
            line.update(row.clocks)
            for key, value in row.values.items():
                taken = key in self._reserved or key in row.clocks
                line[f"value/{key}" if taken else key] = _as_json(value)
            yield PATH, _encode(line)


def _encode(line: dict[str, object]) -> bytes:
    return json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def _number(value: float) -> float | int | str:
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if -(10**4000) < value < 10**4000:
        return int(value)
    return whole_number(value)


def _as_json(value: object) -> object:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if isinstance(value, (float, int)):
        return _number(value)
    data = KINDS.as_json(value, _as_json)
    return data if data is not None else str(value)  # a kind of value unknown to this version
