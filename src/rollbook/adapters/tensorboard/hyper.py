"""What CleanRL's programs say beside numbers: hyper-parameters as a text, and their names as that of a folder."""

from __future__ import annotations

import re

from rollbook.adapters._plain import parsed

__all__ = ["read_table", "split_name"]

_NAME = re.compile(r"(?P<env>.+)__(?P<exp>.+)__(?P<seed>\d{1,9})__(?P<time>\d{10})")


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


def split_name(name: str) -> tuple[str, int | None]:
    """(name, seed) of a folder called `<env_id>__<exp_name>__<seed>__<unix seconds>`; of any other (the name, None).

    Runs that differ in their seed then share a name.
    """
    match = _NAME.fullmatch(name)
    return (name, None) if match is None else (f"{match['env']}__{match['exp']}", int(match["seed"]))
