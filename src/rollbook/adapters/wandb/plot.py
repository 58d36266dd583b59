"""`wandb.plot`: the tables behind custom charts. rollbook stores the table and draws it with its own charts."""

from __future__ import annotations

from rollbook.adapters.wandb._data import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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


def plot_table(
    vega_spec_name: str, data_table: Table, fields: object = None, string_fields: object = None, **_options: object
) -> Table:
    """The table of a chart of your own.

    Args:
      vega_spec_name, fields, string_fields: of wandb's chart; not kept.
      data_table: returned as it is.
    """
    return data_table


def confusion_matrix(
    probs: Sequence[Sequence[float]] | None = None,
    y_true: Sequence[int] | None = None,
    preds: Sequence[int] | None = None,
    class_names: Sequence[str] | None = None,
    title: str = "",
    **_options: object,
) -> Table:
    """How often each class was taken for each other one: a row per pair that occurs."""
    from collections import Counter

    if preds is None:
        preds = [max(range(len(row)), key=row.__getitem__) for row in probs or ()]
    pairs = Counter(zip(map(int, y_true or ()), map(int, preds), strict=True))
    names = class_names or [f"Class_{n + 1}" for n in range(max((max(pair) for pair in pairs), default=-1) + 1)]
    table = Table(columns=["Actual", "Predicted", "nPredictions"])
    for (actual, predicted), count in sorted(pairs.items()):
        table.add_data(names[actual], names[predicted], count)
    return table


def pr_curve(
    y_true: Sequence[object],
    y_probas: Sequence[Sequence[float]],
    labels: Sequence[str] | None = None,
    *_arguments: object,
    **_options: object,
) -> Table:
    """The data of the curve: the true class of each example and the probability of each class."""
    rows = [[truth, *map(float, row)] for truth, row in zip(y_true, y_probas, strict=True)]
    names = labels or [f"class_{n}" for n in range(len(rows[0]) - 1 if rows else 0)]
    return Table(columns=["truth", *names], data=[[_plain(row[0]), *row[1:]] for row in rows])


roc_curve = pr_curve


def _plain(value: object) -> object:
    item = getattr(value, "item", None)
    return item() if callable(item) else value
