"""Cases of a parametrised test: some in `make test`, all in `make test-long`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["some_of"]


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
