"""Footers of Parquet files that contradict themselves.

Where the sizes that a footer has of a column chunk do not fit each other, pyarrow ends the process that asks for that
chunk instead of raising (up to 25: the error passes a call that declares none). One damaged bit can do that. What reads
files that may be damaged therefore lets a child look first.
"""

from __future__ import annotations

import faulthandler
import hashlib
import os
import signal
import time
import warnings
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.system.guard import tolerating

_SECONDS = 20.0
"""How long a child may take; thousands of column chunks take it milliseconds."""

_survived: dict[bytes, None] = {}
"""Digests of the footers that this process need not let a child look at again, the latest last."""

_MOST_KNOWN = 10_000


def may_be_asked(footers: Sequence[pq.FileMetaData]) -> list[bool]:
    """For each footer, whether a process that asks for its column chunks survives and ends.

    True where that cannot be known: where processes cannot fork, or how their children end is kept from them.
    """
    digests = [_digest(footer) for footer in footers]
    unknown = {digest: footer for digest, footer in zip(digests, footers, strict=True) if digest not in _survived}
    answers = dict.fromkeys(digests, True)
    if unknown and hasattr(os, "fork"):
        together = _is_survived([*unknown.values()])
        survived = dict.fromkeys(unknown, together)
        if together is False:
            survived = {digest: _is_survived([footer]) for digest, footer in unknown.items()}
        answers.update((digest, is_survived is not False) for digest, is_survived in survived.items())
        _survived.update((digest, None) for digest, is_survived in survived.items() if is_survived)
        while len(_survived) > _MOST_KNOWN:
            del _survived[next(iter(_survived))]
    return [answers[digest] for digest in digests]


def _digest(footer: pq.FileMetaData) -> bytes:
    """Of its bytes, for which no column chunk is asked."""
    written = pa.BufferOutputStream()
    with tolerating(Exception) as failed:  # whatever pyarrow makes of damaged bytes
        footer.write_metadata_file(written)
    return os.urandom(16) if failed else hashlib.blake2b(written.getvalue(), digest_size=16).digest()


def _is_survived(footers: Sequence[pq.FileMetaData]) -> bool | None:
    """Whether a child survives asking for their column chunks; None if that cannot be known."""
    with warnings.catch_warnings():
        # The warning is about forks in a process with threads: this one takes none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        with tolerating(OSError) as refused:  # no memory, or too many processes
            child = os.fork()
    if refused:
        return None
    if not child:
        try:
            faulthandler.disable()  # its last words are not the program's
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with tolerating(Exception):
                for footer in footers:
                    _ask(footer)
        finally:
            os._exit(0)
    until = time.monotonic() + _SECONDS
    while True:
        with tolerating(ChildProcessError) as missed:
            ended, status = os.waitpid(child, os.WNOHANG)
        if missed:  # the program waits for all its children, or has the system do so
            return None
        if ended:
            return status == 0
        if time.monotonic() > until:  # what a thread held when it was forked is held for ever there
            os.kill(child, signal.SIGKILL)
            until = float("inf")
        time.sleep(0.001)


def _ask(footer: pq.FileMetaData) -> None:
    for group in range(footer.num_row_groups):
        about = footer.row_group(group)
        for number in range(about.num_columns):
            column = about.column(number)
            if column.path_in_schema and column.is_stats_set and column.statistics.has_min_max:
                _ = column.statistics.min_raw, column.statistics.max_raw
