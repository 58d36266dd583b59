"""Probes of the machine: processor, memory, disk, load, the process tree, GPUs."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.keeper.host.probes import Cpu as Cpu
    from rollbook.keeper.host.probes import Disk as Disk
    from rollbook.keeper.host.probes import Host as Host
    from rollbook.keeper.host.probes import Load as Load
    from rollbook.keeper.host.probes import Memory as Memory
    from rollbook.keeper.host.probes import ProcessTree as ProcessTree

__all__ = ["Cpu", "Disk", "Host", "Load", "Memory", "ProcessTree"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.keeper.host.probes": ("Cpu", "Disk", "Host", "Load", "Memory", "ProcessTree"),
    },
)
