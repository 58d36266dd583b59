"""Choose the run that an adapter writes to: the one it is given, the current one, or a new one.

Frameworks print their own tables, so a run that an adapter opens has no terminal sink unless the caller names one.
"""

from __future__ import annotations

import re
import weakref

from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
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


def find_run(
    run: object,
    *,
    project: str,
    name: str,
    options: Mapping[str, object] | None = None,
    seed: int | None = None,
) -> tuple[Run | None, bool]:
    """The run to write to, and whether it was opened here (the adapter then finishes it).

    Args:
      run: a run or a scope of a run. None uses the current run or opens one; False records nothing.
      project, name: of a run that has to be opened. Made valid as folder names.
      options: further arguments of `rollbook.init`; they override the above.
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
        arguments.update(options or {})
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
