"""What identifies a process, as a type.

For the type checker and for readers of the code; not loaded at run time.
"""

from __future__ import annotations

from typing import TypedDict


class Identity(TypedDict):
    """Identifies a process, to check whether it lives; see `system.liveness`. "": unknown there.

    Attributes:
      boot_id: of the system's boot. machine: of the installation.
      pid_ns: the namespace of the pid.
      start_time: of the process, in the system's own unit.
      image: of the program in the process: another one after `exec`.
    """

    boot_id: str
    machine: str
    pid_ns: str
    pid: int
    start_time: str
    image: str
    host: str
