"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from rollbook.keeper import child
from sealing_forks import SealingForks

try:
    import hypothesis
except ImportError:  # the environments of the frameworks run some of these tests without it
    pass
else:
    # A busy machine makes nothing red: how long an example takes says nothing about whether it is right.
    hypothesis.settings.register_profile("rollbook", deadline=None, max_examples=25)
    hypothesis.settings.register_profile("long", deadline=None, max_examples=300)  # make test-long
    hypothesis.settings.load_profile("rollbook")


@pytest.fixture(autouse=True, scope="session")
def _sealing_children_have_pyarrow_loaded() -> Iterator[None]:
    """A run that is finished in a test's process is sealed by a fork; see sealing_forks."""
    if os.name != "posix":
        yield
        return
    forks, start_child = SealingForks(), child.start_child

    def start(command: Any, words: Any, log: Any) -> Any:
        is_usual = "rollbook.keeper.sealing_child" in command[-1]
        return forks.start(list(words), log) if is_usual else start_child(command, words, log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "start_child", start)
        yield
    forks.close()
