"""Trajectories that are usable for learning: no missing steps, a last observation, a marked end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rollbook.errors import BadInput
from rollbook.formats.datasets._cells import leaves_of
from rollbook.formats.datasets._source import StepSource, Trajectory


@dataclass
class Exported:
    """What an export wrote and left out.

    Attributes:
      episodes, steps: written (episodes count once per agent).
      with_gaps: trajectories left out because steps are missing in them.
      cut: trajectories of unfinished episodes, marked as truncated at their last known observation.
      repeated: episodes that appeared again after their end in an import, and were skipped.
      paths: the written files or folders.
    """

    episodes: int = 0
    steps: int = 0
    with_gaps: int = 0
    cut: int = 0
    repeated: int = 0
    paths: tuple[str, ...] = ()


def whole_trajectories(source: StepSource, exported: Exported, agent: str | None = None) -> Iterator[Trajectory]:
    """The trajectories of a source that can be used for learning; `exported` counts the others.

    An unfinished episode has no observation after its last step. That step is dropped; the one before it ends the
    trajectory and is marked truncated.
    """
    for trajectory in source:
        if agent is not None and trajectory.agent != agent:
            continue
        if not trajectory.is_whole:
            exported.with_gaps += 1
            continue
        ready = _ended(trajectory)
        if ready is None:
            exported.with_gaps += 1
            continue
        exported.cut += ready is not trajectory
        exported.episodes += 1
        exported.steps += len(ready)
        yield ready


def _ended(trajectory: Trajectory) -> Trajectory | None:
    over = bool(trajectory.column("terminated", False)[-1]) or bool(trajectory.column("truncated", False)[-1])
    if trajectory.last or leaves_of(trajectory.columns, "next_obs"):
        return trajectory if over else _marked(trajectory)
    if len(trajectory) < 2:
        return None
    n = len(trajectory) - 1
    last = {name: cells[n] for name, cells in trajectory.columns.items() if name.partition("/")[0] == "obs"}
    if not last:
        raise BadInput(
            f"episode {trajectory.episode_id} was recorded without observations; a data set needs them.",
            "Record with RecordEpisodes(env, scope, steps=…), or pass obs= to the recorder.",
        )
    columns = {name: cells[:n] for name, cells in trajectory.columns.items()}
    t, times = trajectory.t[:n], trajectory.times[:n]
    return _marked(Trajectory(trajectory.episode_id, trajectory.agent, t, columns, last, times, trajectory.row, True))


def _marked(trajectory: Trajectory) -> Trajectory:
    cut = np.array(trajectory.column("truncated", False), dtype=bool)
    cut[-1] = True
    return trajectory.with_columns({**trajectory.columns, "truncated": cut})
