"""`wandb.plot`: the tables behind custom charts. rollbook stores the table and draws it with its own charts."""

from __future__ import annotations

from rollbook.adapters.wandb._data import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bar", "histogram", "line", "line_series", "scatter"]


def line(table: Table, x: str, y: str, stroke: str | None = None, title: str = "", **_options: object) -> Table:
    """The table of a line plot."""
    return table


def scatter(table: Table, x: str, y: str, title: str = "", **_options: object) -> Table:
    """The table of a scatter plot."""
    return table


def bar(table: Table, label: str, value: str, title: str = "", **_options: object) -> Table:
    """The table of a bar chart."""
    return table


def histogram(table: Table, value: str, title: str = "", **_options: object) -> Table:
    """The table of a histogram."""
    return table


def line_series(
    xs: Sequence[object],
    ys: Sequence[Sequence[object]],
    keys: Sequence[str] | None = None,
    title: str = "",
    xname: str = "x",
    **_options: object,
) -> Table:
    """Several lines as one table of step, line and value; `xs` is shared by all lines, or one sequence per line."""
    table = Table(columns=[xname, "line", "value"])
    for n, values in enumerate(ys):
        steps = xs[n] if len(xs) and isinstance(xs[0], (list, tuple)) else xs
        for step, value in zip(steps, values, strict=False):  # type: ignore[call-overload]
            table.add_data(step, keys[n] if keys else f"line {n}", value)
    return table
