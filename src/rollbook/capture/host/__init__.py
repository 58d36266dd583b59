"""Probes of the machine: processor, memory, disk, load, the process tree, GPUs."""

from __future__ import annotations

from rollbook.ground.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.host.probes import Cpu as Cpu
    from rollbook.capture.host.probes import Disk as Disk
    from rollbook.capture.host.probes import Host as Host
    from rollbook.capture.host.probes import Load as Load
    from rollbook.capture.host.probes import Memory as Memory
    from rollbook.capture.host.probes import ProcessTree as ProcessTree

__all__ = ["Cpu", "Disk", "Host", "Load", "Memory", "ProcessTree"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.host.probes": ("Cpu", "Disk", "Host", "Load", "Memory", "ProcessTree"),
    },
)
