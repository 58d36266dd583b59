"""A recorded run into a sink: all of it once, or what another process writes now into a live view."""

from __future__ import annotations

import os
import time

from rollbook.journal import JournalReader
from rollbook.keeper.forward import run_info
from rollbook.keeper.rewinds import acceptable, deliver
from rollbook.keeper.sealed import LazySealed
from rollbook.protocols import Row, Truncatable
from rollbook.sinks import make
from rollbook.sinks.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from rollbook.book import Book
    from rollbook.protocols import Sink


def replay(
    run_folder: str | os.PathLike[str],
    sink: Sink | str,
    options: Mapping[str, object] | None = None,
    *,
    most_rows: int = 4096,
) -> int:
    """Forward a whole run into a sink, from its first row; file sinks overwrite their files. The sink is closed.

    Args:
      sink, options: a sink, or the name of one and its options.

    Returns:
      How many rows were delivered.
    Raises:
      Whatever the sink raises; NotARun if there is no run.
    """
    sink = make(sink, **(options or {})) if isinstance(sink, str) else sink
    folder = os.path.abspath(os.fspath(run_folder))
    sink.open(run_info(folder))
    try:
        if isinstance(sink, Truncatable):
            sink.truncate({})
        delivered, last = 0, ""
        with JournalReader(folder, sealed=LazySealed(folder)) as reader:
            for rows, _cursor in reader.batches({}, most_rows):
                sendable, _refused = acceptable(rows, sink.accepts)
                if sendable:
                    deliver(folder, sink, sendable)
                    delivered, last = delivered + sum(not row.mark for row in sendable), sendable[-1].mark
        if last != "final":
            sink.write([Row(time.time(), {}, {}, mark="final", keys=("finished",))])
    finally:
        sink.close()
    return delivered


def follow(book: Book, stream: TextIO, *, seconds: float = 1.0, once: bool = False) -> None:
    """Draw the state of a run that another process writes, until it ends; Ctrl-C leaves quietly.

    Args:
      stream: a terminal, or what gets lines of text.
      seconds: draw at most this often.
      once: draw the present state and return.
    """
    info = book.run_info()
    view = Terminal(every_seconds=seconds, total=info.total, stream=stream)
    view.open(info)
    try:
        view.write(book.rows_so_far())
        if book.status != "running":
            view.end(book.status)
            return
        if once:
            return
        for row in book.tail(from_start=False, poll_seconds=min(0.2, seconds), stop=lambda: book.status != "running"):
            view.write([row])
        view.end(book.status)
    except KeyboardInterrupt:
        return
    finally:
        view.close()
