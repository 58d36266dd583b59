"""Modules that a run needs after `init`, imported by `init` on its caller's thread.

If a thread of rollbook imports while the program forks, the child gets an import lock that is never released. An
exception during an import may be swallowed, or may leave the lock held. So everything that verbs, `finish`, rollbook's
threads or forked children need is imported here. Heavy modules load where they are needed: on the caller's thread, or
under `system.optional.forks_wait`.
"""

from __future__ import annotations

from importlib import import_module

from rollbook.system.optional import is_core_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.keeper.orders import Orders

_BY_ALL = (
    "base64", "linecache", "msgspec", "platform", "selectors", "shutil", "signal", "subprocess",
    "rollbook.capture.checkpoints.container", "rollbook.capture.checkpoints.saving",
    "rollbook.capture.checkpoints.torch_files", "rollbook.capture.media.pixels", "rollbook.capture.media.recorder",
    "rollbook.capture.samples.recorder", "rollbook.capture.store_dump", "rollbook.capture.timers",
    "rollbook.values.describe", "rollbook.journal.frames", "rollbook.keeper.launch", "rollbook.run.foreign_rows",
)  # fmt: skip

_BY_SINKS = ("rollbook.journal.reader", "rollbook.keeper.sealed", "rollbook.keeper.sinks")

_BY_KEEPERS = (
    "rollbook.schema.alerts",
    "rollbook.keeper.host.gpu",
    "rollbook.keeper.host.probes",
    "rollbook.health",
    "rollbook.keeper.main",
    "rollbook.values.spool.encode",
)


def import_needed(orders: Orders | None, keeper: str) -> None:
    """Import what a run with these orders needs in this process. Modules that are loaded already cost nothing.

    Args:
      orders: its sinks and rules; None for a process that only attaches.
      keeper: as `init` takes it.
    """
    is_core_alone()  # it searches once
    is_here = orders is not None and keeper != "process"
    feeds = orders is not None and bool(orders.fed_here(keeper))
    for name in (*_BY_ALL, *(_BY_SINKS if feeds or is_here else ()), *(_BY_KEEPERS if is_here else ())):
        import_module(name)
    if orders is not None and (feeds or is_here):
        orders.import_needed(keeper)
