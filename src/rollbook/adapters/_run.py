"""The run that an adapter writes to: the one it is given, the current one, or a new one, and what is done with it.

Frameworks print their own tables, so a run that an adapter opens has no terminal sink unless the caller names one.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from _thread import get_ident
from functools import wraps

from rollbook.errors import BadInput, UnknownKey
from rollbook.run.arguments import GoesOn
from rollbook.run.training import Training, contradiction, end_those_left, opener_of, trainings_of
from rollbook.system.bill import Bill, warn_caller
from rollbook.system.guard import tolerating
from rollbook.values import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    Hook = TypeVar("Hook", bound=Callable[..., Any])

    from rollbook.run.open_run import OpenRun
    from rollbook.run.run import Run
    from rollbook.run.scope import Scope


def clean_name(text: object, default: str) -> str:
    """`text` as the name of a run or project: characters that are not allowed in folder names become "-"."""
    name = re.sub(r'[/\\:*?"<>|\x00-\x1f\x7f]+', "-", str(text or "")).strip(" .-")
    return name[:100] or default


_NAME = re.compile(r"(?P<env>.+)__(?P<exp>.+)__(?P<seed>\d{1,9})__(?P<time>\d{10})")


def split_name(name: str) -> tuple[str, int | None]:
    """(name, seed) of a folder called `<env_id>__<exp_name>__<seed>__<unix seconds>`; for other names (the name, None).

    Runs that only differ in their seed then have the same name.
    """
    match = _NAME.fullmatch(name)
    return (name, None) if match is None else (f"{match['env']}__{match['exp']}", int(match["seed"]))


_MOMENTS = re.compile(
    r"[_-](\d{14}|\d{4}-?\d\d-?\d\d[_T-]\d\d-?\d\d-?\d\d([.-]\d+)?|\d\d-\d\d-\d\d-\d\d)$"
    r"|^\d\d(\d\d)?-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?[_-]"
)


def undated(name: str) -> str:
    """A framework's name of a training without the moment in it: runs that differ in their seed have one name."""
    return _MOMENTS.sub("", name) or name


def takes_native_keys(run: object) -> Any:
    """Mark the run (or scope): a framework chooses its keys, so a key named like a clock causes no warning."""
    writer = getattr(getattr(run, "internals", None), "writer", None)
    if writer is not None:
        writer.native_keys = True
    return run


def keep_config(run: Any, settings: object) -> dict[str, object]:
    """Add a framework's settings (anything with named values) to the run's config. The program's own entries stay.

    Returns:
      The settings.
    """
    from rollbook.run.origin.config import entries_of

    config, entries = run.run.config, {key_of(key): value for key, value in entries_of(settings).items()}
    config.update({key: value for key, value in entries.items() if key not in config})
    return entries


def reached(run: Any) -> dict[str, int]:
    """The highest reading of each clock in the run's effective history, earlier attempts and all tables included."""
    highest: dict[str, int] = run.internals.reached()
    return highest


def go_on_at(run: Any, clock: str, reading: int) -> None:
    """In a resumed run, before its first row: the framework continues at a reading of a clock. What was recorded beyond
    that is abandoned. If nothing was recorded before it, everything is abandoned, and this is reported.

    Args:
      reading: the last one to keep; -1 for a training that starts over.
    """
    whole = run.run
    opener = opener_of(whole)
    if opener is not None and opener.has_gone_on:  # this process has trained until now
        return
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
    user: object = None,
    kind: str = "",
    host: str = "",
    subject: object = None,
    algorithm: object = None,
    environment: object = None,
    has_end: bool = False,
    shares: bool = False,
) -> tuple[Run | None, bool]:
    """The run to write to, and whether it was opened here (the adapter then ends it by `end_training`).

    A current run is joined if its caller opened it and it is not about another training; one that an adapter opened,
    only by an adapter of another kind during that training. Otherwise a new run is opened.

    Args:
      run: a run or a scope of a run. None uses the current run or opens one; False records nothing.
      project, name: of a run that has to be opened. Made valid as folder names; a moment in the name is left out.
      options: further arguments of `rollbook.init`; they override the above. If any is given, a new run is opened.
      defaults: what the adapter knows about a run that has to be opened; `options` override it.
      seed: of the training, if known.
      user, kind, host, subject, has_end: see `Training`. Default of `kind`: the class of `user`.
      algorithm, environment: their names, if known.
      shares: whether several of its kind may write to one run of the caller.
    Raises:
      BadInput: `run` has another type.
    """
    if run is False:
        return None, False
    if run is not None and not (callable(getattr(run, "log", None)) and callable(getattr(run, "record", None))):
        raise BadInput(
            f"run={run!r:.200} is a {type(run).__name__}, not a rollbook run: pass what rollbook.init() returned, "
            "None to use the current run (or open one), or False to keep no book"
        )
    says: dict[str, object] = {"seed": seed, "algorithm": algorithm, "environment": environment}
    kind = kind or f"{type(user).__module__}.{type(user).__qualname__}"

    def training(arguments: Mapping[str, Any] | None = None, scope: str = "") -> Training:
        return Training(kind, host, user, subject, says, arguments, has_end, scope)

    if run is not None:
        _note_training(run, user, training)
        return takes_native_keys(run), False  # a Scope has the same verbs
    why = ""
    if not options:
        found, why = _to_join(kind, user if subject is None else subject, says, shares)
        if found is not None:
            _note_training(found, user, training)
            return takes_native_keys(found), False
    from rollbook.run.session import init

    arguments: dict[str, Any] = {"project": project, "name": undated(name), "seed": seed, "sinks": ()}
    arguments |= {**(defaults or {}), **(options or {})}
    arguments["project"] = clean_name(arguments["project"], "runs")
    arguments["name"] = clean_name(arguments["name"], "run")
    opened = init(**arguments)
    came_by(opened, host or kind)
    if user is not None:
        opened._parts.opener = training(arguments)
        opened._parts.trainings.append(opened._parts.opener)
    if why:
        warn_caller(f"this training is recorded as run {opened.id} of {opened.project}/{opened.name}, {why}")
    return takes_native_keys(opened), True


def is_opened_for(
    run: Any, user: object, kind: str, host: str, subject: object = None, arguments: Mapping[str, Any] | None = None
) -> None:
    """An adapter has opened the run by `rollbook.init` itself: it is of this training, and ends when `user` is gone.

    Args:
      run: the run.
      user, kind, host, subject, arguments: see `Training`.
    """
    came_by(run, host or kind)
    run._parts.opener = Training(kind, host, user, subject, {}, arguments, False)
    run._parts.trainings.append(run._parts.opener)


def came_by(run: Any, door: str) -> None:
    """The program does not call `rollbook.init` itself: what resumes the run has to fit its own door.

    Args:
      door: the framework, or what the program calls.
    """
    run._about.door = door
    run._manifest_due = True


def lies_beside(run: Any, host: object, name: str = "") -> None:
    """The host's own files of the training that this run records lie in that folder: readers show the training once.

    Args:
      run: the run, a scope of it, or None.
      host: the folder, or what has it as the attribute `name`. What is no path is ignored.
      name: of the attribute.
    """
    with tolerating(Exception):
        folder = getattr(host, name) if name else host
        if run is not None and isinstance(folder, (str, os.PathLike)) and str(folder):
            run.run.internals.lies_beside(os.fspath(folder))


def run_and_scope(run: Any) -> tuple[Any, str]:
    """(The run, the name of its scope that is written to, "" for the run itself)."""
    whole = getattr(run, "run", run)
    return whole, "" if run is whole else str(run.name)


def _note_training(run: Any, user: object, training: Callable[..., Training]) -> None:
    whole = run.run
    if user is not None and hasattr(whole, "_parts"):
        whole._parts.trainings.append(training(scope=run_and_scope(run)[1]))


def _to_join(kind: str, subject: object, says: Mapping[str, object], shares: bool) -> tuple[Any, str]:
    """(The open run of this process that a training belongs to; why it does not join the one that it found instead)."""
    from rollbook.run.current import current_run, opened

    current, why = current_run(), ""
    end_those_left(opened)
    for run in dict.fromkeys([*([] if current is None else [current]), *reversed(opened)]):
        if run.status != "running":
            continue
        opener, trainings = opener_of(run), trainings_of(run)
        of_kind = [training for training in trainings if training.kind == kind]
        if any(training.is_about(subject) and (opener is None or not opener.is_over) for training in of_kind):
            return run, ""
        if opener is not None and opener.thread != get_ident():
            continue  # what another thread trains
        differs = contradiction(run, says)
        if not differs and of_kind and not (shares and (opener is None or opener.kind != kind)):
            differs = "it has another training of this kind"
        if opener is None or opener.is_live:
            if not differs:
                return run, ""
            hint = "" if opener is not None else ". To have both in one run, pass run="
            why = why or f"not in run {run.id}, which is open: {differs}{hint}"
        if opener is None:
            break  # further runs of the caller are not the current one
    return None, why


def end_training(run: Any, user: object, status: str = "finished") -> None:
    """The training that `user` records has ended: finish the run if it was opened for it. Twice is fine."""
    whole = getattr(run, "run", run)
    if whole is None or not hasattr(whole, "_parts"):
        return
    for training in trainings_of(whole):
        if training.user is user and not training.is_over:
            training.is_over = True
            if training is opener_of(whole):
                whole.finish(status)


def go_on(run: Any) -> Any:
    """A run that an adapter has opened and finished, continued by the same training. An attempt that ended early is
    followed by another.

    Returns:
      The run, open again; `run` itself if it is still open or belongs to somebody else.
    """
    whole = run.run
    opener = opener_of(whole)
    if whole.status == "running" or opener is None or opener.arguments is None:
        return run
    from rollbook.run.session import init

    again = init(**{**opener.arguments, "run_id": whole.id, "resume": GoesOn(whole.internals.writer.id)})
    opener.is_over, opener.has_gone_on = False, True
    again._parts.opener = opener
    again._parts.trainings = trainings_of(whole)
    return takes_native_keys(again)


def is_recorded_already(run: Any, user: object, subject: object) -> bool:
    """Whether another adapter of the same kind records this subject in the same scope: each number is stored once."""
    whole = run.run
    mine = next((training for training in trainings_of(whole) if training.user is user), None)
    if mine is None:
        return False
    return any(
        other is not mine and other.kind == mine.kind and other.is_live and other.is_about(subject)
        for other in trainings_of(whole)
        if other.scope == mine.scope
    )


def records(run: Any, host: str) -> bool:
    """Whether an adapter of this package records a training in the run: whatever the package logs is stored then."""
    whole = getattr(run, "run", run)
    return bool(host) and any(
        training.host == host and training.is_live and not training.kind.endswith(".SummaryWriter")
        for training in trainings_of(whole)
    )


_HOSTS = {
    **{name: name for name in ("accelerate", "d3rlpy", "keras", "lightning", "openrlhf", "rl_games", "rsl_rl", "skrl")},
    **{name: name for name in ("stable_baselines3", "tianshou", "torchrl", "transformers", "verl")},
    "lightning_fabric": "lightning",
    "pytorch_lightning": "lightning",
    "sb3_contrib": "stable_baselines3",
    "trl": "transformers",
}
"""Packages that log by several doors -> the package that an adapter names as its host."""


def host_that_calls() -> str:
    """The package with an adapter that makes this call to rollbook (or to wandb); "" if the program itself does."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("rollbook", "wandb", "contextlib", "tensorflow"):
            return _HOSTS.get(package, "")
        frame = frame.f_back
    return ""


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


def reported(failed: Callable[[Any, str, Exception], object]) -> Callable[[Hook], Hook]:
    """A decorator of methods that a host or a program calls: nothing raises but what `failed` raises.

    Args:
      failed: takes the object, the method's name and the exception; what it returns is the method's answer then.
    """

    def decorate(hook: Hook) -> Hook:
        name = getattr(hook, "__name__", "hook")

        @wraps(hook)
        def called(self: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return hook(self, *arguments, **named)
            except Exception as err:
                return failed(self, name, err)

        @wraps(hook)
        async def awaited(self: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return await hook(self, *arguments, **named)
            except Exception as err:
                return failed(self, name, err)

        is_async = bool(getattr(hook, "__code__").co_flags & 0x80)  # noqa: B009 CO_COROUTINE
        return awaited if is_async else called  # type: ignore[return-value]

    return decorate


def _bill_of_joined(self: Any, name: str, err: Exception) -> None:
    if self._joined is None:  # the run could not be opened, as it was asked for
        raise err
    self._joined.bill.failed(f"hook_{name}", f"{type(self).__name__}.{name}()", err)


harmless = reported(_bill_of_joined)
"""Decorates methods of an object with a `JoinedRun` in `_joined`: failures are counted and reported once, by method."""


class JoinedRun:
    """A run as a framework's logger uses it. Only the constructor raises; later failures are counted and reported once.

    Args:
      who: name of the adapter, for messages when there is no run.
      run: a run or a scope of a run. None uses the current run, or opens one; False records nothing.
      project, name: of a run that is opened here.
      options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
      user: the object with which the run that is opened here ends. None: this one.
      host, known: what `find_run` takes: the package that trains, seed, algorithm, environment, subject, has_end.
    Attributes:
      run: the run or scope; None if nothing is recorded.
      bill: counts failures.
    Raises:
      BadInput: `run` has another type, or `rollbook.init` has no such option.
    """

    def __init__(
        self,
        who: str,
        run: object,
        project: str,
        name: str,
        options: Mapping[str, object],
        *,
        user: object = None,
        host: str = "",
        **known: Any,
    ) -> None:
        self.run: Any
        self._user = self if user is None else user
        self.run, self._owned = find_run(
            run, project=project, name=name, options=options, user=self._user, kind=f"{host}.{who}", host=host, **known
        )
        self.bill = Bill(to=self.run) if self.run is not None else Bill(who=who)

    def log(self, values: Mapping[str, object], **clocks: Any) -> None:
        """Log one row under the native keys. Clocks that are None are left out."""
        if self.run is not None and values:
            self.run.log(values, **{name: at for name, at in clocks.items() if at is not None})

    def keep(self, cause: str, what: str, work: Callable[..., object], *arguments: object) -> None:
        """Run `work` if there is a run. A failure is counted under `cause` and reported as "<what> failed"."""
        if self.run is not None:
            self.bill.guard(cause, what, work, *arguments)

    def settings(self, settings: object, seed: object = None) -> None:
        """Add a framework's settings to the run's config, and its seed to a run that was opened here without one.

        Args:
          settings: anything with named values.
          seed: None: what the settings name, see `schema.seeds`.
        """
        self.keep("config", "keeping the configuration", self._settings, settings, seed)

    def _settings(self, settings: object, seed: object) -> None:
        keep_config(self.run, settings)
        if self._owned and isinstance(seed, int) and not isinstance(seed, bool):
            self.run.run.internals.fill_in(seed=seed)

    def checkpoint(self, path: str | os.PathLike[str], through: str = "step", **clocks: Any) -> None:
        """Register a file that the framework saved, without moving it. Does nothing if the file does not exist."""
        if os.path.exists(path):
            self.keep("checkpoint", "registering a checkpoint", self._checkpoint, path, through, clocks)

    def _checkpoint(self, path: str, through: str, clocks: Mapping[str, Any]) -> None:
        self.run.run.save_checkpoint(path=path, rng=False, through=through, **clocks)

    def finish(self, status: str = "finished") -> None:
        """The training has ended: finish the run if it was opened here. Calling it twice is fine."""
        end_training(self.run, self._user, status)

    def go_on(self) -> None:
        """Continue the run that was opened and finished here, if the training continues after all."""
        if self.run is not None and self._owned and self.run.status != "running":
            self.keep("go_on", "continuing the run", self._go_on)

    def _go_on(self) -> None:
        self.run = go_on(self.run)
        self.bill = Bill(to=self.run)


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

    def opened(self) -> list[Any]:
        """The runs that they opened and write to, oldest first."""
        return [run for run, users in self._users.items() if users and run in self._opened]

    def open(self) -> list[Any]:
        """The loggers that are not closed."""
        return [user for users in self._users.values() for user in users]

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
