"""What a run holds in this process beside its rows: what its life gave it, and what is made when it is first used."""

from __future__ import annotations

from rollbook.journal.lane import Receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from rollbook.capture.checkpoints.saving import Checkpoints
    from rollbook.capture.media.recorder import Media
    from rollbook.capture.samples.recorder import SampleLog
    from rollbook.capture.store_dump import Store
    from rollbook.keeper.main import Keeper
    from rollbook.run.foreign_rows import ForeignRows

    class Rounds(Protocol):
        """The run's own thread, as far as its end is concerned."""

        def stop(self) -> None: ...
        def tick(self, final: bool = ...) -> None: ...


__all__ = ["Parts"]


class Parts:
    """The parts of one `Run`; `life` and `ticker` fill it.

    Attributes:
      keeper: "process", "thread", "inline", or "" for a writer that brings none.
      keeper_may_go: its keeper looks after other runs, too, or is that of the process which opened the run; should it
        end, whoever sees it first starts another.
      keeper_thread: the Keeper that runs in a thread of this process.
      inline_sinks: the sinks that finish() feeds, where there is no other keeper.
      ticker: the run's own thread.
      native_config: the configuration as it was given, until it is written.
      formatted_config: what formatted_total_config.py holds instead of it.
      must: whether the run was opened with resume="must".
      final: tells whether the last mark was written already.
      provenance: where the code comes from, once it was looked up; {} while it is.
      stores: (scope, checkpoint) -> what was stored there since its last dump.
    """

    __slots__ = (
        "checkpoints",
        "final",
        "foreign_rows",
        "formatted_config",
        "inline_sinks",
        "keeper",
        "keeper_may_go",
        "keeper_thread",
        "media",
        "must",
        "native_config",
        "provenance",
        "samples",
        "stores",
        "ticker",
    )

    def __init__(self) -> None:
        self.keeper = ""
        self.keeper_may_go = False
        self.keeper_thread: Keeper | None = None
        self.inline_sinks: list[object] = []
        self.ticker: Rounds | None = None
        self.native_config: object = None
        self.formatted_config: str | None = None
        self.must = False
        self.final = Receipt()
        self.provenance: dict[str, object] | None = None
        self.stores: dict[tuple[str, str], Store] = {}
        self.media: Media | None = None
        self.samples: SampleLog | None = None
        self.checkpoints: Checkpoints | None = None
        self.foreign_rows: ForeignRows | None = None
