"""Cases of a parametrised test, and examples of hypothesis: some in `make test`, all in `make test-long`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["examples", "some_of"]


def some_of(values: Iterable[Any], are_chosen: int | Callable[[Any], bool]) -> list[Any]:
    """All values; those after the first so many, or that are not chosen, with the mark `long`."""
    every = list(values)
    chosen = every[:are_chosen] if isinstance(are_chosen, int) else [each for each in every if are_chosen(each)]
    return [
        each
        if each in chosen
        else pytest.param(*each, marks=pytest.mark.long)
        if isinstance(each, tuple)
        else pytest.param(each, marks=pytest.mark.long)
        for each in every
    ]


def examples(few: int) -> int:
    """`max_examples` where one takes long: few in `make test`, in `make test-long` as many times more as of others."""
    from hypothesis import settings

    return few * settings.default.max_examples // settings.get_profile("rollbook").max_examples
