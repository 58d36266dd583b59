"""Which run is the current one, the trial of a sweep that it belongs to, and the errors of `wandb`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Run(Protocol):
        """What is asked of an open run here; `_run.Run` has it."""

        def finish(self, exit_code: int | None = None) -> None:
            """Finish it."""


__all__ = ["CommError", "Error", "Trial", "UsageError", "current", "enter", "forget", "runs", "termlog", "trial"]

_runs: list[Run] = []
_trials: list[Trial] = []


class Error(Exception):
    """The errors of `wandb`."""


class UsageError(Error):
    """Something was called in a way that makes no sense."""


class CommError(Error):
    """A run that is asked for is not there; nothing is ever sent anywhere."""


class Trial:
    """One trial of a sweep: what the next `init` gets.

    Attributes:
      sweep_id: of the sweep; settings: of this trial; project: of the sweep, if it names one.
    """

    def __init__(self, sweep_id: str, settings: dict[str, Any], project: str | None) -> None:
        self.sweep_id, self.settings, self.project = sweep_id, settings, project

    def __enter__(self) -> None:
        _trials.append(self)

    def __exit__(self, *_error: object) -> None:
        _trials.remove(self)


def trial() -> Trial | None:
    """The trial that runs now."""
    return _trials[-1] if _trials else None


def current() -> Any:
    """The run that was opened last and is not finished; None before `init`."""
    return _runs[-1] if _runs else None


def runs() -> list[Any]:
    """All runs that are open, oldest first."""
    return list(_runs)


def enter(run: Run) -> None:
    """The run is the current one."""
    _runs.append(run)


def forget(run: Run) -> None:
    """The run is over."""
    if run in _runs:
        _runs.remove(run)


def termlog(string: str = "", newline: bool = True, repeat: bool = True) -> None:
    """Print to the terminal, as wandb does."""
    sys.stderr.write(f"wandb (rollbook): {string}" + ("\n" if newline else ""))
