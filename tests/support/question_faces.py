"""What a door shows of a question: its name, the types of its options, and the words of a docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from rollbook.schema.question import Option


def own_types(option: Option) -> str:
    """The type of an option, however its module writes it."""
    return re.sub(r"[\s'\"]|typing\.|collections\.abc\.|NoneType", "", str(option.type)).replace("|None", "")


def words_of_arguments(method: Callable[..., object]) -> dict[str, str]:
    """The Args of a docstring: name -> words."""
    text = (inspect.getdoc(method) or "").partition("Args:\n")[2]
    block = re.split(r"\n(?=\S)", text)[0]
    return {
        name: " ".join(words.split())
        for name, words in re.findall(r"^  (\w+): (.*?)(?=^  \w+:|\Z)", block, re.MULTILINE | re.DOTALL)
    }
