"""Scores of runs x tasks in rliable's layout: https://github.com/google-research/rliable, `library.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rollbook.errors import BadInput
from rollbook.system.texts import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.runs.run_set import RunSet


class Rliable:
    """rliable: a matrix of scores [runs, tasks] for each group, in an .npz that is its `score_dict`, or in JSON.

    `dict(numpy.load("scores.npz"))` is the argument of `rliable.library.get_interval_estimates`. The scores are those
    of `rollbook compare`. A run (with several tasks: a seed) without a score of every task is left out and counted,
    because rliable has no missing values. A file that ends in .json also names tasks and runs.

    Args:
      metric: the score's key, such as "test/return".
      by: the field whose values are the groups, such as "config.algo".
      task: the field that names a run's task, such as "config.env_id"; one task by default.
      score, x, normalise, floor: as in `rollbook compare`.
    """

    name = "rliable"
    table = ""

    def __init__(
        self,
        metric: str,
        by: str,
        task: str | None = None,
        score: str = "mean of the last 10%",
        x: str | None = None,
        normalise: str | None = None,
        floor: float | None = None,
    ) -> None:
        self._metric, self._by, self._task = metric, by, task
        self._how: dict[str, Any] = {"score": score, "x": x, "normalise": normalise, "floor": floor}

    def write(self, runs: RunSet, out: Path) -> dict[str, int]:
        """Write the scores of all the runs."""
        compared = runs.compare(self._metric, self._by, task=self._task, **self._how)
        scores, names, left_out = {}, {}, 0
        for group in compared.groups:
            whole = np.array([not np.isnan(row).any() for row in group.scores_RT], dtype=bool)
            left_out += int((~whole).sum())
            if whole.any():
                scores[group.label] = group.scores_RT[whole]
                names[group.label] = [name for name, kept in zip(group.names, whole, strict=True) if kept]
        if not scores:
            raise BadInput(f"export to rliable: no run has a score of {self._metric!r} in every task")
        if out.suffix == ".json":
            content = {
                "tasks": compared.tasks,
                "runs": names,
                "scores": {name: s.tolist() for name, s in scores.items()},
            }
            out.write_text(json_text(content, indent=1), encoding="utf-8")
        else:
            with open(out, "wb") as file:
                np.savez(file, **scores)
        counts = {"groups": len(scores), "scores": sum(matrix.size for matrix in scores.values())}
        if left_out:
            counts["runs without a score of every task"] = left_out
        return counts
