"""Scores of several tasks on one scale: 0 is the lower anchor, 1 the upper one.

normalise(scores_RT, ["Breakout", "Pong"], "atari")
normalise(scores_RT, ["reach", "push"], {"reach": (0, 1), "push": (-50, 0)})
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput, UnknownKey, did_you_mean
from rollbook.stats._checked_input import Floats, choice, floats
from rollbook.stats.reference_scores import REFERENCES
from rollbook.system.guard import tolerating


def normalise(scores_RT: ArrayLike, tasks: Sequence[str], anchors: str | Mapping[str, tuple[float, float]]) -> Floats:
    """(score - low) / (high - low), task by task.

    Args:
      scores_RT: [runs, tasks] or [runs, tasks, points]; for one task also [runs]. NaN and infinities stay.
      tasks: [tasks], their names in the order of the axis.
      anchors: the name of a published table ("atari", "d4rl") or task -> (low, high) in units of the score.

    Returns:
      An array of the same shape.

    Raises:
      BadInput: the number of names is not the number of tasks, or anchors are equal or not finite.
      UnknownKey: a task without anchors.
    """
    scores = floats(scores_RT, "scores_RT")
    pairs = anchors_of(tasks, anchors)
    width = scores.shape[1] if scores.ndim > 1 else 1
    if width != len(pairs):
        raise BadInput(f"scores_RT has {width} tasks and {len(pairs)} are named.")
    low, high = np.array(pairs).T
    if scores.ndim == 1:
        return np.asarray((scores - low[0]) / (high[0] - low[0]))
    shape = (1, -1, *(1,) * (scores.ndim - 2))
    return np.asarray((scores - low.reshape(shape)) / (high - low).reshape(shape))


def _of_json(text: str) -> Mapping[str, tuple[float, float]]:
    found: object = None
    with tolerating(ValueError):
        found = json.loads(text)
    pairs = found if isinstance(found, dict) else {}
    if not pairs or not all(isinstance(ends, list) and len(ends) == 2 for ends in pairs.values()):
        raise BadInput(
            f"normalise={text!r:.80} is no JSON object with two numbers for each task.",
            'Write it as {"Hopper": [0, 3000], "Walker2d": [0, 4000]}: the scores that are 0 and 1',
        )
    return {str(task): tuple(ends) for task, ends in pairs.items()}


def anchors_of(tasks: Sequence[str], anchors: str | Mapping[str, tuple[float, float]]) -> list[tuple[float, float]]:
    """The anchors of each task; the arguments are those of `normalise`. A mapping may be JSON text, as in commands."""
    if isinstance(anchors, str) and anchors.lstrip().startswith("{"):
        anchors = _of_json(anchors)
    if isinstance(anchors, str):
        table = REFERENCES[choice(anchors, REFERENCES, "table of reference scores")]
        return [table.of(task) for task in tasks]
    pairs = []
    for task in tasks:
        if task not in anchors:
            raise UnknownKey(f"No anchors are given for the task {task!r}.", did_you_mean(task, list(anchors)))
        low, high = (float(value) for value in anchors[task])
        if not (math.isfinite(low) and math.isfinite(high)) or low == high:
            raise BadInput(f"The anchors of {task!r} are {low} and {high}; they have to be two different numbers.")
        pairs.append((low, high))
    return pairs
