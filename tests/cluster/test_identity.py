"""Which run a process writes to: the table of docs/concepts.md, with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
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

    def __init__(self, variables: dict[str, str], stderr: Any = subprocess.DEVNULL) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("ROLLBOOK_RUN", "RANK"))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**own, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def tell(self, **what: Any) -> Process:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def vanish(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def end(self) -> str:
        _, said = self._process.communicate(timeout=PATIENCE)
        return str(said or "")


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


@pytest.mark.parametrize("launcher", some_of(["srun", "plain", "torchrun", "mpirun", "mpich"], 2))
def test_ranks_join_what_says_the_same_and_have_their_own_run_otherwise(launcher: str, root: Path) -> None:
    processes = [Process(variables) for variables in ranks_of(launcher, 2)]
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


def test_ranks_that_train_a_seed_each_say_so_in_one_line_and_the_last_one_may_come_first(root: Path) -> None:
    processes = [Process(variables, subprocess.PIPE) for variables in ranks_of("srun", 3)]
    for process in (processes[2], processes[1], processes[0]):
        process.tell(init={"seed": processes.index(process)})
    ids = [process.answer()["id"] for process in processes]
    assert len(set(ids)) == 3
    for own, said in enumerate(process.end() for process in processes):
        assert (ids[own] in said and "its seed is" in said) is (own > 0)


def test_the_run_of_a_job_that_was_lost_is_not_joined_when_it_starts_again(root: Path) -> None:
    variables = ranks_of("torchrun", 2)
    lost = [Process(own) for own in variables]
    (first, same) = run_ids(lost, [{}, {}])
    assert first == same
    for process in lost:
        process.vanish()
    again = [Process(own) for own in variables]
    again[1].tell(init={})  # the rank that looks for a run comes first
    again[0].tell(init={})
    ids = {process.answer()["id"] for process in again}
    assert len(ids) == 1
    assert first not in ids
    for process in again:
        process.end()
    assert len(rollbook.open(root)) == 2


def test_two_jobs_of_one_address_and_a_rank_that_is_there_already_are_not_merged(root: Path) -> None:
    """As several programs in one batch script, which all have rank 0."""
    variables = ranks_of("srun", 2)[0]
    processes = [Process(variables) for _ in range(3)]
    assert len(set(run_ids(processes, [{}] * 3))) == 3
    for process in processes:
        process.end()


def test_a_rank_whose_rank_0_opens_nothing_has_its_run_and_rank_0_joins_it_later(root: Path) -> None:
    zero, one = ranks_of("plain", 2)
    early, other = Process(one), Process(zero)
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
    [
        ({}, True),
        ({"seed": 3, "config": {"lr": 1}}, True),
        ({"run_id": "parents"}, True),
        ({"resume": "allow"}, True),
        ({"seed": 4}, False),
        ({"config": {"lr": 2}}, False),
        ({"name": "another"}, False),
        ({"run_id": "another"}, False),
        ({"parent": "parents"}, False),
    ],
)
def test_a_child_joins_the_run_of_its_parent_unless_it_says_otherwise(
    asked: dict[str, Any], joins: bool, root: Path
) -> None:
    with rollbook.init("p", "n", seed=3, config={"lr": 1}, run_id="parents", sinks=[], keeper="inline") as run:
        told = {name: os.environ[name] for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID")}
        child = Process(told)
        assert (child.tell(init=asked).answer().get("id") == run.id) is joins
        child.end()


def test_a_child_of_a_parent_that_is_gone_opens_its_own(root: Path) -> None:
    parent = Process({})
    first = parent.tell(init={}).answer()["id"]
    parent.vanish()
    child = Process({"ROLLBOOK_RUN_ID": str(root / "p" / f"n-{first}"), "ROLLBOOK_RUN_PID": "1"})
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
    state: str, asked: dict[str, Any], outcome: str, root: Path
) -> None:
    """A script started again, a task of a job array, Hydra's job, a container that was restarted: each the same."""
    first = Process({})
    if state != "none":
        first.tell(init={"seed": 1, "run_id": "abc"}).answer()
    if state == "dead":
        first.vanish()
    second = Process({})
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
