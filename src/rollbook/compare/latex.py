"""A comparison as a table for a paper, in LaTeX with booktabs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rollbook.compare.scores import Group
from rollbook.stats import Aggregate

__all__ = ["aggregates_table", "latex_table"]

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def latex_table(groups: tuple[Group, ...], metric: str, by: str, how: str, statistic: str) -> str:
    """A `tabular` of group, seeds, estimate and 95 % interval; a comment above it says what the numbers are.

    As many digits are shown as two significant ones of half an interval need; without an interval four.
    """
    name = "IQM" if statistic == "iqm" else statistic
    lines = [
        f"% {name} of {metric} ({how}) by {by}, 95 % intervals; needs \\usepackage{{booktabs}}",
        r"\begin{tabular}{lrrc}",
        r"\toprule",
        rf"{escaped(by.removeprefix('config.'))} & seeds & {escaped(name)} & 95\,\% interval \\",
        r"\midrule",
    ]
    for group in groups:
        of = group.interval
        low, high = (None, None) if of is None else (of.low, of.high)
        known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
        half = (high - low) / 2 if known and low is not None and high is not None else 0.0
        estimate = "--" if of is None else _number(of.estimate, half)
        span = f"{_number(low, half)} to {_number(high, half)}" if known else "--"
        lines.append(rf"{escaped(group.label)} & {len(group.seeds_R)} & {estimate} & {span} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def aggregates_table(
    aggregates: Mapping[str, tuple[Aggregate, ...]], counts: Mapping[str, int], metric: str, by: str
) -> str:
    """A `tabular` with a row a group and a column a statistic, each with its interval in brackets."""
    names = [each.name for each in next(iter(aggregates.values()), ())]
    lines = [
        f"% aggregates of {metric} by {by}, 95 % bootstrap intervals; needs \\usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{lr{'c' * len(names)}}}",
        r"\toprule",
        rf"{escaped(by.removeprefix('config.'))} & runs & {' & '.join(map(escaped, names))} \\",
        r"\midrule",
    ]
    for label, row in aggregates.items():
        halves = [0.0 if each.low is None or each.high is None else (each.high - each.low) / 2 for each in row]
        cells = [
            f"{_number(each.estimate, half)} ({_number(each.low, half)} to {_number(each.high, half)})"
            if half
            else _number(each.estimate, half)
            for each, half in zip(row, halves, strict=True)
        ]
        lines.append(rf"{escaped(label)} & {counts[label]} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX prints as it stands; what does not print is left out."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text if letter.isprintable())


def _number(value: float | None, half: float) -> str:
    if value is None or not math.isfinite(value):
        return "--"
    if not half > 0:
        return f"${value:.4g}$" if 1e-3 <= abs(value) < 1e6 or not value else f"${value:.3e}$"
    return f"${value:.{max(0, 1 - math.floor(math.log10(half)))}f}$"
