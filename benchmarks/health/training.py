"""Makes the set: trains, and keeps the rows of each training as JSON Lines."""

from __future__ import annotations

import gzip
import json
import math
import os
import statistics
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.health.faults import FAULTS, HELD_OUT, TRAININGS, Training, Version

__all__ = ["Group", "make", "outcome", "plan", "ship"]

_README = """# Trainings with known faults

Made by `python -m benchmarks.health --make FOLDER` of rollbook, under rollbook's licence (MIT). One training a file, as
JSON Lines: first what was trained (`config`: algorithm, task, fault, strength, `injected`, the step at which the
fault was put in, `outcome`, "learned", "harmed" or "learned nothing", by the return of the last fifth, and `hold_out`,
whether it belongs to the part for the end), then its rows. `python -m benchmarks.health --runs FOLDER --to RUNS` makes
run folders of them.
"""

_HELD_OUT_HEALTHY, _HELD_OUT_FAULTY = 99, 3

NEWEST = 8
"""The number of the held-out part; its seeds follow from it. Those before it are opened: rules changed after them."""


@dataclass(frozen=True)
class Group:
    """Trainings side by side.

    Attributes:
      training: what is trained.
      fault: "healthy" for none.
      strength: "weak" or "strong"; "" for healthy.
      seeds: how many.
      is_held_out: whether they are kept for the end, when the rules are made.
    """

    training: Training
    fault: str
    strength: str
    seeds: int
    is_held_out: bool

    @property
    def name(self) -> str:
        """What its files are called; chance comes from it, too."""
        words = (self.training.algorithm, self.training.task.lower(), self.fault, self.strength)
        return "-".join(filter(None, (*words, f"held-out-{NEWEST}" if self.is_held_out else "")))


def plan(held_out: bool = False, cut: bool = False) -> Iterator[Group]:
    """The trainings of one part of the set: healthy ones of each task, and each fault in one task of each algorithm,
    in turn.

    Args:
      held_out: the part for the end, else that on which rules are made.
      cut: two healthy seeds of each task and one seed of each fault.
    """
    healthy_seeds, faulty_seeds = (_HELD_OUT_HEALTHY, _HELD_OUT_FAULTY) if held_out else (99, 5)
    if cut:
        healthy_seeds, faulty_seeds = 2, 1
    trainings = HELD_OUT if held_out else TRAININGS
    for training in trainings:
        yield Group(training, "healthy", "", min(healthy_seeds, training.healthy), held_out)
    for number, (name, fault) in enumerate(FAULTS.items()):
        for algorithm in fault.algorithms:
            own = [it for it in trainings if it.algorithm == algorithm and it.task in (fault.tasks or it.task)]
            for strength in ("weak", "strong"):
                yield Group(own[number % len(own)], name, strength, faulty_seeds, held_out)


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


def make(folder: Path, held_out: bool = False, cut: bool = False, only: Sequence[str] = ()) -> None:
    """Train what the folder lacks of a part of the set, one process, one thread.

    Args:
      held_out, cut: see `plan`.
      only: algorithms, tasks and faults, for some of it.
    """
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(_README)
    for group in plan(held_out, cut):
        of = {group.training.algorithm, group.training.task, group.fault}
        if not any(folder.glob(f"{group.name}-s*.jsonl")) and (not only or of & set(only)):
            told = _train(folder, group)
            print(f"{group.name}: {', '.join(f'{told.count(word)} {word}' for word in sorted(set(told)))}", flush=True)


def _train(folder: Path, group: Group) -> list[str]:
    import numpy as np

    from benchmarks.health.off_policy import dqn, sac
    from benchmarks.health.on_policy import on_policy
    from benchmarks.health.tokens import grpo

    training, fault = group.training, group.fault
    loop = {"ppo": on_policy, "a2c": on_policy, "dqn": dqn, "sac": sac, "grpo": grpo}[training.algorithm]
    version: Version | None = getattr(FAULTS[fault], group.strength) if fault != "healthy" else None
    at = math.inf if version is None else version.at * training.steps
    broken = {} if version is None else dict(version.broken)
    rng = np.random.default_rng(zlib.crc32(group.name.encode()))
    told: list[str] = []
    halves = [(32, group.seeds)]
    if version is None:
        halves = [(32, group.seeds - group.seeds // 2), (64, group.seeds // 2)]
    with np.errstate(all="ignore"):
        for hidden, n in halves:
            settings = {**training.settings, "hidden": hidden}
            rows, returns = loop(
                training.task, n, training.steps, settings, lambda step: broken if step >= at else {}, rng
            )
            for own, gained in zip(rows.of, returns, strict=True):
                config = {
                    "algorithm": training.algorithm,
                    "task": training.task,
                    "fault": fault,
                    "strength": group.strength,
                    "injected": int(at) if version is not None else None,
                    "steps": training.steps,
                    "hold_out": group.is_held_out,
                    "outcome": outcome(gained, training),
                    **settings,
                    **(version.config if version is not None else {}),
                }
                _record(folder, f"{group.name}-s{len(told)}", config, own, len(told))
                told.append(config["outcome"])
    return told


def _record(folder: Path, name: str, config: dict[str, Any], rows: Any, seed: int) -> None:
    """One JSON object a line: what was trained, then the rows."""
    lines = [json.dumps({"name": name, "seed": seed, "config": config})]
    for env_step, update, values in rows:
        short = {key: float(f"{value:.6g}") for key, value in values.items()}
        lines.append(json.dumps({"env_step": env_step, "gradient_step": update, **short}))
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n")


def ship(folder: Path, to: Path) -> int:
    """Write a healthy training of each kind of the part on which rules are made into one small file, for the contract
    of rules (`rollbook.testing.measure_rule`); how many there are.

    Args:
      folder: the set, as `make` left it.
      to: the file.
    """
    lines = []
    for group in plan(cut=True):
        path = folder / f"{group.name}-s0.jsonl"
        if group.fault != "healthy":
            continue
        about, *rows = (json.loads(line) for line in path.read_text().splitlines())
        keys: list[list[str]] = []
        told = []
        for row in rows:
            env_step, gradient_step = row.pop("env_step"), row.pop("gradient_step")
            if list(row) not in keys:
                keys.append(list(row))
            told.append([keys.index(list(row)), env_step, gradient_step, *row.values()])
        it = {"name": about["name"], "config": about["config"], "keys": keys, "rows": told}
        lines.append(json.dumps(it, separators=(",", ":")) + "\n")
    to.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return len(lines)
