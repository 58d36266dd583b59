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


_runs: list[Run] = []
_current: list[Run] = []
_trials: list[Trial] = []


class Error(Exception):
    """The errors of `wandb`."""


class UsageError(Error):
    """A call with arguments that make no sense."""


class UnsupportedError(UsageError):
    """wandb's error for a feature that its server lacks; never raised here."""


class CommError(Error):
    """The requested run does not exist. Nothing is ever sent over the network."""


class AuthenticationError(CommError):
    """wandb's error for a refused login; never raised here."""


class ConfigError(Error):
    """A file of settings that does not exist or is no YAML. A changed setting, wandb's other reason, is taken here."""


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
    """The run that `wandb.log` writes, until it is finished; None before `init`."""
    return _current[0] if _current else None


def runs() -> list[Any]:
    """All open runs, oldest first."""
    return list(_runs)


def enter(run: Run, is_current: bool = True) -> None:
    """Add an open run, as the current one or in addition to it."""
    _runs.append(run)
    if is_current:
        _current[:] = [run]


def forget(run: Run) -> None:
    """Remove a finished run."""
    for held in (_runs, _current):
        if run in held:
            held.remove(run)


_printed: set[str] = set()


def termlog(string: str = "", newline: bool = True, repeat: bool = True) -> None:
    """Print to the terminal, as wandb does. Arguments as in `wandb.termlog`."""
    if not repeat and string in _printed:
        return
    _printed.add(string)
    sys.stderr.write(f"wandb (rollbook): {string}" + ("\n" if newline else ""))
