"""Compares published scores: a list of runs for each task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollbook.compare.comparing import compare
from rollbook.compare.comparison import Comparison
from rollbook.compare.facts import Fact
from rollbook.compare.scores import Entry
from rollbook.errors import BadInput

__all__ = ["published"]

Scores = Mapping[str, Mapping[str, Sequence[float]]]


def published(
    scores: Scores | Iterable[str | os.PathLike[str]], *, normalise: object = None, direction: str = "higher"
) -> Comparison:
    """Compare published raw scores: aggregates, profiles and probabilities of improvement, as in papers.

    Args:
      scores: {algorithm: {task: [score of each run]}}; or JSON files, each {task: [scores]} (the file's name is the
        algorithm, as with the scores of rliable) or {algorithm: {task: [scores]}}.
      normalise: "atari" or "d4rl" for published anchors, {task: (worth 0, worth 1)}, or None if already normalised.
      direction: whether "higher" or "lower" is better.
    Returns:
      See `rollbook.compare.Comparison`. Runs are not matched across tasks: use `resample="runs"`. The number of runs
      of a group is that of its task with the fewest runs.
    Raises:
      BadInput: a file that is not such JSON, no scores, a score that is not a finite number, different tasks.
    """
    if not isinstance(scores, Mapping):
        scores = _read([Path(each) for each in scores])
    checked = {label: _checked(label, tasks) for label, tasks in scores.items()}
    if not checked:
        raise BadInput("published(): no scores are given")
    names = {label: sorted(tasks) for label, tasks in checked.items()}
    first, expected = next(iter(names.items()))
    for label, found in names.items():
        if found != expected:
            apart = sorted(set(found) ^ set(expected))
            raise BadInput(
                f"published(): {first} and {label} have different tasks ({', '.join(apart[:5])}); only the same tasks "
                "can be compared.",
                "Leave these out of both",
            )
    entries = [
        Entry(label, f"{label} {task} {run}", run, task, score)
        for label, tasks in checked.items()
        for task in expected
        for run, score in enumerate(tasks[task][: min(map(len, tasks.values()))])
    ]
    facts = [
        Fact("uneven tasks", label, values={"least": min(counts), "most": max(counts)})
        for label, tasks in checked.items()
        if len(counts := {len(each) for each in tasks.values()}) > 1
    ]
    return compare(
        entries,
        metric="score" if normalise is None else "normalised score",
        by="algorithm",
        how="as published",
        normalise=normalise,
        direction=direction,
        facts=facts,
    )


def _read(paths: Sequence[Path]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in paths:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path}: this file could not be read as JSON: {error}") from None
        if not isinstance(data, dict) or not data:
            raise BadInput(f"{path}: this is not {{task: [scores]}}; its outermost value has to be an object")
        several = all(isinstance(each, dict) for each in data.values())
        for label, tasks in data.items() if several else [(path.stem, data)]:
            if label in found:
                raise BadInput(f"{path}: there are scores of {label!r} already.", "Rename the file or the algorithm")
            found[label] = tasks
    return found


def _checked(label: str, tasks: Mapping[str, Any]) -> dict[str, list[float]]:
    result = {}
    for task, runs in tasks.items():
        values = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
        try:
            scores = [float(value) for value in values]
        except (TypeError, ValueError):
            scores = []
        if not scores or not all(score - score == 0 for score in scores):
            raise BadInput(
                f"published(): {label}, {task}: {str(runs)[:60]} is not a list of finite numbers, one for each run"
            )
        result[task] = scores
    return result
