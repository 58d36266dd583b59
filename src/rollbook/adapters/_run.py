"""The run that an adapter writes to: the one it is given, the current one, or a new one, and what is done with it.

Frameworks print their own tables, so a run that an adapter opens has no terminal sink unless the caller names one.
"""

from __future__ import annotations

import os
import re
import weakref
from _thread import get_ident

from rollbook.errors import BadInput, UnknownKey
from rollbook.system.bill import Bill
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.run.open_run import OpenRun
    from rollbook.run.run import Run
    from rollbook.run.scope import Scope


def clean_name(text: object, default: str) -> str:
    """`text` as the name of a run or project: characters that are not allowed in folder names become "-"."""
    name = re.sub(r'[/\\:*?"<>|\x00-\x1f\x7f]+', "-", str(text or "")).strip(" .-")
    return name[:100] or default


def takes_native_keys(run: object) -> Any:
    """Mark the run (or scope): a framework chooses its keys, so a key named like a clock causes no warning."""
    writer = getattr(getattr(run, "internals", None), "writer", None)
    if writer is not None:
        writer.native_keys = True
    return run


def keep_config(run: Any, settings: Mapping[str, object]) -> None:
    """Add a framework's settings to the run's config. Entries that the program set itself stay."""
    config = run.run.config
    config.update({str(key): value for key, value in settings.items() if key not in config})


def reached(run: Any) -> dict[str, int]:
    """The highest reading of each clock in the run's effective history, earlier attempts and all tables included."""
    highest: dict[str, int] = run.internals.reached()
    return highest


def go_on_at(run: Any, clock: str, reading: int) -> None:
    """In a resumed run, before its first row: the framework goes on at a reading of a clock. What was recorded beyond
    that is abandoned. Where nothing comes before it, that is all, which is said.

    Args:
      reading: the last one that stays; -1 for a training that begins anew.
    """
    whole = run.run
    if not whole.resumed or not whole.internals.writer.main or reached(run).get(clock, -1) <= reading:
        return
    if reading >= 0:
        with tolerating(UnknownKey):
            whole.rewind(**{clock: reading})
            return
    whole.internals.begin_anew(f"the training begins at {clock} {reading + 1}")


def options_of(project: str | None, run_options: Mapping[str, object] | None) -> dict[str, object]:
    """The arguments of `rollbook.init` that a user gave to an adapter, whose `project` is one of them."""
    return {**(run_options or {}), **({} if project is None else {"project": project})}


def needed(run: object, who: str, part: str) -> Any:
    """The run that `find_run` found.

    Raises:
      BadInput: there is none: the user passed run=False.
    """
    if run is None:
        raise BadInput(f"{who}(run=False) would record nothing: leave the {part} out instead")
    return run


def find_run(
    run: object,
    *,
    project: str,
    name: str,
    options: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
    seed: int | None = None,
) -> tuple[Run | None, bool]:
    """The run to write to, and whether it was opened here (the adapter then finishes it).

    Args:
      run: a run or a scope of a run. None uses the current run or opens one; False records nothing.
      project, name: of a run that has to be opened. Made valid as folder names.
      options: further arguments of `rollbook.init`; they override the above. If any is given, a new run is opened.
      defaults: what the adapter knows about a run that has to be opened; `options` override it.
    Raises:
      BadInput: `run` has another type.
    """
    if run is False:
        return None, False
    if run is None and not options:
        from rollbook.run.current import current_run

        run = current_run()
    if run is None:
        from rollbook.run.session import init
        from rollbook.sinks import QUIET

        arguments: dict[str, Any] = {"project": project, "name": name, "seed": seed, "sinks": QUIET}
        arguments |= {**(defaults or {}), **(options or {})}
        opened = init(
            clean_name(arguments.pop("project"), "runs"), clean_name(arguments.pop("name"), "run"), **arguments
        )
        return takes_native_keys(opened), True
    if not callable(getattr(run, "log", None)) or not callable(getattr(run, "record", None)):
        raise BadInput(
            f"run={run!r:.200} is a {type(run).__name__}, not a rollbook run: pass what rollbook.init() returned, "
            "None to use the current run (or open one), or False to keep no book"
        )
    return takes_native_keys(run), False  # a Scope has the same verbs


_recording: set[int] = set()
"""Threads in which a host writes to its own files what an adapter has just recorded."""


class Recorded:
    """While it is open, `--tensorboard` leaves out what this thread writes to event files: it is in the run already."""

    def __enter__(self) -> None:
        _recording.add(get_ident())

    def __exit__(self, *_error: object) -> None:
        _recording.discard(get_ident())


def is_recorded() -> bool:
    """Whether this thread is inside of `Recorded`."""
    return get_ident() in _recording


class JoinedRun:
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


class Users:
    """The loggers of one kind that write to a run. A run that they opened ends when the last of them is closed."""

    def __init__(self) -> None:
        self._users: weakref.WeakKeyDictionary[OpenRun, weakref.WeakSet[object]] = weakref.WeakKeyDictionary()
        self._opened: weakref.WeakSet[OpenRun] = weakref.WeakSet()

    def join(self, run: Scope, user: object, opened: bool) -> None:
        """Register `user` as a writer of the run (or of a scope of it). `opened`: it opened the run."""
        whole = run.run
        self._users.setdefault(whole, weakref.WeakSet()).add(user)
        if opened:
            self._opened.add(whole)

    def running(self) -> OpenRun | None:
        """A run that one of them writes to, or None."""
        return next((run for run, users in self._users.items() if users and run.status == "running"), None)

    def of(self, run: Any) -> list[Any]:
        """The loggers that write to the run."""
        return list(self._users.get(run.run, ()))

    def leave(self, run: Any, user: object) -> None:
        """Remove `user`. If it was the last logger and one of them opened the run, finish the run. Twice is fine."""
        whole = run.run
        users = self._users.get(whole)
        if users is None or user not in users:
            return
        users.discard(user)
        if not users and whole in self._opened:
            self._opened.discard(whole)
            whole.finish()
