"""Modules that a run needs after `init`, imported by `init` on its caller's thread.

If a thread of rollbook imports while the program forks, the child gets an import lock that is never released. An
exception during an import may be swallowed, or may leave the lock held. So everything that verbs, `finish`, rollbook's
threads or forked children need is imported here. Heavy modules load where they are needed: on the caller's thread, or
under `ground.optional.forks_wait`.
"""

from __future__ import annotations

from importlib import import_module

from rollbook.ground.foreign import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.run.arguments import Plan

__all__ = ["import_needed"]

_BY_ALL = (
    "base64", "linecache", "msgspec", "platform", "selectors", "shutil", "signal", "subprocess",
    "rollbook.capture.checkpoints.container", "rollbook.capture.checkpoints.saving",
    "rollbook.capture.checkpoints.torch_files", "rollbook.capture.media.pixels", "rollbook.capture.media.recorder",
    "rollbook.capture.samples.recorder", "rollbook.capture.store_dump", "rollbook.capture.timers",
    "rollbook.ground.describe", "rollbook.journal.frames", "rollbook.keeper.launch", "rollbook.run.foreign_rows",
)  # fmt: skip

_BY_SINKS = (
    "rollbook.journal.reader", "rollbook.keeper.local_sinks", "rollbook.keeper.sealed", "rollbook.keeper.sinks",
)  # fmt: skip

_BY_KEEPERS = (
    "rollbook.ground.alerts", "rollbook.keeper.host.gpu", "rollbook.keeper.host.probes", "rollbook.health",
    "rollbook.keeper.main", "rollbook.ground.spool.encode",
)  # fmt: skip


def import_needed(plan: Plan | None, keeper: str) -> None:
    """Import what a run of this plan needs in this process. Modules that are loaded already cost nothing.

    Args:
      plan: its sinks and rules; None for a process that only attaches.
      keeper: as `init` takes it.
    """
    sinks: list[object] = [] if plan is None else list(plan.local)
    is_here = plan is not None and keeper != "process"
    if plan is not None and is_here:
        sinks += plan.for_keeper
    for name in (*_BY_ALL, *(_BY_SINKS if sinks or is_here else ()), *(_BY_KEEPERS if is_here else ())):
        import_module(name)
    if plan is not None and is_here:
        from rollbook import health

        for rule in plan.rules:
            options: dict[str, Any] = dict(rule)
            health.make(options.pop("name"), **options)
    for spec in sinks:
        if isinstance(spec, dict):
            _import_sink(spec)


def _import_sink(spec: dict[str, object]) -> None:
    from rollbook.keeper.sinks import import_for

    with tolerating(Exception):  # a broken package: creating the sink reports it, and the other sinks work
        import_for(spec)
