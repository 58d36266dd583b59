"""What `log` of 20 floats costs in a Ray actor beside what it costs in the process that began the run.

python -m benchmarks.actor_log           with a Python that has Ray; the driver and two actors take turns

One actor sees the run's folder, the other one keeps a part of the run in a root of its own. A figure is the least of
many short blocks, in processor time of the thread that logs and on the wall: what else the machine does changes that
little.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = 200
_ROUNDS, _BLOCKS = 20, 100


def blocks(run: Any, first: int) -> tuple[float, float]:
    """The least microseconds a row of many blocks: (processor time of this thread, wall)."""
    values = {f"train/k{n:02d}": 0.5 * n for n in range(20)}
    cpu, wall, step = [], [], first
    for _ in range(_BLOCKS):
        began, spent = time.perf_counter(), time.thread_time()
        for _ in range(_BLOCK):
            step += 1
            run.log(values, env_step=step)
        cpu.append(time.thread_time() - spent)
        wall.append(time.perf_counter() - began)
    return min(cpu) / _BLOCK * 1e6, min(wall) / _BLOCK * 1e6


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m benchmarks.actor_log").parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]  # an environment of frameworks does not hold rollbook
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    import ray

    import rollbook
    from rollbook.run.ray import Address, address

    @ray.remote(num_cpus=0)
    class Logger:
        def __init__(self, told: Any) -> None:
            self.run, self.first = told.writer(), 0

        def blocks(self) -> tuple[float, float]:
            self.first += _BLOCK * _BLOCKS
            return blocks(self.run, self.first)

        def finish(self) -> None:
            self.run.finish()

    with tempfile.TemporaryDirectory(prefix="rollbook-actor-", ignore_cleanup_errors=True) as folder:
        os.environ["ROLLBOOK_DIR"] = f"{folder}/own"
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20)
        with rollbook.init("bench", "actor", dir=f"{folder}/home", sinks=[]) as run:
            seen = address(run)
            elsewhere = {"env_vars": {"ROLLBOOK_HOST": "another"}}
            unseen = Address("/folders/of/another/host" + seen.folder, seen.nonce, seen.page)
            actors = [Logger.remote(seen), Logger.options(runtime_env=elsewhere).remote(unseen)]
            figures: dict[str, list[tuple[float, float]]] = {"here": [], "in an actor": [], "in an actor, a part": []}
            for number in range(_ROUNDS):
                answers = [blocks(run, number * _BLOCK * _BLOCKS)]
                answers += [ray.get(actor.blocks.remote()) for actor in actors]
                for list_of, answer in zip(figures.values(), answers, strict=True):
                    list_of.append(answer)
            ray.get([actor.finish.remote() for actor in actors])
        ray.shutdown()
        local = [min(values) for values in zip(*figures["here"], strict=True)]
        for name, pairs in figures.items():
            cpu, wall = (min(values) for values in zip(*pairs, strict=True))
            own, passed = f"{cpu:.2f} us of processor time", f"{wall:.2f} us on the wall"
            print(f"{name:20} {own} ({cpu / local[0]:.2f} of here), {passed} ({wall / local[1]:.2f})")


if __name__ == "__main__":
    main()
