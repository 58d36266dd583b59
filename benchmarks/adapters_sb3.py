"""What recording a Stable-Baselines3 training costs, beside the library's own outputs.

    .venvs/main/bin/python benchmarks/adapters_sb3.py            (made by scripts/framework_env.py main)

Every figure is a ratio of two measurements made by this process, one after the other, several times in turn; the
median is shown. "dump" is one `logger.dump` of 18 values, "training" a PPO on CartPole without evaluation. Times are
CPU seconds of the training process, system calls included, so that a busy machine does not decide.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common import logger as native

import rollbook
from rollbook.adapters.sb3 import RollbookCallback, RollbookOutputFormat

KEYS = [f"train/value_{i}" for i in range(14)] + ["rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "time/n"]


def row(i: int) -> dict[str, Any]:
    """What a dump holds: Python floats, numpy's 32- and 64-bit floats, whole numbers."""
    kinds: list[Callable[[float], Any]] = [float, np.float64, np.float32, lambda x: int(x * 1000)]
    return {key: kinds[n % 4](i * 0.001 + n) for n, key in enumerate(KEYS)}


def dumps(make: Callable[[Path], Any], n: int) -> float:
    """Microseconds per dump of n dumps, the recording of the values included."""
    with tempfile.TemporaryDirectory() as folder:
        logger = native.Logger(None, [output] if (output := make(Path(folder))) is not None else [])
        rows = [row(i) for i in range(64)]
        for i in range(50):
            fill(logger, rows[i % 64], i)
        gc.collect()
        start = time.process_time()
        for i in range(n):
            fill(logger, rows[i % 64], i)
        seconds = time.process_time() - start
        logger.close()
        run = getattr(output, "run", None)
        if run is not None:
            run.finish()
    return seconds / n * 1e6


def fill(logger: Any, values: dict[str, Any], step: int) -> None:
    for key, value in values.items():
        logger.record(key, value)
    logger.dump(step)


def open_run(folder: Path) -> Any:
    return rollbook.init("bench", "sb3", dir=folder, sinks=())


def training(which: str, steps: int) -> float:
    """CPU seconds of a PPO."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = PPO("MlpPolicy", "CartPole-v1", n_steps=256, n_epochs=4, seed=1)
        formats = {"csv": ["csv"], "tensorboard": ["tensorboard"]}.get(which, [])
        model.set_logger(native.configure(str(folder), formats) if formats else native.Logger(None, []))
        run = open_run(folder) if which == "rollbook" else None
        callback = RollbookCallback(run) if run is not None else None
        model.learn(256, callback=callback)  # imports, first rows, opening files
        start = time.process_time()
        model.learn(steps, callback=callback, reset_num_timesteps=False)
        seconds = time.process_time() - start
        model.logger.close()
        if run is not None:
            run.finish()
    return seconds


def in_turn(makers: dict[str, Callable[[], float]], repeat: int) -> dict[str, float]:
    """The median of each, measured in turn so that a noisy minute hits all of them."""
    found: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(repeat):
        for name, measure in makers.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10_240)
    args = parser.parse_args()

    outputs: dict[str, Callable[[Path], Any]] = {
        "no output": lambda folder: None,
        "csv": lambda folder: native.CSVOutputFormat(str(folder / "p.csv")),
        "json": lambda folder: native.JSONOutputFormat(str(folder / "p.json")),
        "tensorboard": lambda folder: native.TensorBoardOutputFormat(str(folder)),
        "rollbook": lambda folder: RollbookOutputFormat(open_run(folder)),
    }
    found = in_turn({name: lambda make=make: dumps(make, 1000) for name, make in outputs.items()}, args.repeat)
    empty = found.pop("no output")
    ours = found["rollbook"] - empty
    print(f"one dump of {len(KEYS)} values, without the recording itself ({empty:.1f} us):")
    for name, microseconds in found.items():
        cost = microseconds - empty
        print(f"  {name:<12} {cost:8.1f} us   rollbook / {name:<11} = {ours / cost:.3f}")

    kinds = ("none", "csv", "tensorboard", "rollbook")
    walls = in_turn({name: lambda name=name: training(name, args.steps) for name in kinds}, args.repeat)
    print(f"PPO, {args.steps} steps, CPU time over the same training without any output ({walls['none']:.2f} s):")
    for name in kinds[1:]:
        print(f"  {name:<12} {100 * (walls[name] / walls['none'] - 1):+6.1f} %")


if __name__ == "__main__":
    main()
