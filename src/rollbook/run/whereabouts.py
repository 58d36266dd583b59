"""Where in a cluster this process runs, as far as known. Stored with each writer, so that people find it."""

from __future__ import annotations

import os
import sys
import warnings

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VARIABLES = {
    "slurm": ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "SLURM_NODEID"),
    "torchrun": ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT"),
}


def whereabouts() -> dict[str, object]:
    """{"ray": {node, actor, name, restarted, task}, "slurm": {…}, "torchrun": {…}}: those that apply, as plain data.

    Ray is only asked if this process has loaded it and is part of a cluster. Never raises.
    """
    places: dict[str, object] = {}
    for system, names in _VARIABLES.items():
        if os.environ.get(names[0]):
            given = {name: os.environ[name] for name in names if os.environ.get(name)}
            places[system] = {_short(name): value for name, value in given.items()}
    ray = sys.modules.get("ray")
    if ray is not None:
        with tolerating(Exception):  # Ray is shutting down, or is another release
            if ray.is_initialized():
                places["ray"] = _in_ray(ray, ray.get_runtime_context())
    return places


def _in_ray(ray: object, context: Any) -> dict[str, object]:
    place = {"node": context.get_node_id(), "job": context.get_job_id()}
    mode = getattr(getattr(context, "worker", None), "mode", None)
    if mode is not None and mode != getattr(ray, "WORKER_MODE", mode):
        return place  # the driver: a question for its actor would make Ray print a warning
    actor = context.get_actor_id()
    if actor:
        with warnings.catch_warnings():  # Ray's own property uses a deprecated one, and warns
            warnings.simplefilter("ignore")
            restarted = bool(context.was_current_actor_reconstructed)
        place |= {"actor": actor, "name": context.get_actor_name(), "restarted": restarted}
    else:
        place["task"] = context.get_task_name()
    return {name: value for name, value in place.items() if value not in (None, "")}


def _short(variable: str) -> str:
    return variable.lower().removeprefix("slurm_").removeprefix("torchelastic_")
