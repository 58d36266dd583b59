"""The tables of LightZero's text logs, drawn as DI-engine draws them.

+-------+------------+----------------+-------------+--------------------+
| Name  | cur_lr_avg | total_loss_avg | q_value_avg | target_q_value_avg |
+-------+------------+----------------+-------------+--------------------+
| Value | 0.001000   | 0.098862       | 1.045718    | 0.157632           |
+-------+------------+----------------+-------------+--------------------+
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rollbook.ground.optional import need
from rollbook.ground.values import scalar_of

__all__ = ["get_tabulate_vars", "get_tabulate_vars_hor", "pretty_print", "shown"]

_COLUMNS = 4


def shown(value: object) -> str:
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


def get_tabulate_vars(variables: Mapping[str, object], *, compat: bool = False) -> str:
    """One name a line, under the heads Name and Value; begins with a line end. Six decimals stay six.

    Args:
      variables: name -> number, text or list.
      compat: as DI-engine has it, which loses trailing decimals (1.0 is shown as 1) and knows numbers alone.
    Raises:
      MissingExtra: `compat`, and the package tabulate is not there.
    """
    if compat:
        tabulate = need("tabulate", extra="lightzero", why="get_tabulate_vars(compat=True)", also="tabulate").tabulate
        data = [[name, f"{value:.6f}"] for name, value in variables.items()]
        return "\n" + str(tabulate(data, headers=["Name", "Value"], tablefmt="grid"))
    rows = [("Name", "Value"), *((name, shown(value)) for name, value in variables.items())]
    left = max(len(name) for name, _ in rows)
    right = max(len(value) for _, value in rows)
    rule = f"+{'-' * (left + 2)}+{'-' * (right + 2)}+"
    head = f"| {'Name':<{left}} | {'Value':>{right}} |"
    lines = [rule, head, rule.replace("-", "=")]
    for name, value in rows[1:]:
        lines += [f"| {name:<{left}} | {value:>{right}} |", rule]
    return "\n" + "\n".join(lines)


def get_tabulate_vars_hor(variables: Mapping[str, object], *, compat: bool = False) -> str:
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


def pretty_print(result: Mapping[str, object], direct_print: bool = True) -> str:
    """A result as YAML: sorted, without what is None.

    Args:
      result: name -> anything that JSON holds; numpy's and torch's numbers and arrays, too.
      direct_print: write it to the standard output as well.
    Raises:
      MissingExtra: the package PyYAML, which DI-engine brings, is not there.
    """
    import json

    yaml = need("yaml", extra="lightzero", why="pretty_print", also="PyYAML")
    cleaned = json.dumps({name: value for name, value in result.items() if value is not None}, default=_listed)
    text = str(yaml.safe_dump(json.loads(cleaned), default_flow_style=False))
    if direct_print:
        sys.stdout.write(f"{text}\n")
    return text


def _listed(value: object) -> object:
    if hasattr(value, "tolist"):
        plain: object = value.tolist()
        return plain
    raise TypeError(f"{type(value).__name__} is nothing that YAML holds: {value!r:.100}")
