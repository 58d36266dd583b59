"""Which rank of a distributed job this process is, what its ranks share, and where in a cluster it runs."""

from __future__ import annotations

import os
import sys
import warnings

from rollbook.system import liveness
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""The variables with a process's rank and with the number of ranks, by launcher."""

_MEETING = (
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_RESTART_COUNT",
    "PMIX_NAMESPACE",
    "OMPI_MCA_ess_base_jobid",
)
"""Variables that the ranks of one job share."""

_SIZES = (
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"),
)


def own_rank() -> int | None:
    """The rank of this process in a distributed job, None outside one."""
    return _rank_and_size()[0]


def _rank_and_size() -> tuple[int | None, int | None]:
    for name, size in _RANKS:
        value, all_of_them = os.environ.get(name, ""), os.environ.get(size, "")
        if value.isdigit():
            return int(value), int(all_of_them) if all_of_them.isdigit() else None
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None:  # spawned by the program itself
        with tolerating(Exception):
            if distributed.is_initialized():
                return int(distributed.get_rank()), int(distributed.get_world_size())
    return None, None


def rendezvous() -> str:
    """A text that all ranks of one distributed job share, "" outside such a job."""
    rank, size = _rank_and_size()
    if rank is None or size == 1:
        return ""
    shared = "|".join(os.environ.get(name, "") for name in _MEETING).strip("|")
    address = os.environ.get("MASTER_ADDR", "")
    if not shared or address == "localhost" or address.startswith("127."):  # a launcher on this host
        own = liveness.identity()
        shared += f"|{own.get('host')}|{own.get('boot_id')}"
        if not address:
            shared += f"|{os.getppid()}|{liveness.start_time(os.getppid())}"
    return shared


def is_on_one_host() -> bool:
    """Whether all ranks of the job run on this host, according to its launcher."""
    return all(os.environ.get(here) in (None, os.environ.get(all_of_them)) for here, all_of_them in _SIZES)


_VARIABLES = {
    "slurm": ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "SLURM_NODEID"),
    "torchrun": ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT"),
}


def whereabouts() -> dict[str, object]:
    """{"ray": {node, actor, name, restarted, task}, "slurm": {…}, "torchrun": {…}}: those that apply, as plain data.

    Ray is only asked if this process has loaded it and is part of a cluster. Never raises.
    """
    found: dict[str, object] = {}
    for system, names in _VARIABLES.items():
        if os.environ.get(names[0]):
            given = {name: os.environ[name] for name in names if os.environ.get(name)}
            found[system] = {_short(name): value for name, value in given.items()}
    ray = sys.modules.get("ray")
    if ray is not None:
        with tolerating(Exception):  # Ray is shutting down, or is another release
            if ray.is_initialized():
                found["ray"] = _in_ray(ray, ray.get_runtime_context())
    return found


def _in_ray(ray: object, context: Any) -> dict[str, object]:
    found = {"node": context.get_node_id(), "job": context.get_job_id()}
    mode = getattr(getattr(context, "worker", None), "mode", None)
    if mode is not None and mode != getattr(ray, "WORKER_MODE", mode):
        return found  # the driver: a question for its actor would make Ray print a warning
    actor = context.get_actor_id()
    if actor:
        with warnings.catch_warnings():  # Ray's own property uses a deprecated one, and warns
            warnings.simplefilter("ignore")
            restarted = bool(context.was_current_actor_reconstructed)
        found |= {"actor": actor, "name": context.get_actor_name(), "restarted": restarted}
    else:
        found["task"] = context.get_task_name()
    return {name: value for name, value in found.items() if value not in (None, "")}


def _short(variable: str) -> str:
    return variable.lower().removeprefix("slurm_").removeprefix("torchelastic_")
