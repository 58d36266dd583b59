"""The state of a run in this process: set at the start of the attempt, or created at first use."""

from __future__ import annotations

import os
import sys

from rollbook.journal import Receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread
    from typing import Any, Protocol
    from weakref import WeakSet

    from rollbook.capture import Checkpoints, Media, RolloutLog, SampleLog, Store
    from rollbook.keeper.keeper_watch import KeeperWatch
    from rollbook.keeper.main import Keeper
    from rollbook.run.alert_calls import AlertCalls
    from rollbook.run.console import Console
    from rollbook.run.foreign_rows import ForeignRows
    from rollbook.run.training import Training

    class _Rounds(Protocol):
        """The run's own thread: what is needed to end it, and how many rows are its own."""

        own_rows: int

        def stop(self) -> None: ...
        def tick(self, final: bool = ...) -> None: ...
        def settle(self) -> None: ...


class Parts:
    """The parts of one `Run`; `life` and `ticker` fill it.

    Attributes:
      alert_calls: sends alerts to their receivers.
      pid: the process that owns these threads, this keeper and these sinks; a forked child has none of them.
      keeper: "process", "thread", "inline", "import", or "" for a writer without a keeper.
      keeper_watch: restarts the keeper process after it has died or hung.
      keeper_thread: the Keeper that runs in a thread of this process.
      inline_sinks: the sinks that finish() feeds if there is no other keeper.
      closed: the writers of this host that have closed, once the end of the run is on disk; None before. finish() then
        waits until the keeper is done with them.
      ticker: the run's own thread.
      native_config: the configuration as given, until it changes or is written as Python.
      wants_config_files: whether the configuration is also written as Python.
      formatted_config: the text that formatted_total_config.py holds instead of it.
      must: whether the run was opened with resume="must".
      opener: the training for which an adapter opened the run; None if the caller did.
      trainings: what adapters record in the run in this process, oldest first.
      failure: what ended the run early, once known; see `rollbook.run.failure`.
      final: whether the last mark is written.
      console: keeps what this process prints.
      provenance: where the code comes from; {} until it is known.
      numbered: name of a table without its number -> the first names of tables that differ by it.
      begun_in: the id of the exception that was handled when the run was opened; that of None for none.
      followed_at: how many rows it had when another run of its kind was opened after it; None before that.
      opened_in: the thread that opened the run; None before it has.
      left_by: the exception of that thread, or of a pool's task: (the program's rows then, the status, the failure).
      above: the environment variables that named the parent's run before this run replaced them; {} if there were none.
      stores: (scope, checkpoint) -> values stored there since its last dump.
      counters: scope -> the recorders of episodes that count its environment steps.
    """

    __slots__ = (
        "above",
        "alert_calls",
        "begun_in",
        "checkpoints",
        "closed",
        "console",
        "counters",
        "failure",
        "final",
        "followed_at",
        "foreign_rows",
        "formatted_config",
        "inline_sinks",
        "keeper",
        "keeper_thread",
        "keeper_watch",
        "left_by",
        "media",
        "must",
        "native_config",
        "numbered",
        "opened_in",
        "opener",
        "pid",
        "provenance",
        "rollouts",
        "samples",
        "stores",
        "ticker",
        "trainings",
        "wants_config_files",
    )

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.begun_in = id(sys.exc_info()[1])
        self.followed_at: int | None = None
        self.opened_in: Thread | None = None
        self.left_by: tuple[int, str, dict[str, Any] | None] | None = None
        self.numbered: dict[str, set[str]] = {}
        self.above: dict[str, str] = {}
        self.alert_calls: AlertCalls | None = None
        self.closed: set[str] | None = None
        self.console: Console | None = None
        self.keeper = ""
        self.keeper_thread: Keeper | None = None
        self.keeper_watch: KeeperWatch | None = None
        self.inline_sinks: list[object] = []
        self.ticker: _Rounds | None = None
        self.native_config: object = None
        self.formatted_config: str | None = None
        self.wants_config_files = False
        self.must = False
        self.opener: Training | None = None
        self.trainings: list[Training] = []
        self.failure: dict[str, Any] | None = None
        self.final = Receipt()
        self.provenance: dict[str, object] | None = None
        self.stores: dict[tuple[str, str], Store] = {}
        self.media: Media | None = None
        self.rollouts: RolloutLog | None = None
        self.samples: SampleLog | None = None
        self.checkpoints: Checkpoints | None = None
        self.counters: dict[str, WeakSet[Any]] = {}
        self.foreign_rows: ForeignRows | None = None
