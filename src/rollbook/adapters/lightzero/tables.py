"""The tables of LightZero's text logs, drawn as DI-engine draws them.

+-------+------------+----------------+-------------+--------------------+
| Name  | cur_lr_avg | total_loss_avg | q_value_avg | target_q_value_avg |
+-------+------------+----------------+-------------+--------------------+
| Value | 0.001000   | 0.098862       | 1.045718    | 0.157632           |
+-------+------------+----------------+-------------+--------------------+
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollbook.values import scalar_of

__all__ = ["get_tabulate_vars", "get_tabulate_vars_hor", "shown"]

_COLUMNS = 4


def shown(value: Any) -> str:
    """A number with six decimals, a text or a list as it is."""
    if isinstance(value, (str, list, tuple)):
        return str(value)
    number = scalar_of(value)
    if number is None:
        return str(value.tolist() if hasattr(value, "tolist") else value)
    try:
        return f"{number:.6f}"
    except OverflowError:  # an integer beyond the floats
        return str(number)


def get_tabulate_vars(variables: Mapping[str, Any]) -> str:
    """One name a line, under the heads Name and Value; begins with a line end. Six decimals stay six."""
    rows = [("Name", "Value"), *((name, shown(value)) for name, value in variables.items())]
    left = max(len(name) for name, _ in rows)
    right = max(len(value) for _, value in rows)
    rule = f"+{'-' * (left + 2)}+{'-' * (right + 2)}+"
    head = f"| {'Name':<{left}} | {'Value':>{right}} |"
    lines = [rule, head, rule.replace("-", "=")]
    for name, value in rows[1:]:
        lines += [f"| {name:<{left}} | {value:>{right}} |", rule]
    return "\n" + "\n".join(lines)


def get_tabulate_vars_hor(variables: Mapping[str, Any], *, compat: bool = False) -> str:
    """Names above values, four side by side; begins with a line end, and every block ends with one.

    Args:
      variables: name -> number, text or list.
      compat: with the stray empty line that DI-engine puts after a multiple of four.
    """
    names, values = list(variables), [shown(value) for value in variables.values()]
    parts = ["\n"]
    for start in range(0, len(names), _COLUMNS):
        block = slice(start, start + _COLUMNS)
        parts.append(_block(["Name", *names[block]], ["Value", *values[block]]))
    if compat and names and len(names) % _COLUMNS == 0:
        parts.append("\n")
    return "".join(parts)


def _block(names: Sequence[str], values: Sequence[str]) -> str:
    widths = [max(len(name), len(value)) for name, value in zip(names, values, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    rows = []
    for cells in (names, values):
        line = "|".join(f" {cell:<{width}} " for cell, width in zip(cells, widths, strict=True))
        rows.append(f"|{line}|\n{rule}")
    return rule + "".join(rows)
