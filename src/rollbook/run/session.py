"""Opening runs: `init` and `attach`.

This is where the rooms are put together: the only place that knows the writer, the keeper and the sinks at once.
"""

from __future__ import annotations

import copyreg
import os
import sys
import time

from rollbook import manifest
from rollbook.bill import Bill
from rollbook.clocks import STANDARD, check_clock_names
from rollbook.errors import (
    BadInput,
    NotARun,
    NothingToResume,
    RollbookWarning,
    RunError,
    RunExists,
    RunIsLive,
    RunNotFound,
    suggesting,
)
from rollbook.foreign import is_foreign, tolerating
from rollbook.journal import liveness
from rollbook.journal.writer import Writer
from rollbook.run.arguments import (
    check_clock_list,
    check_name,
    check_option,
    check_seed,
    check_tags,
    check_total,
    plan_of,
    program_name,
)
from rollbook.run.choosing_remote import asked_place, check_place, place_to_go_on, settle_place
from rollbook.run.current import end_former, interactive, opened
from rollbook.run.joining import elder, own_rank, rendezvous
from rollbook.run.resuming import fence, find_to_resume, last_time, living_writers
from rollbook.run.run import Run
from rollbook.run.scope import Scope
from rollbook.run.start_and_finish import start
from rollbook.run.whereabouts import whereabouts
from rollbook.sinks import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rollbook.shapes import RunJson

__all__ = ["attach", "init", "unpickle_run", "unpickle_scope"]

_KEEPERS = ("process", "thread", "inline")
_RESUMES = ("never", "allow", "must", "takeover")


@suggesting
def init(
    project: str,
    name: str | None = None,
    *,
    seed: int | None = None,
    config: object = None,
    group: str | None = None,
    job_type: str | None = None,
    tags: Iterable[str] = (),
    notes: str = "",
    parent: str | Run | None = None,
    forked_from: object = None,
    total: Mapping[str, int] | None = None,
    clocks: Iterable[str] = (),
    dir: str | os.PathLike[str] | None = None,
    sinks: Sequence[object] = DEFAULT,
    resume: str = "never",
    run_id: str | None = None,
    keeper: str = "process",
    strict: bool = False,
    private: bool | None = None,
    rules: Sequence[object] | None = None,
    remote: str | bool | None = None,
) -> Run:
    """Open a run for writing: a folder `<dir>/<project>/<name>-<id>`.

    Args:
      project: groups runs; one path component.
      name: what the run is called; need not be unique. Default: the name of the program.
      seed: the seed of the run, kept with it (nothing is seeded).
      config: dict, dataclass, argparse namespace, pydantic model or anything like a mapping. Kept in run.json,
        total_config.py and formatted_total_config.py; what has no Python or JSON form is kept as its repr.
      group, job_type, tags, notes: free words to find the run by.
      parent: the run (or its id) that started this one, such as a sweep.
      forked_from: a checkpoint (or its id) of another run that this one begins with.
      total: how far the run will go, {"env_step": 100_000}; progress and time left are told from it.
      clocks: further clocks, which log() then takes as keywords. The standard ones are env_step, gradient_step, epoch,
        episode, policy_version and step.
      dir: root of all runs. Default: $ROLLBOOK_DIR, or "runs".
      sinks: where rows go besides the book: names ("terminal", "text", "csv", "jsonl", "tensorboard", "wandb", …),
        dicts {"name": …, "options": {…}, "filters": [[name, options], …], "every_seconds": …}, or live objects.
      resume: "never" makes a new run; "allow" continues the run of that id (or the newest of that name) if there
        is one; "must" refuses to begin anew; "takeover" continues it even while another process writes it.
      run_id: id of the run to make or to continue.
      keeper: who seals, forwards and watches: a "process" next door, a "thread" here, or "inline" at finish().
      strict: raise at once where rollbook would count and warn; for tests.
      private: nobody but this user may look into the run's folder (mode 0700). Default: $ROLLBOOK_PRIVATE, else
        what the umask says.
      rules: the health rules that the keeper asks while the run trains: names ("non_finite", "silent", …) and dicts
        {"name": …, option: value}; () for none. Default: those of `rollbook.health.DEFAULT`.
      remote: the place that the run is shipped to while it goes on, such as "s3://bucket/prefix" (also gs://, az:// and
        folders). Default: $ROLLBOOK_REMOTE, or where a run that is continued was shipped; False: nowhere. Credentials
        come from the environment, as for every tool of that cloud. A place that gives no answer keeps nothing from
        going on: what waits is counted, and shipped later.

    What looks like a secret in `config`, by its name (api_key, token, password …) or by its form, is kept as "***".

    A process that inherits ROLLBOOK_RUN_ID from a run of the same project and name, or that is a rank above 0 of a
    distributed job, becomes a further writer of that run instead.

    Raises:
      BadInput (InvalidName, InvalidClock, UnknownOption): an argument that cannot be used.
      MissingExtra: the package that a sink needs is not installed.
      RunIsLive: the run to continue is being written. RunExists: there is a run of that id already.
      NothingToResume: resume="must" and there is no such run.
      RunError: the folder cannot be made or written.
      PlaceError: `remote` cannot be used: no such bucket, no permission, another region, something else lies there.
    """
    check_option("resume", resume, _RESUMES)
    check_option("keeper", keeper, _KEEPERS)
    project = check_name("project", project)
    name = check_name("name", name if name is not None else program_name())
    if run_id is not None:
        run_id = check_name("run_id", run_id)
    if private not in (True, False, None):
        raise BadInput(f"private={private!r}: pass True or False")
    if strict not in (True, False):
        raise BadInput(f"strict={strict!r}: pass True or False")
    all_clocks = check_clock_names(check_clock_list(clocks))
    own_seed, own_tags = check_seed(seed), check_tags(tags)
    if resume == "never":  # a run that is continued may have declared more clocks
        check_total(total, all_clocks)
    plan = plan_of(sinks, rules)
    wanted_place = asked_place(remote)
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR", "runs"))
    place = os.path.join(root, project)

    if resume == "never" and run_id is None and parent is None and forked_from is None:
        older = elder(project, name, root)
        if older is not None:
            return attach(older, strict=strict)

    if interactive():
        end_former(project, name)
    bill = Bill(strict)
    former = find_to_resume(place, name, run_id) if resume != "never" else None
    if resume == "must" and former is None:
        raise NothingToResume(
            f"init({project!r}, {name!r}, resume='must'): no run {run_id or name!r} in {place}. Begin it with "
            f"resume='allow'"
        )
    if resume == "never" and run_id is not None:
        old = find_to_resume(place, name, run_id)
        if old is not None:
            state = "a living process writes it" if living_writers(old) else "it exists"
            raise RunExists(
                f"init(run_id={run_id!r}): run {run_id!r} cannot be made anew in {place}: {state}. Continue it with "
                "resume='allow', join it with attach(), or choose another id"
            )

    from rollbook.capture.origin.provenance import command_line

    begun = time.time()
    settings, config_problems = _plain_config(config)
    with manifest.ManifestLock(former):  # of two that continue a run at one moment, the second sees the first
        if former is None:
            identity = run_id or manifest.new_id()
            folder = os.path.join(place, f"{name}-{identity}")
            about: RunJson = {
                "format": manifest.FORMAT,
                "rollbook": _version(),
                "id": identity,
                "project": project,
                "name": name,
                "nonce": os.urandom(8).hex(),
                "created": begun,
                "summary": {},
                "attempts": [],
            }
            attempt, not_before = 1, 0
            before: dict[str, Any] = {"config": {}, "seed": None}
            if wanted_place:
                check_place(wanted_place, f"{project}/{name}-{identity}", about["nonce"], None, False, bill)
        else:
            folder = former
            about = manifest.read(folder, to_continue=True)
            living = living_writers(folder)
            if living and resume != "takeover":
                who = living[0]
                raise RunIsLive(
                    f"init({project!r}, {name!r}, resume={resume!r}): run {about['id']} is being written by process "
                    f"{who.get('pid')} on {who.get('host')}. Wait for it, join it with attach(), or use "
                    "resume='takeover'"
                )
            if living:
                fence(folder, living)
            attempt = max(entry["n"] for entry in about["attempts"]) + 1 if about["attempts"] else 1
            not_before = last_time(folder, about)
            all_clocks = check_clock_names([*about.get("clocks", ())[len(STANDARD) :], *all_clocks[len(STANDARD) :]])
            name = about["name"]
            before = {"config": about["config"], "seed": about.get("seed")}
            wanted_place = place_to_go_on(wanted_place, about)
            if wanted_place:
                nonce, takes_over = str(about.get("nonce") or ""), resume == "takeover"
                check_place(wanted_place, f"{project}/{os.path.basename(former)}", nonce, former, takes_over, bill)
            manifest.close_origin(about)
            _forget_the_life(about)

        about.update(
            {
                "status": "running",
                "ended": None,
                "seed": own_seed if own_seed is not None else before["seed"],
                "group": group if group is not None else about.get("group"),
                "job_type": job_type if job_type is not None else about.get("job_type"),
                "tags": list(dict.fromkeys([*about.get("tags", ()), *own_tags])),
                "notes": notes or about.get("notes", ""),
                "parent": getattr(parent, "id", parent) if parent is not None else about.get("parent"),
                "forked_from": _fork_origin(forked_from) if forked_from is not None else about.get("forked_from"),
                "total": check_total(total, all_clocks) or about.get("total", {}),
                "clocks": list(all_clocks),
                "config": settings if config is not None else before["config"],
                "host": liveness.identity().get("host"),
                "boot_id": liveness.identity().get("boot_id"),
                "command": command_line([sys.executable, *sys.argv]),
                "python": sys.version.split()[0],
                "cwd": _working_folder(),
                "rendezvous": rendezvous(),
            }
        )
        about.pop("remote", None)
        if wanted_place:
            about["remote"] = wanted_place
        if about["total"] and "x" not in about:
            about["x"] = next(iter(about["total"]))
        parent_attempt = attempt - 1 if attempt > 1 else None
        writer = Writer(
            folder,
            attempt=attempt,
            clocks=all_clocks,
            main=True,
            nonce=about["nonce"],
            bill=bill,
            rank=own_rank(),
            not_before=not_before,
            whereabouts=whereabouts(),
        )
        about["attempts"].append(
            {
                "n": attempt,
                "parent": parent_attempt,
                "cut": {"time": max(time.time_ns(), not_before), "writers": {}} if parent_attempt else None,
                "started": begun,
                "ended": None,
                "status": "running",
                "writer": writer.id,
                "host": about["host"],
                "offsets": {},
            }
        )
        is_new = False
        try:
            if former is None:
                os.makedirs(place, exist_ok=True)
                # of two processes that make one id at one moment, one fails here
                os.mkdir(folder, 0o700 if _is_private(private) else 0o777)
                is_new = True
            writer.open()
            manifest.write(folder, about)
            settle_place(folder, wanted_place)
        except FileExistsError as raised:
            if is_foreign(raised):
                raise
            state = (
                "was made by another process this moment. Join it with attach()"
                if os.path.exists(os.path.join(folder, "run.json"))
                else f"is there and has no run.json. Try rollbook repair {folder}, or choose another id"
            )
            raise RunExists(f"init(run_id={run_id!r}): {folder} {state}") from None
        except OSError as err:
            if is_foreign(err):
                raise
            if is_new:  # half of a run would be called damaged for ever
                import shutil

                shutil.rmtree(folder, ignore_errors=True)
            raise RunError(
                f"init({project!r}, {name!r}): the run's folder {folder} cannot be written: {err}. Choose another "
                "with dir="
            ) from err
    if former is not None:
        after = {"config": about["config"], "seed": about["seed"]}
        _say_what_differs(about, manifest.differences(before, after))
        about["summary"] = _summary_of(folder)
    run = start(folder, about, writer, plan, keeper, config, resume == "must")
    _say_what_is_hidden(settings)
    for problem in config_problems:
        bill.count("config_as_repr", message=f"config: {problem}")
    return run


@suggesting
def attach(
    id_or_path: str | os.PathLike[str], *, dir: str | os.PathLike[str] | None = None, strict: bool = False
) -> Run:
    """Become a further writer of a run that exists, from this process, on this host or another that sees its folder.

    Args:
      id_or_path: the run's folder, or its id.
      dir: root of all runs, where an id is looked for. Default: $ROLLBOOK_DIR, or "runs".
      strict: raise at once where rollbook would count and warn; for tests.
    Raises:
      RunNotFound: there is no such run. NotARun, NewerFormat: its run.json cannot be used.
    """
    folder = _locate(os.fspath(id_or_path), dir)
    about = manifest.read(folder, to_continue=True)
    attempts = about["attempts"]
    attempt = max((entry["n"] for entry in attempts), default=1)
    writer = Writer(
        folder,
        attempt=attempt,
        clocks=tuple(about.get("clocks") or STANDARD),
        nonce=about.get("nonce", ""),
        bill=Bill(strict),
        rank=own_rank(),
        whereabouts=whereabouts(),
    )
    return start(folder, about, writer, None, "process")


# -- pickling


def _pickled_run(run: Run) -> tuple[Any, ...]:
    return unpickle_run, run.address()


def _pickled_scope(scope: Scope) -> tuple[Any, ...]:
    folder, nonce, page = scope.run.address()
    return unpickle_scope, (folder, nonce, scope.scope_name, scope._channel.at, page)


def unpickle_run(folder: str, nonce: str, page: Mapping[str, object] | None = None) -> Run:
    """A writer of the same run in this process; one per process, however often it is unpickled.

    The nonce decides what is the same run. A host that does not see its folder keeps a part of it in its own root.

    Args:
      folder, nonce, page: what `Run.address` gave.
    Raises:
      NotARun: the run was opened on this host, and its folder is gone or another run's; or there is no `page`.
    """
    run: Run
    for run in opened:
        same = run.about.get("nonce") == nonce if nonce else str(run.folder) == folder
        if same and run.writer.pid == os.getpid():
            return run
    about = manifest.look(folder)
    if about and (not nonce or about.get("nonce") == nonce):
        return attach(folder)
    from rollbook.run.local_part import folder_here, home_is_here

    if not page or home_is_here(page):
        raise NotARun(
            f"a run was handed to this process as {folder}, and that folder is gone or belongs to another run now"
        )
    try:
        own, is_part = folder_here(folder, nonce, page)
        run = attach(own)
    except Exception as err:  # whatever is wrong on this host, the work that was sent to it goes on
        if is_foreign(err):
            raise
        return _without_folder(folder, page, err)
    if is_part:
        _say_where_the_part_is(run, folder, page)
    return run


def unpickle_scope(folder: str, nonce: str, name: str, at: str, page: Mapping[str, object] | None = None) -> Scope:
    """See `unpickle_run`."""
    return unpickle_run(folder, nonce, page).open_scope(name, at or None)


def _say_where_the_part_is(run: Run, folder: str, page: Mapping[str, object]) -> None:
    remote = page.get("remote")
    if remote:
        return  # its keeper ships it, and who reads sees one run
    run.count(
        "local_part",
        message=f"this host ({liveness.host_name()}) does not see the run's folder {folder}: what is logged here is "
        f"kept as a part of the run in {run.folder}. Bring it home with: rollbook join {run.folder} RUN. Or give "
        "init() a dir= that all hosts see, or remote=",
    )


def _forget_the_life(about: RunJson) -> None:
    """Take out of run.json what belongs to the life before; `close_origin` has kept it with that."""
    fields: Any = about
    for name in _OF_A_LIFE:
        fields.pop(name, None)


def _without_folder(folder: str, page: Mapping[str, Any], err: Exception) -> Run:
    """A run that keeps nothing and says so: nothing here can be written to."""
    about: Any = {**page, "config": {}, "summary": {}, "attempts": list(page.get("attempts") or ({"n": 1},))}
    nowhere = os.path.join(os.devnull, "no-place")  # a path that nobody can make
    writer = Writer(nowhere, attempt=about["attempts"][-1]["n"], clocks=tuple(page.get("clocks") or STANDARD))
    writer.bill.count(
        "no_place",
        message=f"this host ({liveness.host_name()}) sees neither the run's folder {folder} nor any place of its own "
        f"to keep a part of the run in ({type(err).__name__}: {err}). What is logged here is counted and lost. Set "
        "ROLLBOOK_DIR to a folder that can be written",
    )
    return start(nowhere, about, writer, None, "inline")


# A run or a scope that is pickled becomes a further writer of the same run where it is unpickled.
copyreg.pickle(Run, _pickled_run)
copyreg.pickle(Scope, _pickled_scope)


# -- helpers of init

_OF_A_LIFE = (
    *(name for name in manifest.ORIGIN if name not in ("config", "seed")), "cpu", "gpus", "seeds", "problems",
)  # fmt: skip
"""Fields of run.json that each life finds out for itself."""


def _say_what_differs(about: RunJson, phrases: list[str]) -> None:
    """One warning, also under strict=True, where nothing is wrong: both are kept."""
    if not phrases:
        return
    import warnings

    attempt = about["attempts"][-1]["n"]
    more = f" and {len(phrases) - _MOST_NAMED} more" if len(phrases) > _MOST_NAMED else ""
    warnings.warn(
        f"run {about['id']} goes on with other values than before: {', '.join(phrases[:_MOST_NAMED])}{more}. Both are "
        f"kept: book.attempts has what each of its {attempt} lives was started with",
        RollbookWarning,
        stacklevel=4,  # past `suggesting`, too
    )


_MOST_NAMED = 8


def _summary_of(folder: str) -> dict[str, object]:
    """The last words of the lives before, also those that run.json had no time to take up."""
    fields = manifest.look(folder)
    lives = fields["attempts"][:-1]
    if lives and "last" in lives[-1]:  # it ended by itself; the common case costs no reading
        return dict(fields["summary"])
    from rollbook.book.book import Book
    from rollbook.book.summary import summary_of

    with tolerating(Exception):  # a damaged book must not keep the run from going on
        return summary_of(Book(folder))
    return dict(fields["summary"])


def _version() -> str:
    from rollbook._version import __version__

    return __version__


def _say_what_is_hidden(config: Mapping[str, object]) -> None:
    """What was hidden is said once for each run, and is no failure under strict=True either."""
    from rollbook.capture.origin.config import hidden_places

    places = hidden_places(config)
    if places:
        import warnings

        warnings.warn(
            f"config: {', '.join(places[:20])} kept as ***, for it looks like a secret; the "
            "training has it as it was given. ROLLBOOK_SECRETS=keep keeps it",
            RollbookWarning,
            stacklevel=5,
        )


def _is_private(private: bool | None) -> bool:
    return os.environ.get("ROLLBOOK_PRIVATE", "") not in ("", "0") if private is None else private


def _plain_config(config: object) -> tuple[dict[str, object], list[str]]:
    if config is None:
        return {}, []
    from rollbook.capture.origin.config import plain

    return plain(config)


def _working_folder() -> str:
    with tolerating(OSError):  # a job's scratch folder may have been removed under it
        return os.getcwd()
    return ""


def _fork_origin(origin: object) -> object:
    identity = getattr(origin, "id", None)
    if identity is None:
        return origin if isinstance(origin, (str, dict, list)) else repr(origin)
    return {"checkpoint": identity, "path": str(getattr(origin, "path", "") or "")}


def _locate(id_or_path: str, dir: str | os.PathLike[str] | None) -> str:
    if os.path.isfile(os.path.join(id_or_path, "run.json")):
        return os.path.abspath(id_or_path)
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR", "runs"))
    folders = []
    for project in os.scandir(root) if os.path.isdir(root) else ():
        if project.is_dir():
            folders += [e.path for e in os.scandir(project.path) if e.name.endswith(f"-{id_or_path}") and e.is_dir()]
    if len(folders) == 1:
        return folders[0]
    if os.sep in id_or_path or os.path.exists(id_or_path):
        manifest.read(id_or_path)  # raises and says what is there
    raise RunNotFound(
        f"attach({id_or_path!r}): {len(folders)} runs of that id under {root}. Pass the run's folder, or dir="
    )
