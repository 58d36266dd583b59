"""Sinks in the training process: the terminal, and sink objects made by the user."""

from __future__ import annotations

import os

from rollbook.ground.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["LocalSinks"]

DRAIN_SECONDS = 10.0
"""How long the end of a run waits for sink objects to accept the remaining rows."""


class LocalSinks:
    """Feeds sinks from the journal's files. The terminal and files are fed in the thread that calls `step`. Each other
    object has a separate thread: one that hangs must not delay the training or its end. Nothing here raises.

    Importing and making it costs nothing; what it needs is loaded at the first step.

    Args:
      run_folder: the run's folder.
      specs: sink objects, and {"name": "terminal", …}.
      say: takes (cause, words) of what went wrong, each cause once.
    """

    def __init__(
        self,
        run_folder: str | os.PathLike[str],
        specs: Sequence[object],
        say: Callable[[str, str], object] | None = None,
    ) -> None:
        self._run_folder, self._specs = os.fspath(run_folder), list(specs)
        self._sinks: Any = None
        self._bill = Bill(tell=say)

    def step(self) -> None:
        """Deliver what is new, about once a second."""
        if self._ready():
            self._sinks.step()

    def close(self) -> None:
        """Deliver the rest and close the sinks. Calling it twice is fine."""
        if self._ready():
            for name in self._sinks.drain(DRAIN_SECONDS):
                words = f"sink {name} has not taken all rows in {DRAIN_SECONDS:g} seconds; the run has them all"
                self._bill.say(f"sink:{name}", words)
            self._sinks.close(ended=False, seconds=1.0)
        self._sinks, self._specs = None, []

    def _ready(self) -> bool:
        if self._sinks is None and self._specs:
            from rollbook.keeper.sinks import Sinks

            self._sinks = Sinks(self._run_folder, self._specs, inline=True, objects_apart=True, say=self._bill.say)
        return self._sinks is not None
