"""Makes the set: trains, and keeps the rows of each training as JSON Lines."""

from __future__ import annotations

import json
import math
import os
import statistics
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.health.faults import FAULTS, TRAININGS, Training, Version

__all__ = ["Group", "make", "outcome", "plan"]

Group = tuple[Training, str, str, int]
"""Trainings side by side: what, fault ("healthy"), "weak" or "strong", how many seeds."""


def plan(cut: bool = False) -> Iterator[Group]:
    """The trainings of the set: healthy ones of each task, and each fault in one task of each algorithm, in turn. Of
    the cut one two healthy seeds of each and one seed of each fault."""
    for training in TRAININGS:
        yield training, "healthy", "", 2 if cut else training.healthy
    for number, (name, fault) in enumerate(FAULTS.items()):
        for algorithm in fault.algorithms:
            own = [training for training in TRAININGS if training.algorithm == algorithm]
            # The others have no normaliser that could be missing.
            training = own[-1 if name == "evaluation_unnormalised" else number % len(own)]
            for strength in ("weak", "strong"):
                yield training, name, strength, 1 if cut else 5


def outcome(returns: Sequence[float], training: Training) -> str:
    """What became of a training by the mean return of the last fifth: "learned", "harmed" or "learned nothing"."""
    if not returns:
        return "learned nothing"
    last = statistics.fmean(returns[-max(10, len(returns) // 5) :])
    if not math.isfinite(last):
        return "harmed"
    if last >= training.good:
        return "learned"
    return "learned nothing" if last <= training.random + 0.1 * (training.good - training.random) else "harmed"


def make(folder: Path, cut: bool = False, only: Sequence[str] = ()) -> None:
    """Train what the folder lacks of the set, one process, one thread."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    folder.mkdir(parents=True, exist_ok=True)
    for training, fault, strength, seeds in plan(cut):
        name = "-".join(filter(None, (training.algorithm, training.task.lower(), fault, strength)))
        if not any(folder.glob(f"{name}-s*.jsonl")) and (
            not only or {training.algorithm, training.task, fault} & set(only)
        ):
            told = _train(folder, name, training, fault, strength, seeds)
            print(f"{name}: {', '.join(f'{told.count(word)} {word}' for word in sorted(set(told)))}", flush=True)


def _train(folder: Path, name: str, training: Training, fault: str, strength: str, seeds: int) -> list[str]:
    import numpy as np

    from benchmarks.health.off_policy import dqn, sac
    from benchmarks.health.on_policy import on_policy
    from benchmarks.health.tokens import grpo

    loop = {"ppo": on_policy, "a2c": on_policy, "dqn": dqn, "sac": sac, "grpo": grpo}[training.algorithm]
    version: Version | None = getattr(FAULTS[fault], strength) if fault != "healthy" else None
    at = math.inf if version is None else version.at * training.steps
    broken = {} if version is None else dict(version.broken)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    told: list[str] = []
    halves = [(32, seeds)] if fault != "healthy" else [(32, seeds - seeds // 2), (64, seeds // 2)]
    with np.errstate(all="ignore"):
        for hidden, n in halves:
            settings = {**training.settings, "hidden": hidden}
            rows, returns = loop(
                training.task, n, training.steps, settings, lambda step: broken if step >= at else {}, rng
            )
            for own, gained in zip(rows.of, returns, strict=True):
                config = {
                    "algorithm": training.algorithm, "task": training.task, "fault": fault, "strength": strength,
                    "injected": int(at) if version is not None else None, "steps": training.steps,
                    "hold_out": _is_held_out(fault, len(told)), "outcome": outcome(gained, training),
                    **settings, **(version.config if version is not None else {}),
                }  # fmt: skip
                _record(folder, f"{name}-s{len(told)}", config, own, len(told))
                told.append(config["outcome"])
    return told


def _is_held_out(fault: str, seed: int) -> bool:
    return seed % 3 == 2 if fault == "healthy" else seed >= 3


def _record(folder: Path, name: str, config: dict[str, Any], rows: Any, seed: int) -> None:
    """One JSON object a line: what was trained, then the rows."""
    lines = [json.dumps({"name": name, "seed": seed, "config": config})]
    for env_step, update, values in rows:
        short = {key: float(f"{value:.6g}") for key, value in values.items()}
        lines.append(json.dumps({"env_step": env_step, "gradient_step": update, **short}))
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n")
