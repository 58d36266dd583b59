"""A worker: one workload with one logger in a fresh process; writes its figures as JSON."""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import os
import resource
import struct
import sys
import time
from array import array
from typing import Any


def main() -> None:
    """Parse, work, write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=list(WORKS))
    parser.add_argument("logger")
    parser.add_argument("--out", required=True)
    parser.add_argument("--result", required=True)
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--pause", type=int, default=0, help="iterations of other work after each call")
    parser.add_argument("--skip", type=int, default=0, help="leave the first so many calls out of the percentiles")
    parser.add_argument("--progress", default="", help="file whose first word tells how many calls have returned")
    parser.add_argument("--only", default="")
    parser.add_argument("--data", default="")
    parser.add_argument("--chunk", type=int, default=0, help="repeat the workload in chunks of this many steps")
    given = parser.parse_args()
    figures = WORKS[given.work](given)
    with open(given.result, "w", encoding="utf-8") as file:
        json.dump(figures, file)


def rss_mib() -> float:
    """This process's resident memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def write(given: argparse.Namespace) -> dict[str, Any]:
    """Log a random walk; the time inside each call, and around it all."""
    import numpy as np

    from benchmarks.loggers import LOGGERS

    keys = [f"m/k{i:02d}" for i in range(given.keys)]
    rng = np.random.default_rng(0)
    chunk = given.chunk or given.steps
    logger = LOGGERS[given.logger]()
    times = array("q", bytes(8 * given.steps))
    progress = None
    if given.progress:
        with open(given.progress, "r+b") as file:
            progress = mmap.mmap(file.fileno(), 16)
    began = time.perf_counter()
    logger.open(given.out)
    opened = time.perf_counter() - began
    log, clock, pause = logger.log, time.perf_counter_ns, given.pause
    gc.collect()
    rss_before = rss_mib()
    before, cpu_before = time.perf_counter(), time.process_time()
    walk = np.zeros(given.keys)
    values: Any = None
    for i in range(given.steps):
        if i % chunk == 0:
            values = walk + np.cumsum(rng.standard_normal((min(chunk, given.steps - i), given.keys)), axis=0) * 0.01
            walk = values[-1]
        row = dict(zip(keys, values[i % chunk].tolist(), strict=True))
        start = clock()
        log(i, row)
        times[i] = clock() - start
        if progress is not None:
            struct.pack_into("<q", progress, 0, i + 1)
        for _ in range(pause):
            pass
    rss_after = rss_mib()
    looped, cpu_looped = time.perf_counter(), time.process_time()
    logger.close()
    closed = time.perf_counter()
    spent = np.frombuffer(times, np.int64)[given.skip :]
    return {
        "open_s": opened,
        "loop_s": looped - before,
        "loop_cpu_s": cpu_looped - cpu_before,
        "close_s": closed - looped,
        "median_us": float(np.median(spent)) / 1e3,
        "p99_us": float(np.percentile(spent, 99)) / 1e3,
        "mean_ns_per_point": float(spent.mean()) / given.keys,
        "rss_growth_mib": rss_after - rss_before,
        "max_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def read(given: argparse.Namespace) -> dict[str, Any]:
    """Read a run back with the logger's own reader; imports are not counted."""
    import importlib

    from benchmarks.loggers import LOGGERS

    imports = {
        "rollbook": ("rollbook.book.book", "pyarrow.parquet", "rollbook.book.series"),
        "sb3-csv": ("pandas",),
        "tensorboard": ("tensorboard.backend.event_processing.event_accumulator",),
    }
    for module in imports.get(given.logger, ()):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            if module.startswith("rollbook.book.book"):
                raise
    logger = LOGGERS[given.logger]()
    gc.collect()  # else the imports decide whether a collection falls into the read: a millisecond
    start = time.process_time()
    series = logger.read(given.data, given.only or None)
    took = time.process_time() - start
    lengths = [len(values) for _steps, values in series.values()]
    return {"read_cpu_s": took, "series": len(series), "shortest": min(lengths, default=0), "points": sum(lengths)}


def opening(given: argparse.Namespace) -> dict[str, Any]:
    """Import and open, in a process that has imported nothing else."""
    rss_before = rss_mib()
    start = time.perf_counter()
    if given.logger == "rollbook":
        import rollbook

        run = rollbook.init("bench", "run", dir=given.out, sinks=[])
        took, rss = time.perf_counter() - start, rss_mib() - rss_before
        heavy = [name for name in ("numpy", "pyarrow", "torch", "pandas") if name in sys.modules]
        run.finish()
        return {"open_s": took, "rss_mib": rss, "heavy": heavy}
    from benchmarks.loggers import LOGGERS

    logger = LOGGERS[given.logger]()
    logger.open(given.out)
    took, rss = time.perf_counter() - start, rss_mib() - rss_before
    logger.close()
    return {"open_s": took, "rss_mib": rss}


def join(given: argparse.Namespace) -> dict[str, Any]:
    """One of several processes that write to one run."""
    import rollbook

    run = rollbook.attach(given.data)
    keys = [f"m/k{i:02d}" for i in range(given.keys)]
    row = dict.fromkeys(keys, 0.5)
    times = array("q", bytes(8 * given.steps))
    log, clock = run.log, time.perf_counter_ns
    for i in range(given.steps):
        start = clock()
        log(row, env_step=i)
        times[i] = clock() - start
    run.finish()
    return {"median_us": sorted(times)[len(times) // 2] / 1e3}


def train(given: argparse.Namespace) -> dict[str, Any]:
    """Stable-Baselines3's PPO on CartPole that also logs five values at every environment step of every second rollout.

    Rollouts with and without it follow each other within a tenth of a second, so the machine's speed is the same for
    both; between two trainings of three seconds it differs by more than a log costs. Counted is the processor time of
    the thread that trains, the update after the rollout included, and of the logger's other threads in this process.
    """
    import numpy as np
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import Logger

    from benchmarks.loggers import LOGGERS

    torch.set_num_threads(1)
    logger, without = LOGGERS[given.logger](), LOGGERS["none"]()
    logger.open(given.out)
    begun: list[tuple[float, float]] = []  # of each rollout: processor time of this thread, and of all threads

    class EveryStep(BaseCallback):
        def _on_rollout_start(self) -> None:
            self.log = logger.log if len(begun) % 2 else without.log
            begun.append((time.thread_time(), time.process_time()))

        def _on_step(self) -> bool:
            x = self.locals["new_obs"][0]
            values = {
                "step/reward": float(self.locals["rewards"][0]),
                "step/x": float(x[0]),
                "step/x_dot": float(x[1]),
                "step/theta": float(x[2]),
                "step/theta_dot": float(x[3]),
            }
            self.log(self.num_timesteps, values)
            return True

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=256, n_epochs=4, seed=0, device="cpu")
    model.set_logger(Logger(None, []))
    model.learn(given.steps, callback=EveryStep())
    logger.close()
    own, every = np.diff(np.array(begun)[given.skip :], axis=0).T
    pairs = len(own) // 2
    plain, logged = own[: 2 * pairs].reshape(pairs, 2).T
    others = (every.sum() - own.sum()) / plain.sum()
    return {"percent_more": float(np.median(logged / plain) - 1 + others) * 100, "pairs": pairs}


WORKS = {"write": write, "read": read, "opening": opening, "join": join, "train": train}

if __name__ == "__main__":
    main()
