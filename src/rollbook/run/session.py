"""Opening runs for writing: `init`."""

from __future__ import annotations

import os
import sys

from rollbook.errors import BadInput, suggesting
from rollbook.keeper.orders import orders_of
from rollbook.run.arguments import (
    check_clock_list,
    check_name,
    check_option,
    check_resume,
    check_seed,
    check_tags,
    check_total,
    program_name,
)
from rollbook.run.attaching import attach
from rollbook.run.choosing_remote import requested_remote
from rollbook.run.current import interactive
from rollbook.run.failure import status_of
from rollbook.run.joining import elder, is_taken
from rollbook.run.needed import import_needed
from rollbook.run.opening import Wanted, find_former, open_attempt
from rollbook.run.start_and_finish import start, undo
from rollbook.schema.clocks import check_clock_names
from rollbook.system.bill import Bill, warn_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rollbook.journal import Writer
    from rollbook.run.run import Run
    from rollbook.schema.manifest import RunJson

__all__ = ["attach", "init"]

_KEEPERS = ("process", "thread", "inline", "import")


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
    sinks: Sequence[object] | None = None,
    resume: str | bool | None = "never",
    run_id: str | None = None,
    keeper: str = "process",
    strict: bool = False,
    private: bool | None = None,
    rules: Sequence[object] | None = None,
    alerts: object = None,
    remote: str | bool | None = None,
    console: bool | None = None,
) -> Run:
    """Open a run for writing: a folder `<dir>/<project>/<name>-<id>`.

    Args:
      project: groups runs; one path component.
      name: name of the run; need not be unique. Default: the name of the program.
      seed: the seed of the run, stored with it (rollbook seeds nothing). The default is the one that the configuration
        names: `seed`, `random_seed`, `train.seed` …
      config: dict, dataclass, argparse namespace, pydantic model or any mapping. Stored in run.json (as
        Python, too: `Run.write_config_files`). Values without a JSON form are stored as their repr. In a job of Hydra
        the default is the job's configuration.
      group, job_type, tags, notes: free text to find the run by.
      parent: the run (or its id) that started this one, such as a sweep.
      forked_from: a checkpoint (or its id) of another run from which this one starts.
      total: planned length of the run, {"env_step": 100_000}; progress and remaining time are computed from it.
      clocks: additional clocks, which log() then takes as keywords. The standard ones are env_step, gradient_step,
        epoch, episode, policy_version and step.
      dir: root folder of all runs. Default: $ROLLBOOK_DIR, or "runs".
      sinks: where rows go in addition to the book: names ("terminal", "text", "csv", "jsonl", "tensorboard", "wandb",
        …), dicts {"name": …, "options": {…}, "filters": [[name, options], …], "every_seconds": …}, or live objects.
        Default: a live table in the terminal.
      resume: "never" (or False, None) creates a new run; "allow" (or True) continues the run with that id if it exists,
        or the newest with that name and, where `seed` is given, that seed; "must" raises if there is none; "takeover"
        continues it even while another process writes it.
      run_id: id of the run to create or to continue. Default: $ROLLBOOK_RESUME, with resume="must", if this project has
        a run of that id: so an unchanged program continues it.
      keeper: what seals, forwards and watches: a separate "process", a "thread" of this process, or "inline" at
        finish(); "import" is "inline" for `write_rows` of finished runs: finish() seals without starting another
        process, and where this program comes from is not stored.
      strict: raise at once instead of counting and warning; for tests.
      private: only this user may read the run's folder (mode 0700). Default: $ROLLBOOK_PRIVATE, else the umask.
      rules: the health rules that the keeper checks during training: names ("non_finite", "silent", …) and dicts
        {"name": …, option: value}; () for none. Default: those of `rollbook.health.DEFAULT`.
      alerts: receiver of the alerts: a web address, a command as a list of words, or a function, as for `Run.on_alert`;
        {"to": …, "level": "fail"} selects another level. Default: $ROLLBOOK_ALERTS (an address, or a command in shell
        syntax), or none.
      remote: where the run is shipped while it is written, such as "s3://bucket/prefix" (also gs://, az:// and
        folders). False: nowhere. Default: $ROLLBOOK_REMOTE, or for a continued run its former remote. Credentials come
        from the environment, as for other tools of that cloud. If the remote does not answer, training continues; the
        waiting data is counted and shipped later.
      console: keep what this process prints, stdout and stderr, in log/console.log of the run (`rollbook logs`, the
        page). Default: $ROLLBOOK_CONSOLE (0 or 1), else in scripts, not in notebooks and at a prompt.

    Values in `config` that look like secrets, by name (api_key, token, password …) or by form, are stored as "***".

    A process becomes a further writer of an existing run instead if that run is being written by its parent process, or
    by other ranks of its job (torchrun, SLURM, MPI), with the same project and name, and the same
    run_id, seed and config where both have them. docs/concepts.md has a table of all cases.

    Raises:
      BadInput (InvalidName, InvalidClock, UnknownOption): an argument that cannot be used.
      MissingExtra: the package that a sink needs is not installed.
      RunIsLive: another process writes the run to continue. RunExists: a run with that id exists already.
      NothingToResume: resume="must" and there is no such run.
      RunError: the folder cannot be created or written.
      RemoteError: `remote` cannot be used: no such bucket, no permission, wrong region, other files at the prefix.
    """
    # Check every argument before anything is written.
    how, goes_on = check_resume(resume), getattr(resume, "writer", "")
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
    if how == "never":  # a continued run may have declared more clocks
        check_total(total, all_clocks)
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR") or "runs")
    if console not in (True, False, None):
        raise BadInput(f"console={console!r}: pass True or False")
    if asked_id := os.environ.get("ROLLBOOK_RESUME") if run_id is None else None:
        from rollbook.run.resuming import asked_to_resume

        name, run_id, how = asked_to_resume(asked_id, root, project, name, how)
    orders = orders_of(sinks, rules)
    receiver = _receiver(alerts)
    wanted_remote = requested_remote(remote)

    # The configuration as plain data, and the run that is wanted.
    bill = Bill(strict)
    if config is None and "hydra.core.hydra_config" in sys.modules:
        from rollbook.run.origin.hydra import hydra_config

        config = hydra_config()
    settings, config_problems = _plain_config(config)
    if own_seed is None and settings:
        from rollbook.schema.seeds import named_seed

        own_seed = named_seed(settings)
    wanted = Wanted(
        project,
        name,
        run_id=run_id,
        resume=how,
        goes_on=goes_on,
        root=root,
        clocks=all_clocks,
        total=total,
        tags=own_tags,
        private=os.environ.get("ROLLBOOK_PRIVATE", "") not in ("", "0") if private is None else private,
        remote=wanted_remote,
        given={
            "seed": own_seed,
            "group": group,
            "job_type": job_type,
            "notes": notes or None,
            "parent": getattr(parent, "id", parent),
            "forked_from": None if forked_from is None else _fork_origin(forked_from),
            "config": None if config is None else settings,
        },
    )
    # Load the modules that the run needs, and end the run that an earlier execution of this cell opened.
    import_needed(orders, keeper)
    if interactive():
        from rollbook.run.cells import end_former

        end_former(project, name)
    # Join the run of a parent process or of another rank, or open one. If another process takes the run first, again.
    while True:
        found = elder(wanted)
        if found.folder is not None:
            return attach(found.folder, strict=strict)
        wanted.run_id = found.run_id or run_id
        former: str | None = None
        begun: list[Writer] = []
        try:
            former = find_former(wanted)
            writer, about, differs = open_attempt(wanted, former, bill, begun)
            if found.why:
                warn_caller(f"this process writes run {about.id} of its own, {found.why}")
            _report_what_differs(about, differs, by_id=run_id is not None)
            run = start(writer.run_folder, about, writer, orders, keeper, config, how == "must", console)
            if interactive():
                from rollbook.run.cells import note_cell

                note_cell(run)
            if receiver is not None:
                run.on_alert(receiver[0], level=receiver[1])
            _report_what_is_hidden(settings)
            for problem in config_problems:
                bill.count("config_as_repr", message=f"config: {problem}")
            return run
        except BaseException as err:
            for writer in begun:
                undo(writer, former is None, status_of(type(err)))
            wanted.run_id = run_id
            if not is_taken(wanted, found, err):
                raise


def _receiver(alerts: object) -> tuple[Any, str] | None:
    if alerts is None and not os.environ.get("ROLLBOOK_ALERTS", "").strip():
        return None
    from rollbook.run.alert_calls import asked_receiver

    return asked_receiver(alerts)


def _report_what_differs(about: RunJson, phrases: list[str], *, by_id: bool) -> None:
    """Warn once, also with strict=True: both versions are stored. Without an id another run may have been meant."""
    if not phrases:
        return
    attempt = about.attempts[-1].n
    more = f" and {len(phrases) - _MOST_NAMED} more" if len(phrases) > _MOST_NAMED else ""
    warn_caller(
        f"run {about.id} continues with other values than before: {', '.join(phrases[:_MOST_NAMED])}{more}. Both are "
        f"kept: book.attempts has what each of its {attempt} attempts was started with"
        + (
            ""
            if by_id
            else ". If another run is meant, give it another name or a run_id: resume= goes by name and seed"
        )
    )


_MOST_NAMED = 8


def _report_what_is_hidden(config: Mapping[str, object]) -> None:
    """Report hidden secrets once per run. This is not a failure, also with strict=True."""
    from rollbook.run.origin.config import hidden_paths

    hidden = hidden_paths(config)
    if hidden:
        warn_caller(
            f"config: {', '.join(hidden[:20])} kept as ***, for it looks like a secret; the "
            "training has it as it was given. ROLLBOOK_SECRETS=keep keeps it"
        )


def _plain_config(config: object) -> tuple[dict[str, object], list[str]]:
    if config is None:
        return {}, []
    from rollbook.run.origin.config import plain

    return plain(config)


def _fork_origin(origin: object) -> object:
    identity = getattr(origin, "id", None)
    if identity is None:
        return origin if isinstance(origin, (str, dict, list)) else repr(origin)
    return {"checkpoint": identity, "path": str(getattr(origin, "path", "") or "")}
