"""Which run a process writes to: the table of docs/concepts.md, with real processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter, Program
from waiting import PATIENCE

PROGRAM = """
import json, os, sys
import rollbook
from rollbook.system.tuning import TUNING
TUNING.rank_seconds = 60.0  # however slowly this machine starts its processes
for line in sys.stdin:
    told = json.loads(line)
    if "init" in told:
        try:
            run = rollbook.init("p", told["init"].pop("name", "n"), sinks=[], **told["init"])
        except rollbook.errors.RollbookError as err:
            print(json.dumps({"error": type(err).__name__}), flush=True)
            continue
        run.log({"x": 1.0}, env_step=1)
        print(json.dumps({"id": run.id, "main": run.internals.writer.main, "n": run.attempt}), flush=True)
    elif "finish" in told:
        run.finish()
        print("{}", flush=True)
    else:
        os._exit(1)
"""


class Process:
    """A process that calls init as it is told."""

    def __init__(self, program: Program | subprocess.Popen[str], said: Path = Path(os.devnull)) -> None:
        self._program, self._said = program, said

    def tell(self, **what: Any) -> Process:
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps(what) + "\n")
        self._program.stdin.flush()
        return self

    def answer(self) -> dict[str, Any]:
        assert self._program.stdout is not None
        answer: dict[str, Any] = json.loads(self._program.stdout.readline())
        return answer

    def vanish(self) -> None:
        self._program.kill()
        self._program.wait(PATIENCE)

    def end(self) -> str:
        """What it said on stderr."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.close()
        self._program.wait(PATIENCE)
        self._program.stdout.close()
        return self._said.read_text()


Begin = Callable[..., Process]


def environment(variables: dict[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ROLLBOOK_RUN", "RANK"))}
    return {**own, **variables}


@pytest.fixture
def begin(interpreter: Interpreter, tmp_path: Path) -> Begin:
    """Starts a process with more variables."""

    def start(variables: dict[str, str]) -> Process:
        said = tmp_path / f"said-{next(numbers)}"
        with open(said, "wb") as stderr:
            return Process(interpreter.start(PROGRAM, env=environment(variables), stderr=stderr.fileno()), said)

    numbers = itertools.count()
    return start


def ranks_of(launcher: str, number: int) -> list[dict[str, str]]:
    """The variables of each rank of a job."""
    shared, rank, size = {
        "torchrun": ({"TORCHELASTIC_RUN_ID": "7", "MASTER_ADDR": "node", "MASTER_PORT": "1"}, "RANK", "WORLD_SIZE"),
        "plain": ({}, "RANK", "WORLD_SIZE"),
        "mpirun": ({}, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        "mpich": ({}, "PMI_RANK", "PMI_SIZE"),
        "srun": ({"SLURM_JOB_ID": "4", "SLURM_STEP_ID": "0"}, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    }[launcher]
    return [{**shared, rank: str(own), size: str(number)} for own in range(number)]


def run_ids(processes: Sequence[Process], asked: Sequence[dict[str, Any]]) -> list[Any]:
    for process, init in zip(processes, asked, strict=True):
        process.tell(init=dict(init))
    return [answer.get("id", answer.get("error")) for answer in [process.answer() for process in processes]]


@pytest.mark.parametrize("launcher", some_of(["srun", "plain", "torchrun", "mpirun", "mpich"], 1))
def test_ranks_join_what_says_the_same_and_have_their_own_run_otherwise(
    launcher: str, root: Path, begin: Begin
) -> None:
    processes = [begin(variables) for variables in ranks_of(launcher, 2)]
    cells: dict[str, list[dict[str, Any]]] = {
        "the same": [{"name": "a", "seed": 3, "config": {"lr": 1, "rank": own}} for own in range(2)],
        "nothing said by one": [{"name": "b", "seed": 3}, {"name": "b"}],
        "another seed": [{"name": "c", "seed": own} for own in range(2)],
        "another setting": [{"name": "d", "config": {"net": {"lr": own}}} for own in range(2)],
        "another name": [{"name": f"e{own}"} for own in range(2)],
        "an id": [{"name": "f", "run_id": "abc"}] * 2,
        "resume": [{"name": "g", "resume": "allow"}] * 2,
        "resume what is there": [{"name": "g", "resume": "must"}] * 2,
    }
    together = {}
    for cell, asked in cells.items():
        first, second = run_ids(processes, asked)
        together[cell] = first == second
        for process in processes:
            process.tell(finish=True)
        for process in processes:
            process.answer()
    for process in processes:
        process.end()
    assert together == {
        "the same": True,
        "nothing said by one": True,
        "another seed": False,
        "another setting": False,
        "another name": False,
        "an id": True,
        "resume": True,
        "resume what is there": True,
    }
    books = {book.name: book for book in rollbook.open(root)}
    assert len(rollbook.open(root)) == 10
    assert (books["f"].id, len(books["f"].writers), len(books["g"].attempts)) == ("abc", 2, 2)
    assert all(book.status == "finished" for book in rollbook.open(root))


def test_ranks_that_train_a_seed_each_say_so_in_one_line_and_the_last_one_may_come_first(
    root: Path, begin: Begin
) -> None:
    processes = [begin(variables) for variables in ranks_of("srun", 3)]
    for process in (processes[2], processes[1], processes[0]):
        process.tell(init={"seed": processes.index(process)})
    ids = [process.answer()["id"] for process in processes]
    assert len(set(ids)) == 3
    for own, said in enumerate(process.end() for process in processes):
        assert (ids[own] in said and "its seed is" in said) is (own > 0)


def test_the_run_of_a_job_that_was_lost_is_not_joined_when_it_starts_again(root: Path, begin: Begin) -> None:
    variables = ranks_of("torchrun", 2)
    lost = [begin(own) for own in variables]
    (first, same) = run_ids(lost, [{}, {}])
    assert first == same
    for process in lost:
        process.vanish()
    again = [begin(own) for own in variables]
    again[1].tell(init={})  # the rank that looks for a run comes first
    again[0].tell(init={})
    ids = {process.answer()["id"] for process in again}
    assert len(ids) == 1
    assert first not in ids
    for process in again:
        process.end()
    assert len(rollbook.open(root)) == 2


def test_two_jobs_of_one_address_and_a_rank_that_is_there_already_are_not_merged(root: Path, begin: Begin) -> None:
    """As several programs in one batch script, which all have rank 0."""
    variables = ranks_of("srun", 2)[0]
    processes = [begin(variables) for _ in range(3)]
    assert len(set(run_ids(processes, [{}] * 3))) == 3
    for process in processes:
        process.end()


def test_a_rank_whose_rank_0_opens_nothing_has_its_run_and_rank_0_joins_it_later(root: Path, begin: Begin) -> None:
    zero, one = ranks_of("plain", 2)
    early, other = begin(one), begin(zero)
    early.tell(init={"name": "x"})
    assert other.tell(init={"name": "y"}).answer()["main"]  # so that it need not be waited for
    found = early.answer()
    assert found["main"]
    other.tell(finish=True).answer()
    late = other.tell(init={"name": "x"}).answer()
    assert (late["id"], late["main"]) == (found["id"], False)
    for process in (other, early):
        process.end()


@pytest.mark.parametrize(
    ("asked", "joins"),
    some_of(
        [
            ({}, True),
            ({"seed": 3, "config": {"lr": 1}}, True),
            ({"seed": 4}, False),
            ({"config": {"lr": 2}}, False),
            ({"run_id": "another"}, False),
            ({"run_id": "parents"}, True),
            ({"resume": "allow"}, True),
            ({"name": "another"}, False),
            ({"parent": "parents"}, False),
        ],
        5,
    ),
)
def test_a_child_joins_the_run_of_its_parent_unless_it_says_otherwise(
    asked: dict[str, Any], joins: bool, root: Path, begin: Begin
) -> None:
    with rollbook.init("p", "n", seed=3, config={"lr": 1}, run_id="parents", sinks=[], keeper="inline") as run:
        told = {name: os.environ[name] for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID")}
        child = begin(told)
        assert (child.tell(init=asked).answer().get("id") == run.id) is joins
        child.end()


@pytest.mark.parametrize(
    ("asked", "joins"),
    [
        ({}, True),
        ({"config": {"worker_id": 1}}, True),
        ({"seed": 4, "run_id": "parents"}, True),
        ({"seed": 0}, False),
        ({"config": {"seed": 0}}, False),
        ({"config": {"lr": 0.1}}, False),
    ],
)
def test_a_child_that_names_a_seed_or_a_setting_is_no_part_of_the_run_of_a_sweep_that_names_none(
    asked: dict[str, Any], joins: bool, root: Path, begin: Begin
) -> None:
    with rollbook.init("p", "n", run_id="parents", sinks=[], keeper="inline") as run:
        told = {name: os.environ[name] for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID")}
        child = begin(told)
        assert (child.tell(init=asked).answer().get("id") == run.id) is joins
        child.end()


def test_a_child_of_a_parent_that_is_gone_opens_its_own(root: Path, begin: Begin) -> None:
    parent = begin({})
    first = parent.tell(init={}).answer()["id"]
    parent.vanish()
    child = begin({"ROLLBOOK_RUN_ID": str(root / "p" / f"n-{first}"), "ROLLBOOK_RUN_PID": "1"})
    assert child.tell(init={}).answer()["id"] != first
    child.end()


@pytest.mark.parametrize(
    ("state", "asked", "outcome"),
    some_of(
        [
            ("live", {}, "new"),
            ("live", {"resume": "allow"}, "RunIsLive"),
            ("live", {"resume": "must"}, "RunIsLive"),
            ("live", {"resume": "takeover"}, "resumed"),
            ("live", {"run_id": "abc"}, "RunExists"),
            ("live", {"run_id": "abc", "resume": "allow"}, "RunIsLive"),
            ("live", {"resume": "allow", "seed": 2}, "new"),
            ("dead", {}, "new"),
            ("dead", {"resume": "allow"}, "resumed"),
            ("dead", {"resume": "must"}, "resumed"),
            ("dead", {"run_id": "abc"}, "RunExists"),
            ("dead", {"run_id": "abc", "resume": "allow"}, "resumed"),
            ("dead", {"resume": "allow", "seed": 2}, "new"),
            ("none", {"resume": "allow"}, "new"),
            ("none", {"resume": "must"}, "NothingToResume"),
            ("none", {"run_id": "abc"}, "new"),
        ],
        6,
    ),
)
def test_what_another_process_finds_decides_what_it_opens(
    state: str, asked: dict[str, Any], outcome: str, root: Path, begin: Begin
) -> None:
    """A script started again, a task of a job array, Hydra's job, a container that was restarted: each the same."""
    first = begin({})
    if state != "none":
        first.tell(init={"seed": 1, "run_id": "abc"}).answer()
    if state == "dead":
        first.vanish()
    second = begin({})
    answer = second.tell(init={**asked}).answer()
    if outcome == "resumed":
        assert (answer["id"], answer["n"]) == ("abc", 2)
    elif outcome == "new":
        assert (answer["id"] == "abc", answer["n"]) == (asked.get("run_id") == "abc", 1)
    else:
        assert answer == {"error": outcome}
    second.end()
    if state != "dead":
        first.end()


def test_tasks_of_a_job_array_are_a_run_each_whether_srun_starts_them_or_not(root: Path, begin: Begin) -> None:
    """sbatch --array=0-2: one script, the same names, nothing that tells them apart but SLURM's own variables."""
    for with_srun in (False, True):
        tasks = [
            {
                "SLURM_ARRAY_JOB_ID": "40",
                "SLURM_ARRAY_TASK_ID": str(task),
                "SLURM_ARRAY_TASK_COUNT": "3",
                "SLURM_JOB_ID": str(41 + task),
                "SLURM_PROCID": "0",
                "SLURM_NTASKS": "1",
                "SLURM_LOCALID": "0",
                **({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"} if with_srun else {}),
            }
            for task in range(3)
        ]
        processes = [begin(variables) for variables in tasks]
        ids = run_ids(processes, [{"name": "array"}] * 3)
        assert len(set(ids)) == 3
        for process in processes:
            process.tell(finish=True).answer()
            process.end()
    assert [book.status for book in rollbook.open(root)] == ["finished"] * 6


CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""A process that is number 1 of its own namespace, as in a container; the host's name is the same each time."""


def _has_containers() -> bool:
    try:
        done = subprocess.run([*CONTAINER, "true"], capture_output=True, timeout=PATIENCE, check=False)
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.skipif(not _has_containers(), reason="unshare is not there, or not allowed")
@pytest.mark.parametrize(("asked", "goes_on"), [({}, False), ({"resume": "allow"}, True)])
def test_a_container_that_starts_again_is_not_taken_for_the_one_that_was_lost(
    asked: dict[str, Any], goes_on: bool, root: Path
) -> None:
    """Both are process 1 of a machine of one name: the number alone says nothing."""

    def begin() -> Process:
        pipe = subprocess.PIPE
        command = [*CONTAINER, sys.executable, "-c", PROGRAM]
        return Process(subprocess.Popen(command, env=environment({}), stdin=pipe, stdout=pipe, text=True))

    first = begin()
    lost = first.tell(init={}).answer()
    first.vanish()
    second = begin()
    answer = second.tell(init=asked).answer()
    assert (answer["id"] == lost["id"], answer["n"]) == (goes_on, 1 + goes_on)
    second.tell(finish=True).answer()
    second.end()
    statuses = {book.id: book.status for book in rollbook.open(root)}
    assert (statuses[answer["id"]], len(statuses)) == ("finished", 2 - goes_on)


CELLS = """
import rollbook
run = rollbook.init("p", "cell", sinks=[], seed=0); first = run.id

run = rollbook.init("p", "cell", sinks=[], seed=1); second = run.id

run = rollbook.init("p", "cell", sinks=[], resume="allow", run_id=first); third = run.id

print("told", first == second, first == third, [(b.seed, b.status, len(b.attempts)) for b in rollbook.open("runs")])
"""


def test_a_cell_that_is_run_again_finishes_its_run_and_has_another(tmp_path: Path) -> None:
    """At a real prompt: each line is a cell."""
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input=CELLS,
        env={name: value for name, value in os.environ.items() if not name.startswith("ROLLBOOK_")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("told")]
    assert told == "told False True [(1, 'finished', 1), (0, 'running', 2)]" or (
        told == "told False True [(0, 'running', 2), (1, 'finished', 1)]"
    )


POOL = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import rollbook

def train(seed):
    with rollbook.init("p", "n", sinks=[], seed=seed) as run:
        run.log({"x": float(seed or 0)}, step=1)
    return run.id

if __name__ == "__main__":
    how, parent_writes = sys.argv[1:]
    run = rollbook.init("p", "n", sinks=[], seed=7) if parent_writes == "yes" else None
    with ProcessPoolExecutor(1, get_context(how)) as pool:
        ids = list(pool.map(train, [1, 2, None, 7]))
    own = run.id if run is not None else None
    if run is not None:
        run.finish()
    print("told", len(set(ids)), [i == own for i in ids])
"""


@pytest.mark.parametrize(
    ("how", "parent_writes"),
    some_of(
        itertools.product(["spawn", "fork", "forkserver"], ["yes", "no"]),
        [("spawn", "yes"), ("fork", "no")].__contains__,
    ),
)
def test_what_a_pools_child_trains_is_a_run_each_unless_it_says_the_same_as_its_parent(
    how: str, parent_writes: str, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(POOL)
    done = subprocess.run(
        [sys.executable, str(program), how, parent_writes],
        env={name: value for name, value in os.environ.items() if not name.startswith("ROLLBOOK_")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("told")]
    expected = "told 3 [False, False, True, True]" if parent_writes == "yes" else "told 4 [False, False, False, False]"
    assert told == expected
    assert {book.status for book in rollbook.open(tmp_path / "runs")} == {"finished"}
