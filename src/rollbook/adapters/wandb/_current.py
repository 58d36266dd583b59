"""The current run, the sweep trial that it belongs to, and the errors of `wandb`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Run(Protocol):
        """What is needed of an open run here; `_run.Run` implements it."""

        def finish(self, exit_code: int | None = None) -> None:
            """Finish the run."""


__all__ = ["CommError", "Error", "Trial", "UsageError", "current", "enter", "forget", "runs", "termlog", "trial"]

_runs: list[Run] = []
_trials: list[Trial] = []


class Error(Exception):
    """The errors of `wandb`."""


class UsageError(Error):
    """A call with arguments that make no sense."""


class CommError(Error):
    """The requested run does not exist. Nothing is ever sent over the network."""


class Trial:
    """One trial of a sweep: the settings for the next `init`.

    Attributes:
      sweep_id: of the sweep.
      settings: of this trial.
      project: of the sweep, if it names one.
    """

    def __init__(self, sweep_id: str, settings: dict[str, Any], project: str | None) -> None:
        self.sweep_id, self.settings, self.project = sweep_id, settings, project

    def __enter__(self) -> None:
        _trials.append(self)

    def __exit__(self, *_error: object) -> None:
        _trials.remove(self)


def trial() -> Trial | None:
    """The trial that is running."""
    return _trials[-1] if _trials else None


def current() -> Any:
    """The run that was opened last and is not finished; None before `init`."""
    return _runs[-1] if _runs else None


def runs() -> list[Any]:
    """All open runs, oldest first."""
    return list(_runs)


def enter(run: Run) -> None:
    """Make the run the current one."""
    _runs.append(run)


def forget(run: Run) -> None:
    """Remove a finished run."""
    if run in _runs:
        _runs.remove(run)


def termlog(string: str = "", newline: bool = True, repeat: bool = True) -> None:
    """Print to the terminal, as wandb does. Arguments as in `wandb.termlog`."""
    sys.stderr.write(f"wandb (rollbook): {string}" + ("\n" if newline else ""))
