"""Where a run is cut when it goes back: the last row that counts of every writer of an attempt.

A cut names positions (writer, lane, sequence number). Times order the rows of one process, and of processes that share
a boot of one machine, whose monotonic clock they share; they are never compared across machines. A writer of another
machine is cut where its own readings of a shared clock pass those of the cut. If it has none, all its rows count.

`Book` and `OwnPast` read the rows, each in its own form; this is the one implementation of where the cut is.
"""

from __future__ import annotations

from rollbook.errors import UnknownKey
from rollbook.schema.checkpoint_rows import CheckpointSave
from rollbook.schema.manifest import Cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

    class LaneRows(Protocol):
        """Some rows of one lane, by sequence number; a lane may come in several parts.

        Rows that were logged at a checkpoint are not among them. A row that says that a checkpoint was deleted has the
        clocks of that checkpoint, not those of its moment, so it has no readings here.
        """

        attempt: int
        writer: str
        lane: int

        def last_seq(self) -> int:
            """The number of the last row."""

        def extremes(self, clock: str) -> tuple[int, int] | None:
            """The lowest and the highest reading of a clock; None if no row has one."""

        def first_beyond(self, readings: Mapping[str, int], after: int = 0) -> tuple[int, int] | None:
            """(number, unix ns) of the first row behind number `after` with a greater reading of one of the clocks."""

        def first_since(self, moment: int) -> int | None:
            """The number of the first row made at `moment` (unix ns by its writer's clock) or later."""

        def last_known(self, clock: str, up_to: int) -> tuple[int, int, dict[str, int]] | None:
            """(unix ns, number, readings) of the last row with a reading of the clock and a number up to `up_to`."""

    class RunRows(Protocol):
        """The rows of a run's effective history, all tables."""

        @property
        def chain(self) -> Mapping[int, Cut | None]:
            """Attempt -> the cut in it; None for the newest."""

        @property
        def mains(self) -> frozenset[str]:
            """The writers that opened the run, of all attempts."""

        @property
        def hosts(self) -> Mapping[str, tuple[str, int]]:
            """Writer -> (the boot of its machine, what its monotonic clock lacks to unix ns)."""

        @property
        def ends(self) -> Mapping[str, Mapping[int, int]]:
            """Writer -> lane -> the last number in the journal; sealed rows may be missing."""

        def lanes(self, clocks: Sequence[str], attempt: int | None = None, but: str = "") -> Iterable[LaneRows]:
            """The rows with their readings of these clocks; of one attempt or all. `but`: a writer whose rows need not
            be read.
            """


_COMMON = ("gradient_step", "policy_version", "epoch", "env_step")
"""Clocks that all processes of a training share, the most certain first; `episode`, `step` are often counted apart."""

_ALL = 2**62


def cut_behind(rows: RunRows, checkpoint: Mapping[str, Any]) -> tuple[int, Cut]:
    """The cut behind a checkpoint, a row of a `CheckpointHistory`: (its attempt, the cut)."""
    saved = CheckpointSave(checkpoint)
    saver, own, moment = saved.writer, saved.lanes, saved.moment
    bounds = _Bounds(rows, saved.attempt, known=saver if own and not saved.through else "")
    if saved.through:
        moved: dict[tuple[str, int], tuple[int, int]] = {}
        for lane in rows.lanes(tuple(saved.through), saved.attempt):
            if lane.writer == saver:
                _keep_first(moved, lane, lane.first_beyond(saved.through, own.get(lane.lane, 0)))
        for (_, lane_number), (seq, time_ns) in moved.items():
            bounds.at(saver, lane_number, seq)
            bounds.since(saver, time_ns)
        if moved:
            moment = min(time_ns for _, time_ns in moved.values())
            bounds.since_elsewhere(saver, moment)
    else:
        bounds.since_elsewhere(saver, moment)
        if not own:  # its positions were damaged
            bounds.since(saver, saved.written + 1)
    bounds.by_common_clock(saver, {name: saved.clocks[name] for name in _COMMON if name in saved.clocks})
    cut = bounds.cut()
    if own and not saved.through:
        cut[saver] = own
    elif saver in cut:
        least = {**saved.row, **own}
        cut[saver] = {lane: max(cut[saver].get(lane, 0), least.get(lane, 0)) for lane in {*cut[saver], *least}}
    return saved.attempt, bounds.named(cut, moment)


def reached(rows: RunRows, clocks: Sequence[str]) -> dict[str, int]:
    """The highest reading of each clock in the effective history, in all tables."""
    highest: dict[str, int] = {}
    for lane in rows.lanes(clocks):
        for clock in clocks:
            ends = lane.extremes(clock)
            if ends is not None:
                highest[clock] = max(ends[1], highest.get(clock, ends[1]))
    return highest


def cut_at(rows: RunRows, clock: str, value: int, clocks: Sequence[str]) -> tuple[int, Cut, dict[str, int]]:
    """The cut where a clock passed a reading: (attempt, cut, the readings of the last row before it).

    Args:
      clocks: all clocks of the run.
    Raises:
      UnknownKey: no row before that has a reading of the clock.
    """
    # attempt -> (writer, lane) -> (seq, time) of its first row beyond the reading; attempt -> writers with the clock
    beyond: dict[int, dict[tuple[str, int], tuple[int, int]]] = {}
    knowing: dict[int, set[str]] = {}
    lowest: int | None = None
    for lane in rows.lanes((clock,)):
        ends = lane.extremes(clock)
        if ends is None:
            continue
        lowest = ends[0] if lowest is None else min(lowest, ends[0])
        knowing.setdefault(lane.attempt, set()).add(lane.writer)
        _keep_first(beyond.setdefault(lane.attempt, {}), lane, lane.first_beyond({clock: value}))
    # The main writers decide where the clock passed the reading, or all that know it if the main ones do not.
    if any(writers & rows.mains for writers in knowing.values()):
        owners = rows.mains
    else:
        owners = frozenset().union(*knowing.values()) if knowing else frozenset()
    passed = [n for n, found in beyond.items() if any(writer in owners for writer, _ in found)]
    attempt = min(passed) if passed else max((n for n, w in knowing.items() if w & owners), default=0)
    # Writers with the clock are cut at their own rows, the others of the machine at the moment of the first of these.
    bounds = _Bounds(rows, attempt)
    for (writer, lane_number), (seq, time_ns) in beyond.get(attempt, {}).items():
        bounds.at(writer, lane_number, seq)
        bounds.since(writer, time_ns)
    first = min(((t, w) for (w, _), (_, t) in beyond.get(attempt, {}).items() if w in owners), default=None)
    if first is not None:
        bounds.since_elsewhere(first[1], first[0], but=knowing[attempt])
    cut = bounds.cut()
    # The row to go back to may be of an earlier attempt, if this one has no row before the cut.
    for number in sorted((n for n in knowing if n <= attempt), reverse=True):
        newest = _newest_known(rows, clock, clocks, number, owners, cut if number == attempt else None)
        if newest is not None:
            return attempt, bounds.named(cut, newest[0]), newest[2]
    seen = "no row has a reading of it" if lowest is None else f"its readings begin at {lowest}"
    raise UnknownKey(f"rewind({clock}={value}): there is nothing to go back to: {seen}")


def _newest_known(
    rows: RunRows,
    clock: str,
    clocks: Sequence[str],
    attempt: int,
    owners: frozenset[str],
    cut: Mapping[str, Mapping[int, int]] | None,
) -> tuple[int, int, dict[str, int]] | None:
    """The newest row of an attempt that has a reading of the clock, as `last_known` gives it; before a cut if given."""
    newest: tuple[int, int, dict[str, int]] | None = None
    for lane in rows.lanes(clocks, attempt):
        if lane.writer not in owners:
            continue
        own = None if cut is None else cut.get(lane.writer)
        found = lane.last_known(clock, _ALL if own is None else own.get(lane.lane, 0))
        if found is not None and (newest is None or found[:2] > newest[:2]):
            newest = found
    return newest


class _Bounds:
    """Collects from where on the rows of each lane of an attempt do not count. `known`: a writer whose cut is known."""

    def __init__(self, rows: RunRows, attempt: int, known: str = "") -> None:
        self._rows, self._attempt, self._known = rows, attempt, known
        self._first: dict[tuple[str, int], int] = {}
        self._moments: dict[str, int] = {}
        before = rows.chain.get(attempt)
        self._is_newest, self._before = before is None, before or Cut()
        self._elsewhere: tuple[str, int, frozenset[str]] | None = None

    def at(self, writer: str, lane: int, seq: int) -> None:
        """From a row on."""
        self._first[writer, lane] = min(seq, self._first.get((writer, lane), _ALL))

    def since(self, writer: str, moment: int) -> None:
        """From a moment on, by the writer's clock."""
        self._moments[writer] = min(moment, self._moments.get(writer, moment))

    def since_elsewhere(self, writer: str, moment: int, but: Iterable[str] = ()) -> None:
        """Likewise the other writers of its machine, except `but`."""
        self._elsewhere = writer, moment, frozenset(but)

    def by_common_clock(self, saver: str, readings: Mapping[str, int]) -> None:
        """Writers of other machines: from where they pass the readings of the first of the clocks that they have."""
        here = self._rows.hosts.get(saver)
        found: dict[str, dict[str, dict[tuple[str, int], tuple[int, int]]]] = {}
        for lane in self._rows.lanes(tuple(readings), self._attempt, saver) if readings else ():
            there = self._rows.hosts.get(lane.writer)
            if lane.writer == saver or (here and there and here[0] == there[0]):
                continue
            for clock, reading in readings.items():
                if lane.extremes(clock) is not None:
                    moves = found.setdefault(lane.writer, {}).setdefault(clock, {})
                    _keep_first(moves, lane, lane.first_beyond({clock: reading}))
        for writer, by_clock in found.items():
            moves = next(by_clock[clock] for clock in readings if clock in by_clock)
            for (_, lane_number), (seq, time_ns) in moves.items():
                self.at(writer, lane_number, seq)
                self.since(writer, time_ns)

    def cut(self) -> dict[str, dict[int, int]]:
        """writer -> lane -> the last number that counts. Writers without a bound keep the cut they had."""
        if self._elsewhere is not None:
            reference, moment, but = self._elsewhere
            here = self._rows.hosts.get(reference)
            for writer, there in self._rows.hosts.items():
                if here is not None and writer != reference and writer not in but and there[0] == here[0] != "":
                    self.since(writer, moment - here[1] + there[1])
        last: dict[str, dict[int, int]] = {}
        for lane in self._rows.lanes((), self._attempt, self._known):
            lanes = last.setdefault(lane.writer, {})
            lanes[lane.lane] = max(lanes.get(lane.lane, 0), lane.last_seq())
            moment_of = self._moments.get(lane.writer)
            seq = None if moment_of is None else lane.first_since(moment_of)
            if seq is not None:
                self.at(lane.writer, lane.lane, seq)
        named, named_all = self._before.writers, self._before.time is not None
        cut = {writer: dict(lanes) for writer, lanes in named.items()}
        for writer in last if self._is_newest or named_all else {writer for writer, _ in self._first}:
            lanes = named.get(writer) or last[writer]
            if writer not in named and not named_all:  # the journal has marks, too
                for number, seq in self._rows.ends.get(writer, {}).items():
                    lanes[number] = max(seq, lanes.get(number, 0))
            cut[writer] = {
                number: min(seq, self._first.get((writer, number), _ALL) - 1) for number, seq in lanes.items()
            }
        return cut

    def named(self, cut: Mapping[str, Mapping[int, int]], moment: int) -> Cut:
        """The cut for run.json. `moment`, unix ns, is for people."""
        made = Cut(moment=moment, writers={writer: dict(sorted(lanes.items())) for writer, lanes in cut.items()})
        if self._before.time is not None:  # of an older rollbook: it cut writers without a name by time
            made.time = self._before.time
        return made


def _keep_first(found: dict[tuple[str, int], tuple[int, int]], lane: LaneRows, first: tuple[int, int] | None) -> None:
    key = lane.writer, lane.lane
    if first is not None and (key not in found or first < found[key]):
        found[key] = first
