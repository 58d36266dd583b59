"""Seals the journal of each writer in turn: its segments, then its frame files."""

from __future__ import annotations

from collections.abc import Collection

from rollbook.journal import WriterInfo, list_writers
from rollbook.storage.sealing.frames import FrameSealing
from rollbook.storage.sealing.one_pass import SealedRanges, SealPass, SealReport
from rollbook.storage.sealing.segments import SegmentSealing
from rollbook.system.files import names_in
from rollbook.system.liveness import is_alive, shares_pids


def seal_writers(
    run: str,
    report: SealReport,
    *,
    take_over: bool,
    only: Collection[str] | None = None,
    but: Collection[str] = (),
    up_to: str = "",
) -> SealedRanges:
    """Seal the segments of each writer first: frames with late values may go once the values are in their rows.

    Args:
      take_over: also writers whose state is unknown here.
      only, but: ids of the writers to seal, None for all; ids that other processes have sealed.
      up_to: see `SealPass`.
    """
    at_hand = SealPass(run, report, only, up_to)
    segments, frames = SegmentSealing(at_hand), FrameSealing(at_hand)
    for info in list_writers(run):
        if (only is None or info.id in only) and info.id not in but:
            gone = may_seal(info, take_over)
            if gone is not None:
                names = names_in(info.folder)
                segments.seal(info, names, gone)
                frames.seal(info, names, gone)
    return at_hand.sealed


def may_seal(info: WriterInfo, take_over: bool) -> bool | None:
    """Whether a writer is gone, so that all of its files can be sealed; None if it must not be sealed from here."""
    is_dead = is_alive(info.about) is False
    if not (take_over or is_dead or shares_pids(info.about)):
        return None
    return take_over or is_dead or info.closed is not None
