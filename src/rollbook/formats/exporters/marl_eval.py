"""marl-eval's JSON, which its plots and tables read: github.com/instadeepai/marl-eval, `json_tools/json_logger.py`."""

from __future__ import annotations

import math
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.system.texts import json_text
from rollbook.values.arrow import plain_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.book import Book
    from rollbook.runs.run_set import RunSet


class MarlEval:
    """marl-eval: every evaluation of every seed as one JSON file: environment, task, algorithm, seed, step.

    Each row of the metric is a step with its `step_count` and `elapsed_time`. The metric is a list. It holds the
    returns of the single episodes, if the episodes recorded at that step in the metric's scope have the logged value as
    their mean; else the logged value. `absolute_metrics` is the last `absolute/<metric>` if a run logged one, else its
    score. Runs without the metric are left out and counted. marl-eval needs the same evaluations in every run, and no
    comma in a name: commas become ";".

    Args:
      metric: the key, such as "test/return"; its last part is its name in the file.
      by: the field that names the algorithm, such as "config.algo".
      task: the field that names the task; by default there is one, named like the project.
      environment: the field that names the environment; by default the project.
      x: the clock of `step_count`.
      score: of `absolute_metrics`, as in `rollbook compare`.
    """

    name = "marl-eval"
    table = ""

    def __init__(
        self,
        metric: str,
        by: str,
        task: str = "project",
        environment: str = "project",
        x: str = "env_step",
        score: str = "mean of the last 10%",
    ) -> None:
        self._metric, self._x, self._score = metric, x, score
        self._fields = (environment, task, by)

    def write(self, runs: RunSet, out: Path) -> dict[str, int]:
        """Write the evaluations of all the runs."""
        rows = runs.rows()
        fields = list(dict.fromkeys(self._fields))
        listed = runs.table(fields, {self._metric: self._score}, x=self._x)
        labels = {field: listed.column(field).to_pylist() for field in fields}
        scores = listed.column(self._metric).to_pylist()
        tree: dict[str, Any] = {}
        counts = {"runs": 0, "evaluations": 0}
        lengths: set[int] = set()
        for n in sorted(range(len(rows)), key=lambda n: _begun(rows[n])):
            row, book, score = rows[n], runs[n], scores[n]
            steps = self._steps(book)
            if not steps:
                counts["runs without the metric"] = counts.get("runs without the metric", 0) + 1
                continue
            branch = tree
            for field in self._fields:
                branch = branch.setdefault(str(labels[field][n]).replace(",", ";"), {})
            name = _free(f"seed_{row['seed']}" if isinstance(row.get("seed"), int) else f"seed_{len(branch)}", branch)
            branch[name] = {**steps, "absolute_metrics": {self._name: [self._absolute(book, score)]}}
            counts["runs"] += 1
            counts["evaluations"] += len(steps)
            lengths.add(len(steps))
        if not tree:
            raise BadInput(f"export to marl-eval: no run has {self._metric!r} along {self._x}")
        if len(lengths) > 1:
            counts["numbers of evaluations a run (marl-eval needs one)"] = len(lengths)
        out.write_text(json_text(tree, indent=1), encoding="utf-8")
        return counts

    @property
    def _name(self) -> str:
        return self._metric.rpartition("/")[2]

    def _steps(self, book: Book) -> dict[str, Any]:
        if self._metric not in {*book.keys(), *book.canonical()}:
            return {}
        episodes = self._episodes(book)
        began = None
        steps: dict[str, Any] = {}
        for row in plain_rows(book.metrics([self._metric], x=self._x)):
            value, count = row.get(self._metric), row[self._x]
            if not isinstance(value, (int, float)) or not math.isfinite(value):
                continue
            began = row["time"] if began is None else began
            returns = episodes.get(count, [])
            is_mean = len(returns) > 1 and math.isclose(math.fsum(returns) / len(returns), value, rel_tol=1e-6)
            elapsed = (row["time"] - began).total_seconds()
            steps[f"step_{len(steps)}"] = {
                "step_count": int(count),
                "elapsed_time": elapsed,
                self._name: returns if is_mean else [float(value)],
            }
        return steps

    def _episodes(self, book: Book) -> dict[int, list[float]]:
        """The returns of the episodes in the metric's scope, by the clock's value."""
        scope = self._metric.rpartition("/")[0]
        found: dict[int, list[float]] = {}
        for row in plain_rows(book.episodes()) if book.row_count("episodes") else []:
            number, count = row.get("return"), row.get(self._x)
            if row.get("scope") == scope and isinstance(number, float) and count is not None:
                found.setdefault(count, []).append(number)
        return found

    def _absolute(self, book: Book, score: float | None) -> float | None:
        key = f"absolute/{self._name}"
        if key in set(book.keys()):
            return float(book.series(key).mean[-1])
        return score


def _begun(row: Mapping[str, Any]) -> float:
    created = row.get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


def _free(name: str, taken: dict[str, Any]) -> str:
    n, free = 2, name
    while free in taken:
        free, n = f"{name}_{n}", n + 1
    return free
