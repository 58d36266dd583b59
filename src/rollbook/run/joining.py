"""Finds the run that a process joins instead of creating one: its parent's, or that of rank 0 of its job."""

from __future__ import annotations

import os
import time

from rollbook.errors import NotARun
from rollbook.schema import manifest
from rollbook.system.files import is_folder


def own_rank() -> int | None:
    """The rank of this process in a distributed job, None outside one."""
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def rendezvous() -> str:
    """A text that all ranks of one distributed job share, "" outside such a job."""
    if own_rank() is None:
        return ""
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE")
    return "|".join(os.environ.get(name, "") for name in names).strip("|")


def elder(project: str, name: str, root: str) -> str | None:
    """The run that this process should join instead of creating one, if any."""
    folder = os.environ.get("ROLLBOOK_RUN_ID", "")
    if folder and os.environ.get("ROLLBOOK_RUN_PID") != str(os.getpid()):
        try:
            about = manifest.read(folder)
            if about["project"] == project and about["name"] == name and about.get("status") == "running":
                return folder
        except (NotARun, OSError):
            pass
    shared = rendezvous()
    if not shared or not own_rank():
        return None
    deadline = time.monotonic() + 30.0
    place = os.path.join(root, project)
    while time.monotonic() < deadline:
        for entry in os.scandir(place) if is_folder(place) else ():
            if entry.name.rpartition("-")[0] == name:
                try:
                    about = manifest.read(entry.path)
                except (NotARun, OSError):
                    continue
                if about.get("rendezvous") == shared and about.get("status") == "running":
                    return entry.path
        time.sleep(0.1)
    return None
