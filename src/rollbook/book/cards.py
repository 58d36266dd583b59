"""How a book shows itself in a notebook."""

from __future__ import annotations

from rollbook.book.table_protocols import ChartTables
from rollbook.plots.cards import card, grid, sentences, spark

__all__ = ["book_card"]

_CANONICAL = ("test/return", "train/return", "train/length", "update/loss/policy", "update/loss/value")
_MOST_KEYS, _POINTS, _MOST_ALERTS = 10, 200, 5


def book_card(book: ChartTables, status: str, seed: int | None) -> str:
    """Identity, what health rules found, and the newest keys with their last value and a small curve."""
    canonical = book.canonical()
    keys = [key for key in _CANONICAL if key in canonical or key in book.keys()]  # noqa: SIM118 - a method, no dict
    known = {canonical.get(key, key) for key in keys}
    others = [key for key in book.keys() if key not in known and not key.startswith(("host/", "rollbook/"))]  # noqa: SIM118
    keys = [*keys, *others][:_MOST_KEYS]
    series = book.batch(keys, points=_POINTS) if keys else {}
    rows = [
        {
            "key": key,
            "last": float(each.mean[-1]) if len(each) else None,
            "rows": int(each.count.sum()) + each.non_finite,
        }
        for key, each in series.items()
    ]
    drawn = [spark([(each.x, each.mean)], [(each.x, each.min, each.max)]) for each in series.values()]
    about = f"{status}, id {book.id}" + ("" if seed is None else f", seed {seed}")
    told = sentences(_said(book))
    return card(f"{book.project}/{book.name}", f"{about}, {book.path}", told, grid(rows, sparks={"": drawn}))


def _said(book: ChartTables) -> list[str]:
    """Each finding once, failures first, then the newest; notes are left to `alerts()`."""
    rows = [row for row in book.alerts().to_pylist() if row["level"] in ("warn", "fail")]
    each = {(row["level"], row["rule"], row["key"]): row for row in reversed(rows)}  # the first of each
    found = sorted(each.values(), key=lambda row: (row["level"] == "fail", row["time"]), reverse=True)
    more = [f"and {len(found) - _MOST_ALERTS} more: rollbook alerts {book.id}"] if len(found) > _MOST_ALERTS else []
    return [f"{row['level']} {row['rule']}: {row['message']}" for row in found[:_MOST_ALERTS]] + more
