"""Which rows count: the tree of attempts and the cuts in it.

Every attempt but the first names its parent and a cut in it. The history of a run is the chain from its newest attempt
up to the first; a row of an attempt in the chain counts if it lies before the cut of that attempt's child in the
chain. Times are compared inside one attempt only, so clocks that step back or hosts that disagree cannot bring
abandoned rows back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollbook.errors import UnknownKey

__all__ = ["History", "Limit", "cut_at"]


@dataclass(frozen=True, slots=True)
class Limit:
    """How far the rows of one lane of one writer count.

    kind: "all", "none", "seq" (up to and including sequence number `value`) or "time" (up to and including unix ns
    `value`).
    """

    kind: str
    value: int = 0

    def holds(self, seq: int, time_ns: int) -> bool:
        """Whether a row counts."""
        if self.kind == "seq":
            return seq <= self.value
        if self.kind == "time":
            return time_ns <= self.value
        return self.kind == "all"


_ALL, _NONE = Limit("all"), Limit("none")


@dataclass(frozen=True)
class History:
    """The effective history of a run, from the attempts of its run.json.

    Args:
      attempts: entries with n, parent, cut, checkpoint. Entries that make no sense (a parent that is its own child)
        end the chain.
      which: "effective"; "all" for every row that was ever written; or numbers of attempts, whose rows then all count.
    Attributes:
      chain: attempt -> the cut that limits it, None for the newest; attempts that are not in it do not count.
      checkpoints: ids of the checkpoints the chain passes through: their own rows count, though written after the cut.
    """

    attempts: Sequence[Mapping[str, Any]]
    which: str | Iterable[int] = "effective"
    chain: dict[int, Mapping[str, Any] | None] = field(init=False)
    checkpoints: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        entries = {entry["n"]: entry for entry in self.attempts if isinstance(entry.get("n"), int)}
        if self.which != "effective":
            chosen = list(entries) if self.which == "all" else [int(n) for n in self.which]  # type: ignore[union-attr]
            unknown = [n for n in chosen if n not in entries]
            if unknown:
                raise UnknownKey(f"attempts={chosen}: the run has no attempt {unknown[0]}; it has {sorted(entries)}")
            object.__setattr__(self, "chain", dict.fromkeys(chosen))
            object.__setattr__(self, "checkpoints", frozenset())
            return
        chain: dict[int, Mapping[str, Any] | None] = {}
        checkpoints = set()
        at, cut = max(entries, default=1), None
        while at not in chain:
            chain[at] = cut
            entry = entries.get(at, {})
            parent, cut = entry.get("parent"), entry.get("cut")
            if entry.get("checkpoint"):
                checkpoints.add(str(entry["checkpoint"]))
            if not isinstance(parent, int) or not isinstance(cut, Mapping):
                break
            at = parent
        object.__setattr__(self, "chain", chain)
        object.__setattr__(self, "checkpoints", frozenset(checkpoints))

    @property
    def everything_counts(self) -> bool:
        """Whether no row of any attempt is left out, so that nobody need look."""
        known = {entry.get("n") for entry in self.attempts}
        return self.which == "all" or (known <= set(self.chain) and all(cut is None for cut in self.chain.values()))

    def limit(self, attempt: int, writer: str, lane: int) -> Limit:
        """How far the rows of one lane of one writer, written in one attempt, count."""
        if self.which == "all":
            return _ALL
        if attempt not in self.chain:
            return _NONE
        cut = self.chain[attempt]
        if cut is None:
            return _ALL
        lanes = (cut.get("writers") or {}).get(writer)
        if isinstance(lanes, Mapping):
            seq = lanes.get(str(lane))
            return Limit("seq", int(seq)) if isinstance(seq, int) else _NONE
        time_ns = cut.get("time")
        return Limit("time", int(time_ns)) if isinstance(time_ns, (int, float)) else _ALL


def cut_at(folder: str | os.PathLike[str], clock: str, value: int) -> tuple[int, dict[str, Any], dict[str, int]]:
    """The place in a run's effective history where a clock last stood at `value` or before.

    Returns:
      (attempt, cut, clocks): the attempt that wrote the last row that stays; the cut behind it, exact for the writer
      of that row and by time for others; and the clocks of that row.
    Raises:
      UnknownKey: no effective row has a reading of the clock up to `value`.
    """
    from rollbook.store.reader import Book

    rows = Book(folder).positions(clock)
    stay = [row for row in rows if row[clock] is not None and row[clock] <= value]
    if not stay:
        known = sorted(row[clock] for row in rows if row[clock] is not None)
        found = f"its readings begin at {known[0]}" if known else "no row has a reading of it"
        raise UnknownKey(f"rewind({clock}={value}): there is nothing to go back to: {found}")
    last = max(stay, key=lambda row: (row["time"], row["seq"]))
    lanes: dict[str, int] = {}
    for row in rows:
        if row["writer"] == last["writer"] and row["time"] <= last["time"]:
            lane = str(row["lane"])
            lanes[lane] = max(lanes.get(lane, 0), row["seq"])
    cut = {"time": last["time"], "writers": {last["writer"]: lanes}}
    return last["attempt"], cut, last["clocks"]
