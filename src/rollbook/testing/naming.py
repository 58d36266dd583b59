"""Names the rule of a contract that does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def naming(name: str, check: Callable[..., object]) -> Iterator[None]:
    """Add the rule's name and sentence as a note to whatever is raised inside, by the check or by what it checks."""
    try:
        yield
    except Exception as err:
        err.add_note(f"The contract's rule {name} does not hold: {' '.join((check.__doc__ or '').split())}")
        raise
