"""What every framework's logger does with a run: find or open it, write rows, keep settings, finish it."""

from __future__ import annotations

import os

from rollbook.adapters._run import find_run, keep_config
from rollbook.ground.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Door:
    """A run as a framework's logger uses it. Only the constructor raises; later failures are counted and reported once.

    Args:
      who: name of the adapter, for messages when there is no run.
      run: a run or a scope of a run. None uses the current run, or opens one; False records nothing.
      project, name: of a run that is opened here.
      options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
    Attributes:
      run: the run or scope; None if nothing is recorded.
      bill: counts failures.
    Raises:
      BadInput: `run` has another type, or `rollbook.init` has no such option.
    """

    def __init__(self, who: str, run: object, project: str, name: str, options: Mapping[str, object]) -> None:
        self.run: Any
        self.run, self._owned = find_run(run, project=project, name=name, options=options)
        self.bill = Bill(to=self.run) if self.run is not None else Bill(who=who)

    def log(self, values: Mapping[str, object], **clocks: Any) -> None:
        """Log one row under the native keys. Clocks that are None are left out."""
        if self.run is not None and values:
            self.run.log(values, **{name: at for name, at in clocks.items() if at is not None})

    def keep(self, cause: str, what: str, work: Callable[..., object], *arguments: object) -> None:
        """Run `work` if there is a run. A failure is counted under `cause` and reported as "<what> failed"."""
        if self.run is not None:
            self.bill.guard(cause, what, work, *arguments)

    def settings(self, settings: Mapping[str, object], seed: object = None) -> None:
        """Add a framework's settings to the run's config, and its seed to a run that was opened here without one."""
        self.keep("config", "keeping the configuration", self._settings, settings, seed)

    def _settings(self, settings: Mapping[str, object], seed: object) -> None:
        keep_config(self.run, settings)
        whole = self.run.run
        if self._owned and whole.seed is None and isinstance(seed, int) and not isinstance(seed, bool):
            whole.internals.fill_in(seed=seed)

    def checkpoint(self, path: str | os.PathLike[str], through: str = "step", **clocks: Any) -> None:
        """Register a file that the framework saved, without moving it. Does nothing if the file does not exist."""
        if os.path.exists(path):
            self.keep("checkpoint", "registering a checkpoint", self._checkpoint, path, through, clocks)

    def _checkpoint(self, path: str, through: str, clocks: Mapping[str, Any]) -> None:
        self.run.run.save_checkpoint(path=path, rng=False, through=through, **clocks)

    def finish(self) -> None:
        """Finish the run if it was opened here. Calling it twice is fine."""
        if self._owned:
            self.run.finish()
