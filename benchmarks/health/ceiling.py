"""When returns alone can tell a faulty training, and how much of that the rules reach.

A rule knows its own run and at best five others. An oracle knows more than any rule can: all healthy trainings of the
same algorithm and task, and afterwards also which faults there were. It watches one number, the mean of the last n
returns (or how that differs from the n before), by how many standard deviations it lies off what healthy trainings have
at the same step. Of each task it has the number, n and limit that name the most faults soon, with as many false pages
as the budget allows: `BUDGET` a healthy training, over all tasks together. The step at which it speaks is the first one
at which a fault that only returns show can show.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.health.faults import FAULTS
from benchmarks.health.scoring import SOON, Scored

__all__ = ["BUDGET", "ceiling", "oracle"]

BUDGET = 0.05
"""False pages a healthy training."""

_GRID = 200
"""A training is looked at so many times."""

_WINDOWS, _MOST_FALSE, _FEWEST = (1, 2, 5, 10, 20, 40), 4, 4
_KEYS = ("charts/episodic_return", "reward")

Array = np.ndarray[Any, np.dtype[Any]]
Returns = tuple[Array, Array, int]
"""Environment steps, returns, and the length of the training."""


@dataclass(frozen=True)
class _Choice:
    """What an oracle of a task watches: how many faults it names soon and at all, and when it names each."""

    soon: int
    at: dict[str, float]

    @property
    def worth(self) -> tuple[int, int]:
        return self.soon, len(self.at)


def ceiling(folder: Path, scored: Sequence[Scored]) -> str:
    """A table in Markdown of the harmful faults that returns show.

    Args:
      folder: the set, as `training.make` left it.
      scored: what the rules said of its trainings.
    """
    scored = [run for run in scored if (folder / f"{run.name}.jsonl").is_file()]
    if not any(run.fault == "healthy" for run in scored):
        raise SystemExit(
            f"{folder} has no healthy training of which scores are kept: make them with --make, the held-out "
            "ones with --make FOLDER --hold-out"
        )
    faulty = {
        run.name: run
        for run in scored
        if run.fault != "healthy" and run.is_harmful and "returns" in FAULTS[run.fault].shows_in
    }
    healthy = [run.name for run in scored if run.fault == "healthy"]
    returns = {name: _returns(folder / f"{name}.jsonl") for name in [*healthy, *faulty]}
    of: dict[tuple[str, str], tuple[list[str], list[Scored]]] = defaultdict(lambda: ([], []))
    for run in scored:
        if run.name in returns:
            key = (run.config["algorithm"], run.config["task"])
            (of[key][0].append(run.name) if run.fault == "healthy" else of[key][1].append(run))
    choices = {
        key: oracle([returns[name] for name in names], {run.name: returns[run.name] for run in runs}, runs)
        for key, (names, runs) in of.items()
        if names
    }
    at = {
        name: step
        for key, n in _spend(choices, int(BUDGET * len(healthy))).items()
        for name, step in choices[key][n].at.items()
    }
    lines = [
        "| task | harmful faults that returns show | the oracle names | soon | the rules name | soon "
        "| soon, or within 5 % after the oracle |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = [(f"{algorithm.upper()} on {task}", runs) for (algorithm, task), (_names, runs) in of.items() if runs]
    for words, runs in [*rows, ("all", list(faulty.values()))]:
        own = [
            len(runs),
            sum(run.name in at for run in runs),
            sum(at.get(run.name, np.inf) <= run.shows + SOON * run.config["steps"] for run in runs),
            sum(run.named() for run in runs),
            sum(run.named(SOON) for run in runs),
            sum(run.named(SOON) or _named_by(run, at.get(run.name, -np.inf)) for run in runs),
        ]
        lines.append(f"| {words} | {' | '.join(map(str, own))} |")
    delays = sorted((at[name] - run.shows) / run.config["steps"] for name, run in faulty.items() if name in at)
    if delays:
        low, middle, high = (delays[int(share * (len(delays) - 1))] for share in (0.1, 0.5, 0.9))
        lines += [
            "",
            f"The oracle speaks {middle:+.1%} of the steps after the fault became visible (median; "
            f"{low:+.1%} to {high:+.1%} in 80 % of them).",
        ]
    return "\n".join(lines)


def _named_by(run: Scored, step: float) -> bool:
    delay = run.delay()
    steps = run.config["steps"]
    return delay is not None and run.shows + delay * steps <= step + SOON * steps


def _returns(path: Path) -> Returns:
    steps, values = [], []
    with path.open() as lines:
        config = json.loads(next(lines))["config"]
        for line in lines:
            if any(f'"{key}"' in line for key in _KEYS):
                row = json.loads(line)
                steps.append(row["env_step"])
                values.append(next(row[key] for key in _KEYS if key in row))
    return np.asarray(steps, float), np.asarray(values, float), int(config["steps"])


def oracle(healthy: Sequence[Returns], faulty: dict[str, Returns], runs: Collection[Scored]) -> list[_Choice]:
    """The best choice of one task with 0, 1, … false pages.

    Args:
      healthy: healthy trainings, all of the same length.
      faulty: faulty ones, by name.
      runs: what is known of the faulty ones.
    """
    best = [_Choice(-1, {})] * min(_MOST_FALSE + 1, len(healthy))
    numbers, others = [_numbers(*it) for it in healthy], {name: _numbers(*it) for name, it in faulty.items()}
    for kind in numbers[0]:
        table = np.stack([it[kind] for it in numbers])
        # Each healthy training is compared with the others, as if it were new.
        highest = sorted((float(_off(table[i], np.delete(table, i, 0)).max()) for i in range(len(table))), reverse=True)
        off = {name: _off(it[kind], table) for name, it in others.items()}
        for n in range(len(best)):
            at: dict[str, float] = {}
            for run in runs:
                steps = np.arange(1, _GRID + 1) * run.config["steps"] / _GRID
                beyond = np.flatnonzero((off[run.name] > highest[n]) & (steps >= run.config["injected"]))
                if len(beyond):
                    at[run.name] = float(steps[beyond[0]])
            soon = sum(at.get(run.name, np.inf) <= run.shows + SOON * run.config["steps"] for run in runs)
            best[n] = max(best[n], _Choice(soon, at), key=lambda choice: choice.worth)
    return best


def _numbers(steps: Array, values: Array, length: int) -> dict[tuple[str, int], Array]:
    """What can be watched, at each point of the grid; NaN where there are too few returns."""
    known = np.searchsorted(steps, np.linspace(length / _GRID, length, _GRID), side="right")
    sums, found = np.concatenate([[0.0], np.cumsum(values)]), {}
    for n in _WINDOWS:
        newest = (sums[known] - sums[np.maximum(known - n, 0)]) / n
        before = (sums[np.maximum(known - n, 0)] - sums[np.maximum(known - 2 * n, 0)]) / n
        found["mean", n] = np.where(known >= n, newest, np.nan)
        found["change", n] = np.where(known >= 2 * n, newest - before, np.nan)
    return found


def _off(number: Array, table: Array) -> Array:
    """By how many standard deviations a number lies off those of healthy trainings; 0 where few have one."""
    known = np.isfinite(table).sum(0)
    with np.errstate(all="ignore"):
        filled = np.where(np.isfinite(table), table, 0.0)
        mean = filled.sum(0) / known
        variance = (np.where(np.isfinite(table), table - mean, 0.0) ** 2).sum(0) / (known - 1)
        smooth = np.nan_to_num(variance)
        smooth = np.convolve(np.pad(smooth, 2, mode="edge"), np.full(5, 0.2), mode="valid")
        off = np.abs(number - mean) / np.maximum(np.sqrt(smooth), 1e-9)
    return np.where((known >= _FEWEST) & np.isfinite(off), off, 0.0)


def _spend(choices: dict[tuple[str, str], list[_Choice]], budget: int) -> dict[tuple[str, str], int]:
    """How many false pages each task may have: one after the other to where it names most more soon."""
    spent = dict.fromkeys(choices, 0)
    for _ in range(budget):
        gains = {
            key: max(
                ((own[n].soon - own[spent[key]].soon) / (n - spent[key]) for n in range(spent[key] + 1, len(own))),
                default=0.0,
            )
            for key, own in choices.items()
        }
        key = max(gains, key=gains.__getitem__)
        if gains[key] <= 0:
            break
        spent[key] += 1
    return spent
