"""The table of hyper-parameters that CleanRL's programs write as a text."""

from __future__ import annotations

from rollbook.values.scalars import parsed

__all__ = ["read_table"]


def read_table(text: str) -> dict[str, object]:
    """The parameters of a Markdown table `|param|value|`; {} for any other text."""
    lines = [line.strip() for line in str(text).splitlines()]
    if len(lines) < 3 or lines[0].replace(" ", "") != "|param|value|":
        return {}
    parameters = {}
    for line in lines[2:]:
        key, _, value = line.strip("|").partition("|")
        if key.strip():
            parameters[key.strip()] = parsed(value.strip(), {"True": True, "False": False, "None": None})
    return parameters
