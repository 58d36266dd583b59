"""The work of `init` after its arguments are checked: find the run to continue, write its run.json, open its writer.

run.json is read and written under its lock: if two processes continue a run at the same time, the second sees the
first.
"""

from __future__ import annotations

import os
import sys
import time

from rollbook.errors import NothingToResume, RunError, RunExists, RunIsLive
from rollbook.journal import Writer
from rollbook.run.arguments import check_total
from rollbook.run.choosing_remote import bring_run, check_usable, remote_to_go_on, settle_remote
from rollbook.run.ranks import own_rank, rendezvous, whereabouts
from rollbook.run.resuming import end_of, fence, find_to_resume, last_time, living_writers
from rollbook.schema import manifest
from rollbook.schema.clocks import STANDARD, check_clock_names
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.system import liveness
from rollbook.system.files import as_text, exists, make_folders, on_disk, pasted
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from rollbook.schema.manifest import Attempt, Cut, RunJson
    from rollbook.system.bill import Bill

_OF_AN_ATTEMPT = (
    *(name for name in manifest.ORIGIN if name not in ("config", "seed")),
    "cpu",
    "gpus",
    "seeds",
    "problems",
    "hydra",
)
"""Fields of run.json that each attempt determines itself."""

_RAYS_WORKER = os.path.join("ray", "_private", "workers", "default_worker.py")


class Wanted:
    """The request of an `init` call.

    Args:
      project, name, run_id, resume, tags: as `init` takes them, checked.
      goes_on: the main writer of the attempt that goes on if this process has finished it; "" for a further attempt.
      root: the absolute path of the root folder of all runs.
      clocks: all clocks, the standard ones first.
      total: as given; checked when the clocks of a continued run are known.
      private: whether only this user may read a new run's folder.
      remote: where to ship the run; False for nowhere, None for its former remote.
      given: {seed, group, job_type, notes, parent, forked_from, config}, as plain values; None keeps the former value.
    Attributes:
      project_folder, folders_name: the folder of the run's folder; the name as that is called.
    """

    __slots__ = (
        "clocks",
        "folders_name",
        "given",
        "goes_on",
        "name",
        "private",
        "project",
        "project_folder",
        "remote",
        "resume",
        "root",
        "run_id",
        "tags",
        "total",
    )

    def __init__(
        self,
        project: str,
        name: str,
        *,
        run_id: str | None,
        resume: str,
        goes_on: str,
        root: str,
        clocks: tuple[str, ...],
        total: Mapping[str, int] | None,
        tags: Sequence[str],
        private: bool,
        remote: str | Literal[False] | None,
        given: Mapping[str, object],
    ) -> None:
        self.project, self.name, self.run_id = project, name, run_id
        self.root, self.folders_name = root, name
        if not f"{root}{project}{name}".isascii():
            self.root, project, self.folders_name = map(on_disk, (root, project, name))
        self.project_folder = os.path.join(self.root, project)
        self.resume, self.goes_on = resume, goes_on
        self.clocks, self.total, self.tags, self.private = clocks, total, tags, private
        self.remote, self.given = remote, given

    def folder_of(self, run_id: str) -> str:
        """The folder of a run of that id and this name."""
        return os.path.join(self.project_folder, f"{self.folders_name}-{run_id}")


class _NewAttempt:
    """An attempt that is about to begin, or to go on.

    Attributes:
      entry: that of an attempt which goes on; None for a new one.
    """

    __slots__ = ("about", "attempt", "away", "clocks", "cut", "entry", "folder", "not_before", "remote")

    def __init__(
        self,
        folder: str,
        about: RunJson,
        *,
        attempt: int,
        not_before: int,
        clocks: tuple[str, ...],
        remote: str | Literal[False] | None,
        away: str,
        cut: Cut | None = None,
        entry: Attempt | None = None,
    ) -> None:
        self.away, self.cut, self.entry = away, cut, entry
        self.folder, self.about, self.attempt, self.not_before = folder, about, attempt, not_before
        self.clocks, self.remote = clocks, remote


def find_former(wanted: Wanted) -> str | None:
    """The folder of the run to continue; None if a new run is to be created. A run with a given id that is not here is
    downloaded from its remote.

    Raises:
      NothingToResume: there is no run, but resume requires one. RunExists: a run exists that must not. RunIsLive,
      RemoteError: it cannot be downloaded.
    """
    project_folder, run_id = wanted.project_folder, wanted.run_id
    if wanted.resume == "never" and run_id is None:
        return None
    given = wanted.given["seed"]
    seed = given if isinstance(given, int) else None
    former = find_to_resume(project_folder, wanted.name, run_id, seed)
    if former is None and run_id is not None and wanted.resume != "never" and wanted.remote:
        takes_over = wanted.resume == "takeover"
        bring_run(wanted.remote, wanted.project, wanted.name, run_id, wanted.root, takes_over=takes_over)
        former = find_to_resume(project_folder, wanted.name, run_id)
    if wanted.resume == "never" and former is not None:
        state = "a living process writes it" if living_writers(former) else "it exists"
        raise RunExists(
            f"init(run_id={run_id!r}): run {run_id!r} cannot be created in {project_folder}: {state}. Continue it with "
            "resume='allow', join it with attach(), or choose another id"
        )
    if wanted.resume == "must" and former is None:
        raise NothingToResume(
            f"init({wanted.project!r}, {wanted.name!r}, resume='must'): no run {run_id or wanted.name!r} "
            + (f"with seed {seed} in {project_folder}" if seed is not None and not run_id else f"in {project_folder}")
            + (f", nor in {wanted.remote}. " if wanted.remote and run_id else ". ")
            + "Begin it with resume='allow'"
            + ("" if wanted.remote and run_id else "; a run that was uploaded is found by run_id= and remote=")
        )
    return former


def open_attempt(
    wanted: Wanted, former: str | None, bill: Bill, begun: list[Writer]
) -> tuple[Writer, RunJson, list[str]]:
    """Begin a run, or continue one. Returns (its open writer; its run.json, written; the differences from the former
    attempt).

    Args:
      former: the folder of the run to continue.
      bill: the counts of the run.
      begun: gets the writer, before the writer opens anything.
    Raises:
      RunIsLive: another process writes the run to continue. RunExists: another process has created it meanwhile.
      NotARun, NewerFormat: the run to continue cannot be read. RunError: the folder cannot be written.
      RemoteError: the remote cannot be used.
    """
    since = time.time()
    with manifest.ManifestLock(former):
        new = _first_attempt(wanted, since, bill) if former is None else _next_attempt(wanted, former, bill)
        about = new.about
        before: dict[str, Any] = {"config": about.config, "seed": about.seed}
        _describe(new, wanted)
        writer = Writer(
            new.folder,
            attempt=new.attempt,
            clocks=new.clocks,
            main=True,
            nonce=about.nonce,
            bill=bill,
            rank=own_rank(),
            not_before=new.not_before,
            whereabouts=whereabouts(),
        )
        begun.append(writer)
        _add_attempt(new, since, writer.id)
        _write_down(new, writer, wanted, is_new=former is None)
    if former is None:
        return writer, about, []
    differs = manifest.differences(before, {"config": about.config, "seed": about.seed})
    if new.entry is None:
        about.summary = _summary_of(former)
    return writer, about, differs


def _first_attempt(wanted: Wanted, begun: float, bill: Bill) -> _NewAttempt:
    from rollbook.system.version import __version__

    identity = wanted.run_id or manifest.new_id()
    folder = wanted.folder_of(identity)
    about = manifest.RunJson(
        format=manifest.FORMAT,
        rollbook=__version__,
        id=identity,
        project=wanted.project,
        name=wanted.name,
        nonce=os.urandom(8).hex(),
        created=begun,
    )
    away = ""
    if wanted.remote:
        run = f"{wanted.project}/{wanted.name}-{identity}"
        away = check_usable(wanted.remote, run, about.nonce, None, False, bill)
    return _NewAttempt(folder, about, attempt=1, not_before=0, clocks=wanted.clocks, remote=wanted.remote, away=away)


def _next_attempt(wanted: Wanted, former: str, bill: Bill) -> _NewAttempt:
    about = manifest.read(former, to_continue=True)
    living = living_writers(former)
    takes_over = wanted.resume == "takeover"
    if living and not takes_over:
        who = living[0]
        raise RunIsLive(
            f"init({wanted.project!r}, {wanted.name!r}, resume={wanted.resume!r}): run {about.id} is being written "
            f"by process {who.get('pid')} on {who.get('host')}. Wait for it, join it with attach(), or use "
            "resume='takeover'"
        )
    if living:
        fence(former, living)
    clocks = check_clock_names([*about.clocks[len(STANDARD) :], *wanted.clocks[len(STANDARD) :]])
    remote = remote_to_go_on(wanted.remote, about)
    away = ""
    if remote:
        run = f"{wanted.project}/{as_text(os.path.basename(former))}"
        away = check_usable(remote, run, about.nonce, former, takes_over, bill)
    entry = manifest.newest(about)
    attempt = entry.n + 1
    if entry.writer == wanted.goes_on and entry.status == "finished" and not living:
        moment = last_time(former, about)
        return _NewAttempt(
            former, about, attempt=entry.n, entry=entry, not_before=moment, clocks=clocks, remote=remote, away=away
        )
    cut, not_before = end_of(former, about)  # last: a process that loses the run may write until now
    if not living and entry.status == "running":  # it died, and its keeper too, or its keeper is elsewhere
        entry.set(status="crashed", ended=max(not_before / 1e9, entry.started or 0.0))
    manifest.close_origin(about)
    about.forget(*_OF_AN_ATTEMPT)  # `close_origin` has stored them with the former attempt
    return _NewAttempt(
        former, about, attempt=attempt, cut=cut, not_before=not_before, clocks=clocks, remote=remote, away=away
    )


def _describe(new: _NewAttempt, wanted: Wanted) -> None:
    """Write the request and the location of this attempt into the data of run.json."""
    from rollbook.run.origin.provenance import command_line

    about = new.about
    own = liveness.identity()
    module = getattr(sys.modules.get("__main__"), "__spec__", None)  # of python -m
    started = sys.argv[:1] if module is None else ["-m", module.name.removesuffix(".__main__")]
    for name, given in wanted.given.items() if new.entry is None else ():
        setattr(about, name, getattr(about, name) if given is None else given)
    about.status, about.ended = "running", None
    about.tags = list(dict.fromkeys([*about.tags, *wanted.tags]))
    about.total = check_total(wanted.total, new.clocks) or about.total
    about.clocks = list(new.clocks)
    about.host, about.boot_id = own.get("host"), own.get("boot_id")
    is_rays = sys.argv[:1] and sys.argv[0].endswith(_RAYS_WORKER)  # nobody can start that again
    about.command = [] if is_rays else command_line([sys.executable, *started, *sys.argv[1:]])
    about.python = sys.version.split()[0]
    about.cwd = _working_folder()
    about.rendezvous = rendezvous()
    if "hydra.core.hydra_config" in sys.modules:
        from rollbook.run.origin.hydra import hydra_job

        if (job := hydra_job()) is not None:
            about.hydra = job
    if new.remote:
        about.remote = new.remote
    elif about.remote:
        about.forget("remote")
    if about.total and not about.x:
        about.x = next(iter(about.total))


def _working_folder() -> str:
    with tolerating(OSError):  # a job's scratch folder may have been removed meanwhile
        return os.getcwd()
    return ""


def _add_attempt(new: _NewAttempt, begun: float, writer: str) -> None:
    if (entry := new.entry) is not None:
        entry.set(writer=writer, before=[*(entry.before or ()), entry.writer], ended=None, status="running")
        entry.forget("last")
        return
    parent = new.attempt - 1 if new.attempt > 1 else None
    new.about.attempts.append(
        manifest.Attempt(
            n=new.attempt,
            parent=parent,
            cut=new.cut if parent else None,
            started=max(begun, new.not_before / 1e9),
            ended=None,
            status="running",
            writer=writer,
            host=new.about.host,
            offsets={},
        )
    )


def _write_down(new: _NewAttempt, writer: Writer, wanted: Wanted, *, is_new: bool) -> None:
    """Create the folder of a new run, with the writer's folder and run.json in it."""
    made = False
    try:
        if is_new:
            make_folders(wanted.project_folder)
            # if two processes create one id at the same time, one of them fails here
            os.mkdir(new.folder, 0o700 if wanted.private else 0o777)
            made = True
        writer.open()
        manifest.write(new.folder, new.about)
        settle_remote(new.folder, new.remote, new.away)
    except ours(FileExistsError):
        state = (
            "was made by another process this moment. Join it with attach()"
            if exists(os.path.join(new.folder, MANIFEST_FILE))
            else f"is there and has no run.json. Try rollbook repair {pasted(new.folder)}, or choose another id"
        )
        raise RunExists(f"init(run_id={wanted.run_id!r}): {new.folder} {state}") from None
    except ours(OSError) as err:
        if made:  # an incomplete run would be reported as damaged forever
            import shutil

            shutil.rmtree(new.folder, ignore_errors=True)
        raise RunError(
            f"init({wanted.project!r}, {new.about.name!r}): the run's folder {new.folder} cannot be written: "
            f"{err}. Choose another with dir="
        ) from err


def _summary_of(folder: str) -> dict[str, object]:
    """The summaries of former attempts, also the parts that run.json did not get in time."""
    about = manifest.look(folder)
    earlier = about.attempts[:-1]
    if earlier and earlier[-1].has("last"):  # it ended normally; this common case reads nothing
        return dict(about.summary)
    from rollbook.system.optional import is_core_alone

    with tolerating(Exception):  # a damaged book must not prevent the run from continuing
        if is_core_alone():
            from rollbook.run.own_past import OwnPast

            return OwnPast(folder).own_summary
        from rollbook.book import Book

        return Book(folder).own_summary
    return dict(about.summary)
