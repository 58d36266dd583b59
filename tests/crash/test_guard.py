"""What rollbook does with exceptions inside it: its own become its errors, those of signal handlers pass."""

from __future__ import annotations

import signal
from types import FrameType

import pytest

from rollbook.errors import Damaged
from rollbook.system.guard import raising


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_a_failure_becomes_another_error_but_an_exception_of_a_signal_handler_stays_what_it_is() -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise ValueError("a time limit")

    with pytest.raises(Damaged, match="twelve"), raising(lambda err: Damaged(str(err)), ValueError):
        int("twelve")
    with pytest.raises(Damaged) as caught, raising(lambda err: Damaged(str(err)), ValueError, chained=True):
        int("twelve")
    assert isinstance(caught.value.__cause__, ValueError)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(ValueError, match="a time limit"), raising(lambda err: Damaged(str(err)), ValueError):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
