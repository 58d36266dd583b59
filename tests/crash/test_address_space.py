"""A trainer that may map no more memory goes on: what could not be kept is counted, and nothing is raised."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from cases import some_of

TRAIN = """
import ctypes, json, resource, sys, warnings
warnings.simplefilter("ignore")
ctypes.CDLL("libgcc_s.so.1")  # the C library loads it when a thread ends, and aborts where it cannot
import rollbook

run = rollbook.init("p", "r", dir=sys.argv[1], sinks=[], rules=[], keeper=sys.argv[2])
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (int(sys.argv[3]) << 20),) * 2)
for step in range(2_000):
    run.log({"a": float(step)}, env_step=step)
    if step % 100 == 0:
        run.log({f"key {step}": 1.0}, env_step=step)
        run.log_text("t", "x" * 1_000)
run.finish()
print(json.dumps(run.bill()["drops"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not bound an address space")
@pytest.mark.parametrize(
    ("keeper", "megabytes"),
    some_of(
        itertools.product(["inline", "thread", "process"], [0, 16]),
        [("inline", 0), ("thread", 16), ("process", 0)].count,
    ),
)
def test_a_trainer_without_address_space_goes_on(tmp_path: Path, keeper: str, megabytes: int) -> None:
    command = [sys.executable, "-c", TRAIN, str(tmp_path), keeper, str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    drops = json.loads(done.stdout)
    book = rollbook.open(tmp_path).one()
    rows = book.metrics(["a"]).num_rows if "a" in set(book.keys()) else 0
    assert rows == 2_000 or sum(drops.values()) >= 2_000 - rows
