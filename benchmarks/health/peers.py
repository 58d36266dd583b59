"""What other monitors say of the held-out trainings, each by its own code and defaults.

They are given what their users give them: fifty times in a training, the mean of the last twenty returns. None names a
cause, so a fault counts as found when the monitor would have stopped the training after the fault was put in.
TensorBoard's debugger reads tensors of TensorFlow programs and cannot run here; the row shows the most that it could
find: a number that is none, in anything that was logged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.health.faults import FAULTS
from benchmarks.health.scoring import SOON, poisson, score, trainings

__all__ = ["table"]

_TIMES, _MEAN = 50, 20
Monitor = Callable[[Any, list[Any]], "int | None"]


def _results(config: Any, rows: list[Any]) -> Iterator[tuple[int, float]]:
    """(environment step, mean of the last returns), fifty times."""
    last: list[float] = []
    due = 1
    for row in rows:
        value = row.values.get("charts/episodic_return", row.values.get("reward"))
        if value is not None:
            last = [*last[-_MEAN + 1 :], value]
        if row.clocks["env_step"] >= due * config["steps"] / _TIMES and last:
            due = int(row.clocks["env_step"] * _TIMES / config["steps"]) + 1
            yield row.clocks["env_step"], sum(last) / len(last)


def _tune(config: Any, rows: list[Any]) -> int | None:
    from ray.tune.stopper import TrialPlateauStopper

    stopper = TrialPlateauStopper(metric="return")
    steps = (step for step, value in _results(config, rows) if stopper("one", {"return": value}))
    return next(steps, None)


def _sb3(config: Any, rows: list[Any]) -> int | None:
    from stable_baselines3.common.callbacks import StopTrainingOnNoModelImprovement

    class Evaluation:
        best_mean_reward, num_timesteps = -math.inf, 0

    callback: Any = StopTrainingOnNoModelImprovement(max_no_improvement_evals=3, min_evals=5)
    callback.parent, callback.model = Evaluation(), Evaluation()
    for step, value in _results(config, rows):
        callback.parent.best_mean_reward = max(callback.parent.best_mean_reward, value)
        if not callback.on_step():
            return step
    return None


def _numbers(config: Any, rows: list[Any]) -> int | None:
    steps = (row.clocks["env_step"] for row in rows if not all(map(math.isfinite, row.values.values())))
    return next(steps, None)


_MONITORS: dict[str, Monitor] = {
    "Ray Tune, TrialPlateauStopper": _tune,
    "Stable-Baselines3, StopTrainingOnNoModelImprovement(3, min_evals=5)": _sb3,
    "any number that is not finite (the most that TensorBoard's debugger could find)": _numbers,
}


def table(folder: Path) -> str:
    """A table in Markdown."""
    runs = score(folder, hold_out=True)
    rows_of = {name: (config, rows) for name, config, rows in trainings(folder, True)}
    healthy, harmful = [run for run in runs if run.fault == "healthy"], [run for run in runs if run.is_harmful]
    harmful = [run for run in harmful if run.fault in FAULTS]
    lines = [
        "| monitor | healthy trainings reported or stopped | harmful ones reported or stopped | soon | cause named |",
        "|---|---|---|---|---|",
    ]

    def line(words: str, says: dict[str, int | None], named: int) -> str:
        false = sum(says[run.name] is not None for run in healthy)
        late = [(at, run) for run in harmful if (at := says[run.name]) is not None and at >= run.config["injected"]]
        soon = sum(at <= run.shows + SOON * run.config["steps"] for at, run in late)
        return (
            f"| {words} | {false} of {len(healthy)} (at most {poisson(false) / len(healthy):.3f} a run) | "
            f"{len(late)} of {len(harmful)} | {soon} | {named} |"
        )

    ours = {
        run.name: min((at for at in run.said.values() if at >= (run.config["injected"] or 0)), default=None)
        for run in runs
    }
    lines.append(line("rollbook's rules", ours, sum(run.named() for run in harmful)))
    for words, monitor in _MONITORS.items():
        lines.append(line(words, {name: monitor(*pair) for name, pair in rows_of.items()}, 0))
    return "\n".join(lines)
