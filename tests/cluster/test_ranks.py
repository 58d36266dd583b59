"""Ranks of SLURM and torchrun: simulated by the variables that they set, each rank on a host of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.book.book import Book
from rollbook.system.liveness import HOST_VARIABLE

RANK = """
import rollbook
run = rollbook.init("p", "job", sinks=[])
run.log({f"rank{run.internals.writer.rank}/x": 1.0}, env_step=1)
print(run.folder, flush=True)
input()
run.finish()
"""


@pytest.mark.parametrize(
    ("rank", "job", "system"),
    some_of(
        [
            ("RANK", {"TORCHELASTIC_RUN_ID": "job-7", "MASTER_ADDR": "node-0", "MASTER_PORT": "29500"}, "torchrun"),
            ("SLURM_PROCID", {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}, "slurm"),
        ],
        1,
    ),
)
def test_ranks_on_several_hosts_write_one_run_and_keep_where_they_were(
    root: Path, interpreter: Interpreter, rank: str, job: dict[str, str], system: str
) -> None:
    ranks = []
    for number in range(3):
        own = {**os.environ, **job, rank: str(number), HOST_VARIABLE: f"node-{number}"}
        ranks.append(interpreter.start(RANK, env=own))
    folders = {process.stdout.readline().strip() for process in ranks}
    for process in reversed(ranks):  # rank 0 last
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait() == 0
        process.stdout.close()
    (folder,) = folders
    book = Book(folder)
    keys = book.keys()
    assert [key for key in keys if key.startswith("rank")] == ["rank0/x", "rank1/x", "rank2/x"]
    writers = sorted(book.writers, key=lambda writer: writer["rank"])
    assert [(w["rank"], w["host"], w["main"]) for w in writers] == [(n, f"node-{n}", n == 0) for n in range(3)]
    assert all(system in writer["whereabouts"] for writer in writers)
    assert len(rollbook.open(root)) == 1
