"""Makes the set: records trainings with known faults."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.health.faults import ALGORITHMS, FAULTS

__all__ = ["make", "plan", "train"]


def plan(cut: bool) -> list[tuple[str, str, int]]:
    """The trainings of the set: (algorithm, fault, seed)."""
    healthy, faulty = (4, 2) if cut else (10, 5)
    return [
        (algorithm, fault, seed)
        for fault, it in FAULTS.items()
        for algorithm in sorted(it.algorithms)
        for seed in range(healthy if fault == "healthy" else faulty)
        if not cut or algorithm != "sac" or fault == "healthy"  # slow: what goes wrong with it belongs to the whole set
    ]


def train(given: tuple[str, str, str, int, bool]) -> str:
    """Record one training; its name, and what ended it where that was an exception."""
    folder, algorithm, fault, seed, cut = given
    import torch

    import rollbook
    from benchmarks.health.faults import model_of
    from rollbook.adapters.sb3 import RollbookCallback

    torch.set_num_threads(1)
    steps = ALGORITHMS[algorithm].cut_steps if cut else ALGORITHMS[algorithm].steps
    name = f"{algorithm}-{fault}-{seed}"
    model = model_of(algorithm, fault, seed)
    settings = {word: getattr(model, word) for word in ("learning_rate", "gamma") if hasattr(model, word)}
    told = {"algorithm": algorithm, "fault": fault, "steps": steps, **settings}
    ended = ""
    with rollbook.init(
        "health", name, dir=folder, sinks=[], rules=(), seed=seed, config=told, total={"env_step": steps}
    ) as run:
        try:
            model.learn(steps, callback=RollbookCallback(run), log_interval=4 if algorithm != "a2c" else 50)
        except ValueError as err:  # a distribution of NaNs cannot be made: the fault has ended the training
            ended = str(err).splitlines()[0][:60]
    return f"{name} {ended}".strip()


def make(folder: Path, cut: bool, only: Sequence[str]) -> None:
    """Record all trainings of the set that the folder lacks."""
    have = {path.parent.name.rpartition("-")[0] for path in folder.rglob("run.json")}
    wanted = [
        (str(folder), algorithm, fault, seed, cut)
        for algorithm, fault, seed in plan(cut)
        if f"{algorithm}-{fault}-{seed}" not in have and (not only or {algorithm, fault} & set(only))
    ]
    os.nice(10)
    with multiprocessing.get_context("spawn").Pool(min(2, os.cpu_count() or 1)) as pool:
        for told in pool.imap_unordered(train, wanted):
            print(told, flush=True)
