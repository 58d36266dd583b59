"""Runs of a test that end without a keeper: nobody reads what would be sealed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rollbook.run import start_and_finish


@contextmanager
def nothing_is_kept() -> Iterator[None]:
    """`finish()` of runs with `keeper="inline"` neither seals nor forwards here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_and_finish, "_keep_here", lambda run: None)
        yield
