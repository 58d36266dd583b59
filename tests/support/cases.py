"""Cases of a parametrised test, and examples of hypothesis: some in `make test`, all in `make test-long`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["examples", "some_of"]

long_ones_are_asked = True
"""False in `make test`, which leaves them out: see conftest."""


def some_of(values: Iterable[Any], are_chosen: int | Callable[[Any], bool], ids: Sequence[str] = ()) -> list[Any]:
    """All values; those after the first so many, or that are not chosen, with the mark `long`."""
    every = list(values)
    chosen = every[:are_chosen] if isinstance(are_chosen, int) else [each for each in every if are_chosen(each)]
    cases = []
    for number, each in enumerate(every):
        if (is_long := each not in chosen) and not long_ones_are_asked:
            continue
        arguments = each if isinstance(each, tuple) else (each,)
        marks, name = [pytest.mark.long] if is_long else [], ids[number] if ids else None
        cases.append(pytest.param(*arguments, marks=marks, id=name) if marks or name else each)
    return cases


def examples(few: int) -> int:
    """`max_examples` where one takes long: few in `make test`, in `make test-long` twelve times as many."""
    from hypothesis import settings

    return max(few, few * settings.default.max_examples // 25)
