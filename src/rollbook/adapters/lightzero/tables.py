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

from rollbook.system.optional import need
from rollbook.values import scalar_of

_COLUMNS = 4


def shown(value: object) -> str:
    """A number with six decimals; a text or a list unchanged."""
    if isinstance(value, (str, list, tuple)):
        return str(value)
    number = scalar_of(value)
    if number is None:
        return str(value.tolist() if hasattr(value, "tolist") else value)
    try:
        return f"{number:.6f}"
    except OverflowError:  # an integer too large for a float
        return str(number)


def get_tabulate_vars(variables: Mapping[str, object], *, compat: bool = False) -> str:
    """One name per line, under the heads Name and Value; begins with a newline. Numbers have six decimals.

    Args:
      variables: name -> number, text or list.
      compat: as in DI-engine, which drops trailing zeros (1.0 is shown as 1) and only accepts numbers.
    Raises:
      MissingExtra: `compat` is set and the package tabulate is not installed.
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
    """Names above values, four per block; begins with a newline, and every block ends with one.

    Args:
      variables: name -> number, text or list.
      compat: with the extra empty line that DI-engine writes after a multiple of four.
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
    """A result as YAML: sorted, without None.

    Args:
      result: name -> JSON data; also numbers and arrays of numpy and torch.
      direct_print: also write it to standard output.
    Raises:
      MissingExtra: PyYAML, which DI-engine installs, is missing.
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
