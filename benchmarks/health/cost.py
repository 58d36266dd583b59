"""What the default rules add to a run whose training process is its keeper (`keeper="inline"`), and to `finish()`.

python -m benchmarks.health.cost        60,000 rows of ten keys as fast as they can be logged, five times in turns

All rows are a backlog when `finish()` begins, which is the worst case. Processor time is that of the training process
and of its children, from before `init` until the run is sealed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

_KEYS = (
    "losses/value_loss",
    "losses/policy_loss",
    "losses/entropy",
    "losses/approx_kl",
    "losses/clipfrac",
    "losses/explained_variance",
    "losses/grad_norm",
    "charts/learning_rate",
    "charts/episodic_return",
    "charts/episodic_length",
)


def _one(rows: int, rules: bool) -> tuple[float, float]:
    import rollbook

    with tempfile.TemporaryDirectory() as root:
        os.environ["ROLLBOOK_RUNTIME_DIR"] = os.path.join(root, "runtime")
        before = _cpu()
        options = {} if rules else {"rules": ()}
        run = rollbook.init("cost", "x", dir=root, sinks=[], keeper="inline", **options)
        for i in range(rows):
            run.log({key: 0.5 + (i * (n + 1)) % 13 / 100 for n, key in enumerate(_KEYS)}, env_step=8 * i)
        began = time.perf_counter()
        run.finish()
        return _cpu() - before, time.perf_counter() - began


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Print medians without and with the rules."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.health.cost")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--one", choices=("with", "without"), help="one run, for this program itself")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_one(given.rows, given.one == "with")))
        return
    found: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    for _ in range(5):
        for words, of in found.items():
            command = [sys.executable, "-m", "benchmarks.health.cost", "--rows", str(given.rows), "--one", words]
            of.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    for words, of in found.items():
        cpu, wait = (median(column) for column in zip(*of, strict=True))
        print(f"{words} rules: {cpu:.2f} s of processor time, finish() took {wait:.2f} s")


if __name__ == "__main__":
    main()
