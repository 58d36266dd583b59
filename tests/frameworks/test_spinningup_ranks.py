"""Statistics over real MPI ranks and real torch.distributed processes; needs no checkout of Spinning Up."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook

GROUPS = ("spinningup",)

PROGRAM = """
import sys
from rollbook.adapters.spinningup import EpochLogger, num_procs, proc_id
how, folder = sys.argv[1:3]
if how == "mpi":
    from mpi4py import MPI
else:
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=int(sys.argv[3]), world_size=2)
logger = EpochLogger(output_dir=f"{folder}/exp", exp_name="exp")
assert num_procs() == 2
for epoch in range(2):
    for value in ([1.0, 2.0], [6.0])[proc_id()] if epoch == 0 else [] if proc_id() == 0 else [16777217]:
        logger.store(EpRet=value, EpLen=3)
    logger.log_tabular("Epoch", epoch)
    logger.log_tabular("EpRet", with_min_and_max=True)
    logger.dump_tabular()
logger.close()
if how == "torch":  # gloo's threads do not survive an interpreter that just ends
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.mark.core
@pytest.mark.parametrize("how", ["mpi", "torch"])
def test_two_processes_make_one_table_and_one_run(how: str, own_place: Path) -> None:
    program = own_place / "program.py"
    program.write_text(PROGRAM)
    books = own_place / "books"
    sources = str(Path(rollbook.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": sources, "ROLLBOOK_DIR": str(books), "OMP_NUM_THREADS": "1"}
    one = [sys.executable, str(program), how, str(own_place)]
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    commands = [[mpiexec, "-n", "2", *one]] if how == "mpi" else [[*one, "0"], [*one, "1"]]
    started = [subprocess.Popen(c, env=env, text=True, stdout=-1, stderr=subprocess.STDOUT) for c in commands]
    said = [process.communicate(timeout=600)[0] for process in started]
    assert [process.returncode for process in started] == [0] * len(started), said
    with (own_place / "exp" / "progress.txt").open(newline="") as file:
        first, second = csv.DictReader(file, delimiter="\t")
    assert (first["AverageEpRet"], first["MinEpRet"], first["MaxEpRet"]) == ("3.0", "1.0", "6.0")
    assert float(first["StdEpRet"]) == pytest.approx((14 / 3) ** 0.5)
    assert second["AverageEpRet"] == "16777217.0"  # one rank had no episode; 32 bits would end in 6
    (book,) = rollbook.open(books)
    assert sorted(row["return"] for row in book.episodes().to_pylist()) == [1.0, 2.0, 6.0, 16777217.0]
    assert book.status == "finished"
