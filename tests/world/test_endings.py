"""How runs end, and what may never end one."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.run import ending, failure
from waiting import PATIENCE, until

Begin = Callable[..., Any]


def test_a_killed_run_is_not_in_progress_for_ever(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    job = program(
        "import time\nrun = rollbook.init('world', 'job', **QUIET)\nrun.log({'loss': 1.0})\ntime.sleep(600)\n"
    )
    until(lambda: root.exists() and any(book.keys() for book in rollbook.open(root)))
    assert rollbook.open(root).one().status == "running"
    os.kill(job.pid, signal.SIGKILL)
    outcome(job)
    assert rollbook.open(root).one().status == "crashed"


def test_a_folder_that_is_deleted_under_the_run_ends_no_training(begin: Begin) -> None:
    run = begin()
    run.log({"loss": 1.0}, step=0)
    until(lambda: shutil.rmtree(run.folder, ignore_errors=True) or not Path(run.folder).exists())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(1, 2000):
            run.log({"loss": 1.0, f"key{step % 20}": 2.0}, step=step)
        run.log_samples(["a"], reward=[1.0])
        run.save_checkpoint({"w": 1})
        run.finish()


def test_values_of_every_strange_kind_end_no_training(begin: Begin) -> None:
    class Hostile:
        def __float__(self) -> float:
            raise RuntimeError("no")

        def __repr__(self) -> str:
            raise RuntimeError("not even this")

    run = begin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (Hostile(), object(), [Hostile()], {"a": Hostile()}, "text", None, b"", {1, 2}, ..., lambda: 1):
            run.log({"odd": value, "loss": 1.0})
            run.summary["odd"] = value
            run.config.update({"odd": value})
    assert run.book.metrics(["loss"]).num_rows == 10


def test_an_exception_of_the_program_is_the_reason_that_the_run_keeps(begin: Begin, root: Path) -> None:
    def train() -> None:
        with begin() as run:
            run.log({"loss": 1.0})
            print(1 / 0)

    with pytest.raises(ZeroDivisionError):
        train()
    book = rollbook.open(root).one()
    assert (book.status, book.failure["type"]) == ("crashed", "ZeroDivisionError")


def test_a_second_finish_and_logging_after_the_end_change_nothing(begin: Begin, root: Path) -> None:
    run = begin()
    run.log({"loss": 1.0})
    run.finish()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run.finish()
        run.log({"loss": 2.0})
    page = json.loads((Path(run.folder) / "run.json").read_text())
    assert page["status"] == "finished"
    assert rollbook.open(root).one().metrics(["loss"]).num_rows == 1


def test_a_program_that_never_calls_finish_has_finished(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    assert outcome(program("rollbook.init('world', 'job', **QUIET).log({'loss': 1.0})\n"))[0] == 0
    assert [(book.status, book.metrics(["loss"]).num_rows) for book in rollbook.open(root)] == [("finished", 1)]


CELL = """
run = rollbook.init("world", "loop", sinks=[], keeper="import", rules=())
for step in range(50):
    run.log({"loss": 1.0}, env_step=step)
    if step == stop:
        raise error
"""


def _run_cell(code: str, names: dict[str, Any]) -> None:
    """Run code as a notebook does: an exception is shown and stored, and the next cell can be run."""
    try:
        exec(compile(code, f"ipykernel_1/{abs(hash(code))}.py", "exec"), names)
    except BaseException as err:
        sys.last_type, sys.last_value, sys.last_traceback = type(err), err, err.__traceback__


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("CUDA out of memory"), "crashed"), (KeyboardInterrupt(), "killed"), (None, "")]
)
def test_a_run_whose_cell_failed_ends_with_the_reason_when_the_cell_is_run_again(
    begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, status: str
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    for name in ("last_type", "last_value", "last_traceback"):
        monkeypatch.setattr(sys, name, None, raising=False)
    names = {"rollbook": rollbook, "error": error, "stop": None if error is None else 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _run_cell(CELL, names)
        if error is None:
            _run_cell("a_typo_in_another_cell", {})
        _run_cell(CELL, {**names, "stop": None})
    first, second = sorted(rollbook.open(root), key=lambda book: book.info.created or 0.0)
    assert (first.status, second.status) == (status or "finished", "running")
    assert (first.failure or {}).get("type") == (type(error).__name__ if error else None)
    rollbook.finish()


SHELL = """
import sys, warnings
from IPython.core.interactiveshell import InteractiveShell
from rollbook.run import start_and_finish
warnings.simplefilter("ignore")
start_and_finish._let_keeper_finish = lambda run: None  # sealing is no subject here
shell = InteractiveShell.instance()
for cell in sys.argv[1:]:
    shell.run_cell(cell, store_history=False)
"""
OPEN = "import rollbook; run = rollbook.init('world', 'loop', sinks=[], keeper='import', rules=())"
TRAIN, STOPS = (
    "run.log({'loss': 1.0}, env_step=1)",
    "run.log({'loss': 2.0}, env_step=2); raise ValueError('out of range')",
)
TYPO = "a_typo_in_another_cell"
FAILS_FIRST = """
def train(fail=True):
    if fail:
        raise ValueError("out of range")
    run.log({'loss': 3.0}, env_step=3)
train()
"""
FAILS_IN_A_METHOD = """
class Trainer:
    def __init__(self, run):
        self.run = run
    def train(self):
        self.step()
        self.run.log({'loss': 3.0}, env_step=3)
    def step(self):
        raise ValueError("out of range")
Trainer(run).train()
"""


@pytest.fixture(scope="module")
def shells() -> Iterator[Interpreter]:
    """A shell changes the interpreter that it is in: its prompts, its hooks, __main__. Each test has a fork of this."""
    pytest.importorskip("IPython", reason="IPython")
    made = Interpreter("import IPython.core.interactiveshell")
    yield made
    made.end()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((f"{OPEN}; {STOPS}", TYPO, f"{OPEN}; {TRAIN}", TYPO), ["crashed", "finished"]),
        ((OPEN, TRAIN, STOPS, TYPO), ["crashed"]),
        ((OPEN, STOPS, TYPO, TRAIN), ["finished"]),
        ((OPEN, STOPS, "run.save_checkpoint({'weights': 1}, name='mended')"), ["finished"]),
        ((OPEN, "run.log({'loss': 1.0}, env_step=1); raise KeyboardInterrupt"), ["killed"]),
        ((OPEN, FAILS_FIRST), ["crashed"]),
        ((OPEN, TRAIN, FAILS_FIRST, TYPO), ["crashed"]),
        ((OPEN, TRAIN, FAILS_IN_A_METHOD), ["crashed"]),
        ((OPEN, FAILS_FIRST, TRAIN), ["finished"]),
        ((OPEN, TRAIN, "run.book.metrics(['loss'])['no such column']", TYPO), ["finished"]),
        ((OPEN, TRAIN, f"run._parts.ticker._cost_due = 0.0; run._parts.ticker.tick(); {TYPO}"), ["finished"]),
    ],
)
def test_a_run_of_a_notebook_ends_as_the_last_cell_did_that_wrote_to_it(
    cells: tuple[str, ...], expected: list[str], root: Path, shells: Interpreter
) -> None:
    """Whether the cell is run again or the notebook is closed; the error that was shown last may be of another cell."""
    assert shells.run(SHELL, *cells, env=os.environ).returncode == 0
    books = sorted(rollbook.open(root), key=lambda book: book.info.created or 0.0)
    assert [book.status for book in books] == expected
    reasons = {"crashed": "out of range", "killed": "", "finished": None}
    assert [(book.failure or {}).get("message") for book in books] == [reasons[status] for status in expected]


FAILS = """
batch = Batch()
held.append(weakref.ref(batch))
raise RuntimeError("CUDA out of memory")
"""


def test_what_failed_in_a_notebook_is_not_kept_by_the_runs_that_are_opened_afterwards(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames of an exception hold what they had: a batch on the device, of which there is no room for two."""

    class Batch:
        pass

    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    held: list[weakref.ref[Batch]] = []
    names: dict[str, Any] = {"rollbook": rollbook, "error": None, "stop": None}
    for name in ("last_type", "last_value", "last_traceback"):
        monkeypatch.setattr(sys, name, None, raising=False)
    _run_cell(FAILS, {"Batch": Batch, "held": held, "weakref": weakref})
    assert held[0]() is not None, "the notebook keeps it"
    _run_cell(CELL, names)
    sys.last_type = sys.last_value = sys.last_traceback = None
    gc.collect()
    assert held[0]() is None
    rollbook.finish()


class _Experiment:
    def __init__(self, run: Any) -> None:
        self.run = run

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.run.finish()


@contextlib.contextmanager
def _experiment(run: Any) -> Iterator[Any]:
    try:
        yield run
    finally:
        run.finish()


def _fails(error: BaseException | None = None) -> None:
    raise error or RuntimeError("CUDA out of memory")


def _by_finally(run: Any) -> None:
    try:
        _fails()
    finally:
        run.finish()


def _by_finally_of_ctrl_c(run: Any) -> None:
    try:
        _fails(KeyboardInterrupt())
    finally:
        run.finish()


def _by_a_function_of_its_own(run: Any) -> None:
    def close_everything() -> None:
        run.finish()

    try:
        _fails()
    finally:
        close_everything()


def _by_a_context_manager(run: Any) -> None:
    with _experiment(run):
        _fails()


def _by_a_class(run: Any) -> None:
    with _Experiment(run):
        _fails()


def _by_a_stack(run: Any) -> None:
    with contextlib.ExitStack() as stack:
        stack.callback(run.finish)
        _fails()


def _by_an_except_that_raises(run: Any) -> None:
    try:
        _fails()
    except RuntimeError:
        run.finish()
        raise


def _by_an_except_that_exits(run: Any) -> None:
    try:
        _fails()
    except RuntimeError:
        run.finish()
        sys.exit(1)


def _by_the_module(run: Any) -> None:
    try:
        _fails()
    finally:
        rollbook.finish()


class TrialPruned(RuntimeError):
    """As Optuna's is called."""


def _by_a_trial_that_is_pruned(run: Any) -> None:
    with run:
        raise TrialPruned


def _by_a_task_that_is_cancelled(run: Any) -> None:
    async def train() -> None:
        with run:
            await asyncio.sleep(1000)

    async def main() -> None:
        task = asyncio.ensure_future(train())
        await asyncio.sleep(0)
        task.cancel()
        await task

    asyncio.run(main())


def _caught(run: Any) -> None:
    try:
        _fails()
    except RuntimeError:
        run.finish()


def _caught_before_finally(run: Any) -> None:
    try:
        _fails()
    except RuntimeError:
        run.log({"stopped": 1.0})
    finally:
        run.finish()


def _tried_again_in_the_except(run: Any) -> None:
    try:
        _fails()
    except RuntimeError:
        try:
            run.log({"loss": 0.5})  # with half of the batch
        finally:
            run.finish()


def _stopped_early_by_ctrl_c(run: Any) -> None:
    try:
        _fails(KeyboardInterrupt())
    except KeyboardInterrupt:
        run.finish()


def _returned_early(run: Any) -> None:
    try:
        return
    finally:
        run.finish()


def _left_generator(run: Any) -> None:
    def steps() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            run.finish()

    next(steps())


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (_by_finally, "crashed"),
        (_by_finally_of_ctrl_c, "killed"),
        (_by_a_function_of_its_own, "crashed"),
        (_by_a_context_manager, "crashed"),
        (_by_a_class, "crashed"),
        (_by_a_stack, "crashed"),
        (_by_an_except_that_raises, "crashed"),
        (_by_an_except_that_exits, "crashed"),
        (_by_the_module, "crashed"),
        (_by_a_task_that_is_cancelled, "killed"),
        (_by_a_trial_that_is_pruned, "killed"),
        (_caught, "finished"),
        (_caught_before_finally, "finished"),
        (_tried_again_in_the_except, "finished"),
        (_stopped_early_by_ctrl_c, "finished"),
        (_returned_early, "finished"),
        (_left_generator, "finished"),
    ],
)
def test_a_run_that_is_finished_while_an_exception_passes_is_no_finished_one(
    program: Callable[[Any], None], status: str, begin: Begin, root: Path
) -> None:
    """A seed that failed is not compared as one that finished, however carefully its program closes the run."""
    run = begin()
    run.log({"loss": 1.0})
    with contextlib.suppress(RuntimeError, KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        program(run)
    gc.collect()
    book = rollbook.open(root).one()
    assert (book.status, book.failure is None) == (status, status == "finished")


LOOP = """
import os, signal
for seed in range(4):
    run = rollbook.init("world", sys.argv[1].format(seed=seed), config={"seed": seed}, seed=seed, **QUIET)
    for step in range(3):
        run.log({"loss": float(seed)}, env_step=step)
        if (seed, step) == (3, 1):
            exec(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("end", "last", "name"),
    some_of(
        [
            ("raise RuntimeError('CUDA out of memory')", "crashed", "ppo"),
            ("os.kill(os.getpid(), signal.SIGTERM)", "killed", "ppo-{seed}"),
            ("os.kill(os.getpid(), signal.SIGHUP)", "killed", "ppo"),
            ("", "finished", "ppo-{seed}"),
            ("raise RuntimeError('CUDA out of memory')", "crashed", "ppo-{seed}"),
            ("os.kill(os.getpid(), signal.SIGTERM)", "killed", "ppo"),
            ("os.kill(os.getpid(), signal.SIGHUP)", "killed", "ppo-{seed}"),
            ("", "finished", "ppo"),
        ],
        4,
    ),
)
def test_seeds_of_a_loop_that_finishes_none_are_finished_but_the_one_that_failed(
    name: str, end: str, last: str, program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    outcome(program(f"import sys{LOOP}", name, end))
    books = sorted(rollbook.open(root), key=lambda book: book.seed)
    assert [book.status for book in books] == ["finished"] * 3 + [last]


def test_a_seed_that_is_over_stays_so_when_rollbook_logs_its_own_cost_after_the_next_has_begun(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    outcome(
        program("""
first = rollbook.init("world", "ppo", seed=0, **QUIET)
first.log({"loss": 1.0})
second = rollbook.init("world", "ppo", seed=1, **QUIET)
second.log({"loss": 1.0})
before = first._writer.rows_written()
first._parts.ticker._cost_due = 0.0
first._parts.ticker.tick()
assert first._writer.rows_written() == before + 1
raise RuntimeError("CUDA out of memory")
""")
    )
    assert {book.seed: book.status for book in rollbook.open(root)} == {0: "finished", 1: "crashed"}


def test_a_run_whose_thread_raises_has_crashed_and_those_of_other_threads_have_not(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    job = program("""
import threading
def train(seed):
    run = runs[seed] = rollbook.init("world", "ppo", seed=seed, **QUIET)
    run.log({"loss": 1.0})
    if seed != 1:
        raise ValueError("diverged")

runs = {}
for seed in range(3):  # one after the other, as the system may give threads the same number
    thread = threading.Thread(target=train, args=(seed,))
    thread.start()
    thread.join()
runs[2].log({"loss": 2.0})  # somebody else goes on with it
""")
    assert outcome(job)[0] == 0
    books = {book.seed: book for book in rollbook.open(root)}
    assert {seed: book.status for seed, book in books.items()} == {0: "crashed", 1: "finished", 2: "finished"}
    assert (books[0].failure or {})["message"] == "diverged"
    assert [len(books[seed].table("alerts")) for seed in range(3)] == [1, 0, 1]


@pytest.mark.parametrize("later", ["beside[0].log({'loss': 2.0})", ""])
def test_models_that_train_at_once_all_end_with_their_program(
    later: str, program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    """Only what nobody writes any more when the next is opened is over."""
    code = f"""
beside = [rollbook.init("world", "pbt", seed=seed, **QUIET) for seed in range(2)]
for run in beside:
    run.log({{"loss": 1.0}})
{later}
raise RuntimeError
"""
    outcome(program(code))
    assert [book.status for book in rollbook.open(root)] == ["crashed"] * 2


POOL = """
import multiprocessing
def work(run):
    run.log({"part": 1.0})
if __name__ == "__main__":
    with rollbook.init("world", "pool", **QUIET) as run:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            pool.map(work, [run, run])
"""


IN_WORKERS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

def train(seed, kind="process"):
    run = rollbook.init("world", kind, seed=seed, **QUIET)
    run.log({"loss": float(seed)}, step=seed)
    if seed == 1:
        raise ValueError("diverged")
    if kind == "process" and seed > 1:
        sys.exit(seed - 2)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=train, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        told = [pool.submit(train, seed, "executor") for seed in range(3)]
        print(sorted(str(each.exception()) for each in told))
    with context.Pool(2) as pool:
        told = [pool.apply_async(train, (seed, "pool")) for seed in range(3)]
        for each in told:
            each.wait()
        print(sorted(each.successful() for each in told))
"""


@pytest.mark.parametrize(
    "method",
    ["spawn", *(pytest.param(m, marks=pytest.mark.skipif(os.name == "nt", reason="")) for m in ("fork", "forkserver"))],
)
def test_trainings_in_worker_processes_that_finish_nothing_end_as_their_functions_did(
    real_program: Callable[..., Any], root: Path, method: str
) -> None:
    """Such processes leave by `os._exit`, or are ended by their pool with SIGTERM."""
    job = real_program(IN_WORKERS, method)
    said = job.communicate(timeout=PATIENCE)[0]
    assert job.returncode == 0
    assert said.splitlines()[:3] == ["[0, 1, 0, 1]", "['None', 'None', 'diverged']", "[False, True, True]"]
    books = rollbook.open(root)
    ends = {(book.name, book.seed): (book.status, (book.failure or {}).get("type")) for book in books}
    crashed = {(kind, 1): ("crashed", "ValueError") for kind in ("process", "executor", "pool")}
    crashed[("process", 3)] = ("crashed", "SystemExit")
    seeds = [*(("process", seed) for seed in range(4)), *((k, s) for k in ("executor", "pool") for s in range(3))]
    assert ends == dict.fromkeys(seeds, ("finished", None)) | crashed
    assert {(book.name, book.seed): book.latest()["loss"][0] for book in books} == {(k, s): float(s) for k, s in seeds}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize(("goes_on", "end"), [(False, ("crashed", "ValueError")), (True, ("finished", None))])
def test_the_reason_of_a_task_that_failed_is_kept_when_its_worker_is_killed_and_goes_if_the_run_went_on(
    real_program: Callable[..., Any],
    outcome: Callable[..., Any],
    root: Path,
    goes_on: bool,
    end: tuple[str, str | None],
) -> None:
    """Joblib kills its workers when a task of a sweep has failed."""
    job = real_program(
        """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

def train(seed):
    global run
    run = rollbook.init("world", "pool", **QUIET)
    run.log({"loss": 1.0})
    raise ValueError("diverged")

def go_on():
    run.log({"loss": 0.5})

if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        pool.submit(train, 0).exception()
        if sys.argv[1:] == ["goes on"]:
            pool.submit(go_on).result()
        else:
            for worker in list(pool._processes.values()):
                worker.kill()
""",
        *(["goes on"] if goes_on else []),
    )
    assert outcome(job)[0] == 0
    book = rollbook.open(root).one()
    assert (book.status, (book.failure or {}).get("type")) == end


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize(("words", "status"), [((), "finished"), (("fails",), "crashed")])
def test_a_worker_whose_pool_ends_it_while_it_leaves_by_itself_has_ended_as_its_function_did(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path, words: tuple[str, ...], status: str
) -> None:
    """A pool tells its workers to leave, and sends SIGTERM to those that are still there a moment later."""
    job = program(
        """
import multiprocessing, signal, sys, types
from rollbook.run import worker_processes

def train(fails):
    run = rollbook.init("world", "pool", **QUIET)
    run.log({"loss": 1.0})
    worker_processes.sys = types.SimpleNamespace(exc_info=stopped)  # the first thing that is asked at the end
    if fails:
        raise ValueError("diverged")

def stopped():
    worker_processes.sys = sys
    signal.raise_signal(signal.SIGTERM)

if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=train, args=(sys.argv[1:] == ["fails"],))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGTERM
""",
        *words,
    )
    assert outcome(job)[0] == 0
    assert rollbook.open(root).one().status == status


def test_a_signal_that_comes_while_runs_are_closed_waits_until_they_are(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    job = program("""
import os, signal
for seed in range(2):
    run = rollbook.init("world", "job", seed=seed, **QUIET)
    run.log({"loss": 1.0})
run.on_finish(lambda _: os.kill(os.getpid(), signal.SIGTERM))
""")
    assert outcome(job)[0] == -signal.SIGTERM
    assert [book.status for book in rollbook.open(root)] == ["finished", "finished"]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals of threads")
def test_a_signal_that_the_program_itself_handles_reaches_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever saves a checkpoint at SIGTERM takes a second one as the order to stop at once."""
    from rollbook.run import ending, worker_processes

    class CameAgain(Exception):
        pass

    def again(number: int, _frame: object) -> None:
        raise CameAgain

    reading, writing = os.pipe()
    os.write(writing, bytes([signal.SIGTERM]))  # as Python does where a handler is installed
    os.close(writing)
    monkeypatch.setattr(worker_processes, "_is_heard", False)
    before = signal.signal(signal.SIGTERM, again)
    try:
        worker_processes._listen(reading, threading.get_ident(), ending._on_signal)
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(reading)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_without_a_run_of_its_own_is_ended_by_a_signal_as_if_there_was_no_logger(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    """Python hears a signal between two instructions only: a handler that is left in a worker may keep it alive."""
    job = program("""
import multiprocessing, os, signal
run = rollbook.init("world", "job", **QUIET)
assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL

def child(opens):
    before = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if opens:
        own = rollbook.init("world", "child", **QUIET)
    print(before, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)

for opens in (False, True):
    process = multiprocessing.get_context("fork").Process(target=child, args=(opens,))
    process.start()
    process.join()
assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
""")
    assert outcome(job)[:2] == (0, "True True\nTrue False\n")
    assert [book.status for book in rollbook.open(root)] == ["finished", "finished"]


class RunnerThread(threading.Thread):
    """As Ray Tune calls the function of a trial: what it raises is kept for the driver, and no hook hears of it."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(target=work, daemon=True)
        self.kept: list[BaseException] = []

    def _propagate_exception(self, error: BaseException) -> None:
        self.kept.append(error)

    def run(self) -> None:
        try:
            super().run()
        except SystemExit as left:
            if left.code:
                self._propagate_exception(left)
        except BaseException as raised:
            self._propagate_exception(raised)


@pytest.mark.parametrize("ends_by", ["returning", "an exception", "an exit", "its scheduler", "finish"])
def test_a_trial_of_tune_that_finishes_nothing_ends_with_its_function_and_not_with_its_process(
    begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch, ends_by: str
) -> None:
    """Tune kills the process a moment later."""
    monkeypatch.setitem(sys.modules, "ray.tune", ModuleType("ray.tune"))
    monkeypatch.setattr("rollbook.run.tune_trials._SECONDS", PATIENCE)
    reported, stopped = threading.Event(), threading.Event()
    runs: list[Any] = []

    def function() -> None:
        run = begin("trial", seed=1)
        runs.append(run)
        run.log({"loss": 0.5}, step=1)
        if ends_by == "an exception":
            raise ValueError("diverged")
        if ends_by == "an exit":
            sys.exit(3)
        if ends_by == "finish":
            run.finish("killed")
        if ends_by == "its scheduler":
            reported.set()
            stopped.wait()
            try:
                sys.exit(0)
            finally:
                run.log({"loss": 0.25}, step=2)

    thread = RunnerThread(function)
    thread.start()
    if ends_by == "its scheduler":
        reported.wait()
        stopped.set()
        thread.join(timeout=0)  # Tune waits no longer
    else:
        threading.Thread.join(thread)
    (run,) = runs
    expected = {"finish": "killed", "an exception": "crashed", "an exit": "crashed"}.get(ends_by, "finished")
    assert run.status == expected
    reason = {"an exception": ("ValueError", "diverged"), "an exit": ("SystemExit", "exit status 3")}.get(ends_by)
    (book,) = rollbook.open(root)
    assert (book.status, book.failure and (book.failure["type"], book.failure["message"])) == (expected, reason)
    assert book.latest()["loss"][0] == (0.25 if ends_by == "its scheduler" else 0.5)
    assert len(thread.kept) == (reason is not None)


RAYS_LOOP = """
import sys

class Actor:
    def is_nil(self):
        return True

class Worker:
    actor_id = Actor()
    ended = 0
    def record_task_log_end(self, task, attempt):
        self.ended += 1

global_worker = Worker()

def main_loop(function):
    aside = None
    try:
        function()
    except Exception as err:
        aside = err
    finally:
        global_worker.record_task_log_end("task", 0)
    return aside
"""


@pytest.mark.parametrize("ends_by", ["returning", "an exception", "an exit", "a caught one", "finish"])
def test_a_task_of_ray_that_finishes_nothing_ends_with_its_function_and_not_with_its_process(
    begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch, ends_by: str
) -> None:
    """Ray puts what it has raised aside, and gives the process to other tasks."""
    worker: Any = ModuleType("ray._private.worker")
    exec(RAYS_LOOP, vars(worker))
    monkeypatch.setitem(sys.modules, worker.__name__, worker)
    caught: list[Exception] = []

    def deeper() -> None:
        raise ValueError("diverged")

    def function() -> None:
        run, other = begin("task", seed=1), begin("beside", seed=1)
        run.log({"loss": 0.5}, step=1)
        other.log({"loss": 0.5}, step=1)
        if ends_by == "finish":
            run.finish("killed")
            other.finish("killed")
        if ends_by == "an exit":
            sys.exit(3)
        try:
            deeper()
        except ValueError as err:
            caught.append(err)
            if ends_by == "an exception":
                raise

    if ends_by == "an exit":
        with pytest.raises(SystemExit):
            worker.main_loop(function)
    else:
        assert (worker.main_loop(function) is not None) == (ends_by == "an exception")
    assert worker.global_worker.ended == 1
    assert "record_task_log_end" not in vars(worker.global_worker), "the next task has Ray's own"
    status = {"finish": "killed", "an exception": "crashed", "an exit": "crashed"}.get(ends_by, "finished")
    reason = {"an exception": ("ValueError", "diverged"), "an exit": ("SystemExit", "exit status 3")}.get(ends_by)
    books = list(rollbook.open(root))
    assert len(books) == 2
    for book in books:
        assert (book.status, book.failure and (book.failure["type"], book.failure["message"])) == (status, reason)


def test_a_run_that_another_thread_opens_goes_on_when_the_thread_has_ended(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray.tune", ModuleType("ray.tune"))
    runs: list[Any] = []
    thread = threading.Thread(target=lambda: runs.append(begin("opened elsewhere")))
    thread.start()
    thread.join()
    runs[0].log({"loss": 0.5}, step=1)
    assert runs[0].status == "running"


def test_workers_that_end_with_their_pool_are_no_alert(
    real_program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    code, _, err = outcome(real_program(POOL))
    book = rollbook.open(root).one()
    assert (code, book.status, book.metrics(["part"]).num_rows, book.alerts().num_rows) == (0, "finished", 2, 0), err


HYDRA = """
import enum

class Status(enum.Enum):
    COMPLETED, FAILED = 1, 2

class Job:
    status, _return_value = Status.COMPLETED, None

def run_job(task_function, callbacks):
    ret = Job()
    try:
        ret._return_value = task_function()
    except Exception as e:
        ret._return_value, ret.status = e, Status.FAILED
    for callback in reversed(callbacks.callbacks):
        callback.on_job_end(config=None, job_return=ret)
    return ret
"""


@pytest.mark.parametrize("its_end", [None, ValueError("another job")])
def test_a_job_of_hydra_that_raises_has_crashed_its_run_and_no_other(
    begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch, its_end: BaseException | None
) -> None:
    """Hydra catches what a job raises, goes on to the next one, and leaves by an exit or an exception in the end."""
    hydra: Any = ModuleType("hydra.core.utils")
    exec(HYDRA, vars(hydra))
    monkeypatch.setitem(sys.modules, "hydra.core.utils", hydra)
    monkeypatch.setattr(ending, "_of_process", None)  # what ends this process is no concern of later tests
    callbacks = SimpleNamespace(callbacks=[])

    def job(seed: int) -> Callable[[], None]:
        def train() -> None:
            run = begin("job", seed=seed)
            run.log({"loss": 1.0}, env_step=1)
            if seed == 2:
                raise ValueError("diverged")
            begin("evaluation", seed=seed).log({"return": 1.0}, env_step=1)

        return train

    statuses = [hydra.run_job(job(seed), callbacks).status.name for seed in (1, 2, 3)]
    assert statuses == ["COMPLETED", "FAILED", "COMPLETED"]
    assert callbacks.callbacks == [], "what watched a job has gone with it"
    ending.finish_all(failure.status_of(its_end and type(its_end)), failure.describe(its_end))
    books = list(rollbook.open(root))
    reasons = {(book.seed, book.name): (book.status, book.failure and book.failure["message"]) for book in books}
    assert reasons.pop((2, "job")) == ("crashed", "diverged")
    assert len(reasons) == 4
    assert set(reasons.values()) == {("finished", None)}
