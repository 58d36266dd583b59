"""What starts and ends with a run in this process: its keeper, its thread, its sinks, its final summary."""

from __future__ import annotations

import os
import sys

from rollbook.run import console, ending
from rollbook.run.current import opened
from rollbook.run.failure import report_in_alerts
from rollbook.schema import manifest
from rollbook.schema.addresses import backlog
from rollbook.schema.clocks import UNKNOWN, now
from rollbook.schema.run_files import RunFile, journal_folder
from rollbook.system.bill import counted
from rollbook.system.files import exists, is_folder, is_loose, names_in, pasted
from rollbook.system.guard import handled_by, tolerating
from rollbook.system.liveness import identity
from rollbook.system.texts import amount
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.journal import Writer
    from rollbook.keeper.keeper_watch import KeeperWatch
    from rollbook.keeper.orders import Orders
    from rollbook.run.run import Run
    from rollbook.schema.manifest import RunJson

_FOR_CHILDREN = ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID")
"""The variable by which child processes find this process's run."""


def start(
    folder: str,
    about: RunJson,
    writer: Writer,
    orders: Orders | None,
    keeper: str,
    native_config: object = None,
    must: bool = False,
    console_asked: bool | None = None,
) -> Run:
    """Make the run of an open writer: start its keeper, its thread and (if it has orders) its sinks."""
    from pathlib import Path

    from rollbook.run.run import Run
    from rollbook.run.ticker import Ticker

    run = Run(folder=Path(folder), about=about, writer=writer, end=end)
    opened.append(run)  # from now on `undo` finds it
    local: object = None
    if orders is not None:
        orders.write(folder, about.x)
        run._parts.above = {name: os.environ[name] for name in _FOR_CHILDREN if name in os.environ}
        os.environ.update(zip(_FOR_CHILDREN, (folder, str(os.getpid())), strict=True))
        if keeper == "process":
            local = _local_sinks(run, orders.local)
        run._parts.inline_sinks = orders.local if keeper in ("inline", "import") else []
    run._parts.keeper, run._parts.native_config, run._parts.must = keeper, native_config, must
    if keeper == "process":
        then = "; the journal is safe, and finish() or `rollbook repair` seals it. Or use keeper='thread'"
        with counted(writer.bill.count, "no_keeper", "the keeper could not be started", then, OSError):
            from rollbook.keeper.keeper_watch import KeeperWatch
            from rollbook.keeper.launch import launch

            launch(folder)
            watch = run._parts.keeper_watch = KeeperWatch(folder, lambda *found: _report_keeper(run, *found))
            opener = identity()
            writer.in_child = lambda: _look_from_child(run, watch, opener)
        if run._parts.keeper_watch is None:
            run._parts.keeper = "inline"
    elif keeper == "thread":
        from rollbook.keeper.main import Keeper

        run._parts.keeper_thread = Keeper(folder, sinks=orders.local if orders else [])
        run._parts.keeper_thread.start_thread()
    is_own = orders is not None and keeper != "import" and not is_loose()
    if is_own and console.wanted(console_asked):
        run._parts.console = console.keep(folder, 0 if run._goes_on else writer.attempt)
    late = (lambda: _provenance(run),) if is_own else ()
    ticker = Ticker(run, local, late)
    run._parts.ticker = ticker
    ticker.start()
    ending.watch(run)
    return run


def undo(writer: Writer, made: bool, status: str) -> None:
    """Close what a failed `init` or `attach` has opened. The run can then be continued, also by this process.

    Args:
      made: whether the run is new. If it has no rows and nothing ran in parallel yet, its folder is removed.
      status: the final status of the run.
    """
    run = next((run for run in opened if run._writer is writer), None)
    if run is not None:
        run.finish(status)
        return
    if exists(os.path.join(writer.folder, RunFile.WRITER)):
        writer.opened = True
        writer.close()
    journal = journal_folder(writer.run_folder)
    others = set(names_in(journal)) - {os.path.basename(writer.folder)}
    if made and not others and manifest.look(writer.run_folder).nonce in ("", writer.nonce):
        import shutil

        shutil.rmtree(writer.run_folder, ignore_errors=True)


def end(run: Run, status: str, waits: bool = True) -> None:
    """The work of `Run.finish`. Failures are counted, never raised. Can be repeated after an outside exception.

    Args:
      waits: for the keeper. False: close the run and wake its keeper; another call does the rest.
    """
    if os.getpid() != run._writer.pid:  # a forked child must not end its parent's run
        return
    if run._parts.closed is None:
        _close(run, status)
    if waits:
        _wait(run)
    elif run._parts.keeper == "process":
        from rollbook.keeper.launch import wake

        with handled_by(run._writer.failed, "seal"):
            wake(run.folder)


def _close(run: Run, status: str) -> None:
    """Write the last rows and how the run ended, and give them to the sinks of this process."""
    from rollbook.keeper.launch import closed_writers

    if run in opened:
        opened.remove(run)
    # A forked child has neither the threads nor the sinks of its parent, only locks that those threads may hold.
    ticker = run._parts.ticker if run._parts.pid == os.getpid() else None
    if ticker is not None:
        ticker.stop()
    failure: dict[str, Any] = {"failure": run._parts.failure} if run._parts.failure else {}
    if failure and not run._writer.main and not run._writer.closed and not _ends_with_its_pool(failure["failure"]):
        with tolerating(Exception):
            report_in_alerts(run, f"writer {run._writer.id} ended", failure["failure"])
    ended = run._moment()
    if run._writer.main:
        _fold_provenance(run)
        run._writer.frame_once(run._parts.final, {"mark": "final", "status": status, **failure})
        run._about.set(status=status, ended=ended)
        current = zip(run._writer.clocks, run._channel.current, strict=True)
        run._about.reached = {name: reading for name, reading in current if reading != UNKNOWN}
        run._attempt_entry().forget("failure")  # of a task that raised, and after which the run went on
        run._attempt_entry().set(ended=ended, status=status, **failure)
        run._write_about()
    if run._parts.console is not None:
        with handled_by(run._writer.failed, "console"):
            run._parts.console.close(str((run._parts.failure or {}).get("traceback", "")))
    if ticker is not None:
        ticker.settle()  # a keeper that finds the writer closed seals at once, and removes the journal
    run._writer.close()
    if run._writer.main:
        run._attempt_entry().last = now() + run._writer.time_offset
        run._write_about()
        if os.environ.get("ROLLBOOK_RUN_ID") == str(run.folder):
            for name in _FOR_CHILDREN:
                os.environ.pop(name, None)
            os.environ.update(run._parts.above)  # a child of a pool continues with the next task of its parent
    closed: set[str] = set()
    with handled_by(run._writer.failed, "seal"):
        closed = closed_writers(str(run.folder))
    if ticker is not None:
        ticker.tick(final=True)  # before the keeper is woken: the sinks here read from the journal, which it removes
    run._parts.closed = closed


def _ends_with_its_pool(failure: Mapping[str, object]) -> bool:
    """Whether a pool of multiprocessing has ended this worker, as each does when it is no longer needed."""
    processes: Any = sys.modules.get("multiprocessing.process")
    return failure.get("type") == "SIGTERM" and processes is not None and bool(processes.current_process().daemon)


def _wait(run: Run) -> None:
    """Wait until the keeper has sealed and its sinks have their rows."""
    with handled_by(run._writer.failed, "seal"):
        _let_keeper_finish(run)
    if run._parts.alert_calls is not None and run._parts.pid == os.getpid():
        run._parts.alert_calls.end()
    run._check_sinks()
    _report_what_waits(run)
    bill = run._writer.bill  # includes what a sink's own thread has just counted
    if run._manifest_due or (run._about.drops, run._about.remarks or {}) != (bill.counts, bill.remarks):
        run._write_about()
    ending.forget(run)


def _report_what_waits(run: Run) -> None:
    """Report what is not yet in the remote. The keeper continues to ship, and `rollbook push` does the rest."""
    if not run._writer.main or not run._about.remote:
        return
    state = backlog(run.folder, since=run._attempt_entry().started or 0.0)
    if state is None or (state.get("done") and state.get("final")):
        return
    files, size = state.get("waiting_files"), state.get("waiting_bytes")
    waits = "not everything has gone yet"
    if isinstance(files, int) and files and isinstance(size, int):
        waits += f": {amount(files, 'file')} left ({size:,} bytes)"
    why = f": {state['words']}" if state.get("words") else ""
    run.count(
        "remote",
        message=f"{run._about.remote}: {waits}{why}. The keeper goes on; if this machine goes away first, ship the "
        f"rest with: rollbook push {pasted(run.folder)}",
    )


def _let_keeper_finish(run: Run) -> None:
    mode = run._parts.keeper
    if not is_folder(run.folder):  # the run was removed: do not create its folder again
        return
    if mode == "thread" and run._parts.keeper_thread is not None:
        if run._parts.pid == os.getpid():
            run._parts.keeper_thread.finish(TUNING.finish_seconds, run._parts.closed)
    elif mode in ("inline", "import"):
        if run._writer.main and not is_loose():  # a cache needs no sealing, which starts a process per run
            _keep_here(run)
    elif mode == "process":
        from rollbook.keeper.launch import is_kept, launch, wait_done

        if not run._writer.main:
            if not is_kept(run.folder):  # the run's own keeper has ended: nothing else would seal this
                launch(run.folder)
        elif not wait_done(run.folder, TUNING.finish_seconds, run._parts.closed) and launch(run.folder):
            wait_done(
                run.folder, TUNING.finish_seconds, run._parts.closed
            )  # the keeper had died; wait for its replacement


def _keep_here(run: Run) -> None:
    """Do the final work of a keeper in this process. An attached process may have its own keeper."""
    from rollbook.keeper.launch import launch, wait_done
    from rollbook.keeper.main import Keeper

    for _ in range(3):
        is_import = run._parts.keeper == "import"
        keeper = Keeper(str(run.folder), sinks=run._parts.inline_sinks, seals_here=is_import)
        keeper.run_to_end()
        if undone := keeper.left_undone():
            run.count(
                "unfinished",
                message=f"{undone} and was ended; the journal has every row, and readers find them there. Finish with: "
                f"rollbook repair {pasted(run.folder)}",
            )
        if unjudged := keeper.unjudged():
            run._writer.bill.remark("unjudged", unjudged)
        if keeper.phase == "running":  # other processes still write, and have no keeper
            launch(run.folder)
        if keeper.phase != "taken":
            return
        if wait_done(run.folder, TUNING.finish_seconds, run._parts.closed):
            sinks: Any = _local_sinks(run, run._parts.inline_sinks)
            if sinks is not None:
                sinks.close()
            return


def _report_keeper(run: Run, cause: str, words: str, is_lasting: bool) -> None:
    """Report the keeper: a replaced one costs nothing; without any, work waits for `finish`."""
    if is_lasting:
        run.count(cause, message=words)
    else:
        run._writer.bill.remark(cause, words)


def _look_from_child(run: Run, watch: KeeperWatch, opener: Mapping[str, object]) -> None:
    """Check the keeper from a forked child, which has no thread of ours: on the slow path of a row."""
    with handled_by(run._writer.failed, "start a keeper"):
        watch.look(opener)


def _local_sinks(run: Run, sinks: list[object]) -> object:
    if not sinks:
        return None
    from rollbook.keeper.sinks import LocalSinks

    def report(cause: str, words: str) -> None:  # an exception of a strict run must not end a sink's thread
        bill, cause = run._writer.bill, cause.replace(":", "_")
        if cause.startswith("refused_"):  # the sink has declared what it accepts
            bill.remark(cause, words)
        else:
            bill.whole(lambda: run.count(cause, message=words))

    return LocalSinks(run.folder, sinks, report)


def _provenance(run: Run) -> None:
    if run._parts.provenance is not None:
        return
    run._parts.provenance = {}
    from rollbook.run.failure import look_for_others
    from rollbook.run.origin.provenance import collect

    with tolerating(OSError):
        look_for_others()

    def patched(found: dict[str, object]) -> dict[str, object]:
        from rollbook.run.origin.patch import keep_patch

        return keep_patch(str(run.folder), run.attempt, found) if is_folder(run.folder) else {}

    run._parts.provenance = collect(run._about.cwd or ".", patched=patched)
    _fold_provenance(run)
    run._manifest_due = True  # so that a killed attempt has recorded its code


def _fold_provenance(run: Run) -> None:
    run._about.complete(run._parts.provenance or {})
