"""`Writer`: one process that logs to a run, with its lanes, streams and files.

`log_function` has the function that a training loop calls, `unusual_calls` its slow path, `device_values` the values
that rows still wait for.
"""

from __future__ import annotations

import itertools
import json
import os
import time

from rollbook.errors import LoggingFailed
from rollbook.journal import format as layout
from rollbook.journal import mapping
from rollbook.journal.channel import Channel
from rollbook.journal.device_values import DeviceValues
from rollbook.journal.frames import encode
from rollbook.journal.lane import NO_DESCRIPTOR, Lane
from rollbook.journal.log_function import make_log
from rollbook.journal.recovery import unused
from rollbook.journal.stream import Stream
from rollbook.journal.unusual_calls import UnusualCalls
from rollbook.schema.clocks import STANDARD, UNKNOWN, now
from rollbook.schema.run_files import RunFile, journal_folder
from rollbook.system import liveness
from rollbook.system.bill import Bill
from rollbook.system.files import exists, make_folders
from rollbook.system.guard import handled_by, is_foreign, ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.journal.channel import Shape
    from rollbook.journal.lane import Receipt


class Writer:
    """One process that logs to a run. It owns its journal files; no other process changes them while it lives.

    Threads: any number may log; each call uses a separate lane. Fork: the child gets its own files at its first log.
    Nothing here raises into a training loop (unless `bill.strict`).

    Args:
      run_folder: the run's folder; it exists.
      attempt: the attempt of this writer.
      clocks: all clocks of the run, the standard ones first.
      main: whether this process opened the run.
      nonce: the run's nonce.
      whereabouts: where in a cluster this process runs; stored in writer.json.
      not_before: unix ns; rows never get an earlier time (for a wall clock that went back between attempts).
    Attributes:
      in_child: called in a forked child when a row takes the slow path: its first one, new keys, a full segment.
    """

    first_segment_bytes = layout.FIRST_SEGMENT_BYTES
    largest_segment_bytes = layout.LARGEST_SEGMENT_BYTES
    frame_file_bytes = layout.FRAME_FILE_BYTES
    rows_before_stream = 8
    most_streams = 64
    most_mapped_bytes = 8 * 1024 * 1024
    most_lanes = 32
    most_rare_shapes = 10_000
    lane_wait_seconds = 0.05

    def __init__(
        self,
        run_folder: str,
        *,
        attempt: int = 1,
        clocks: tuple[str, ...] = STANDARD,
        main: bool = False,
        nonce: str = "",
        bill: Bill | None = None,
        rank: int | None = None,
        mapped: bool | None = None,
        not_before: int = 0,
        whereabouts: Mapping[str, object] | None = None,
    ) -> None:
        self.run_folder, self.attempt, self.clocks = run_folder, attempt, clocks
        self.native_keys = False  # a framework names the keys: a clock's name as key is not the user's mistake
        self.main, self.nonce, self.rank = main, nonce, rank
        self.bill = bill if bill is not None else Bill()
        self._mapped_wanted, self._not_before, self._whereabouts = mapped, not_before, dict(whereabouts or {})
        self._channels = 0
        self.free: list[Lane] = []
        self.in_child: Callable[[], object] | None = None
        self._is_child = False
        self._begin_attempt()
        _live_writers.append(self)

    pid: int
    id: str
    folder: str
    time_offset: int
    lanes: list[Lane]
    closed: bool
    _closed_whole: bool
    opened: bool
    mapped: bool
    _rare: dict[Shape, int]
    _lane_numbers: Iterator[int]
    _stream_numbers: Iterator[int]
    device_values: DeviceValues
    slow_path_rows: int
    slow_path_ns: int
    fenced: bool
    _about: dict[str, object]

    def _begin_attempt(self) -> None:
        vars(self).update(self._next_attempt(self._not_before))

    def _next_attempt(self, not_before: int) -> dict[str, object]:
        """The state of a new attempt. One call replaces the old one: an outside exception finds the old or the new."""
        pid = os.getpid()
        own_id = f"{int(time.time()):08x}-{pid}-{os.urandom(3).hex()}"
        folder = os.path.join(journal_folder(self.run_folder), own_id)
        offset = time.time_ns() - now()
        offset += max(0, not_before - (now() + offset))
        return {
            "pid": pid,
            "id": own_id,
            "folder": folder,
            "time_offset": offset,
            "lanes": [],
            "closed": False,
            "_closed_whole": False,
            "opened": False,
            "mapped": False,
            "_rare": {},
            "_lane_numbers": itertools.count(),
            "_stream_numbers": itertools.count(),
            "device_values": DeviceValues(self),
            "slow_path_rows": 0,
            "slow_path_ns": 0,
            "fenced": False,
            "_about": {},
        }

    # -- an attempt

    def open(self) -> None:
        """Create the writer's folder and writer.json. The first row calls it; call it earlier to be visible earlier.

        Raises:
          OSError: the folder cannot be created.
        """
        if self.opened:
            return
        before = time.time_ns()
        make_folders(self.folder, inside=self.run_folder)
        # The file server set the folder's time by its own clock, so hosts that share the files can compare clocks.
        offset = (before + time.time_ns()) // 2 - os.stat(self.folder).st_mtime_ns
        self.mapped = mapping.is_mappable(self.folder) if self._mapped_wanted is None else self._mapped_wanted
        about: dict[str, object] = {
            "format": layout.VERSION,
            "writer": self.id,
            "attempt": self.attempt,
            "main": self.main,
            "nonce": self.nonce,
            "rank": self.rank,
            "time_offset": self.time_offset,
            "clock_offset": offset,
            "clocks": list(self.clocks),
            **liveness.identity(),
        }
        if self._whereabouts:
            about["whereabouts"] = self._whereabouts
        self._replace(RunFile.WRITER, about)
        self._about = about
        self.opened = True

    def describe(self, **facts: object) -> None:
        """Add facts to writer.json: a run whose run.json is lost gets them back from there.

        Raises:
          OSError: the file cannot be written; the old one is still there.
        """
        if self.opened and not self.closed and any(self._about.get(name) != fact for name, fact in facts.items()):
            self._replace(RunFile.WRITER, {**self._about, **facts})
            self._about = {**self._about, **facts}

    def close(self) -> None:
        """Fetch pending values, leave all segments, and write closed.json. Later rows are counted and refused.

        Can be repeated: it does nothing, or completes a close that an exception interrupted.
        """
        if self._closed_whole:
            return
        if not self.closed:
            self.device_values.flush(wait_seconds=1.0)
        self.closed = True
        self.free.clear()
        if self.opened:
            for lane in self.lanes:
                self._unless_it_fails(lane.close)
            end = {
                "lanes": {str(lane.index): lane.seq for lane in self.lanes},
                "time": now() + self.time_offset,
                "drops": self.bill.counts,
            }
            self._unless_it_fails(lambda: self._replace(RunFile.CLOSED, end))
        if self in _live_writers:
            _live_writers.remove(self)
        self._closed_whole = True

    def _unless_it_fails(self, work: Callable[[], None]) -> None:
        with handled_by(self.failed, "close", kinds=OSError):
            work()

    def _replace(self, name: str, content: dict[str, object]) -> None:
        # Two threads may open at once. A lock could be held by the very thread that a signal handler interrupts.
        temporary = os.path.join(self.folder, f"{name}.{os.urandom(4).hex()}.tmp")
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(temporary, os.path.join(self.folder, name))
        except BaseException:
            if exists(temporary):
                os.unlink(temporary)
            raise

    def positions(self) -> dict[str, dict[str, int]]:
        """The last sequence number of each lane, in the form of a cut: {writer: {lane: seq}}."""
        return {self.id: {str(lane.index): lane.seq for lane in self.lanes}}

    def begin_attempt(self, attempt: int) -> None:
        """Close this attempt and begin another in the same process. Log functions stay valid."""
        # never behind the rows of this attempt, whose times may be ahead of a host's clock that went back
        fields = {**self._next_attempt(now() + self.time_offset), "attempt": attempt, "_not_before": 0}
        try:
            try:
                self.close()
            finally:  # after an outside exception the writer can still log
                self._open_again(fields)
        finally:  # also after one that struck there
            self._open_again(fields)

    def _open_again(self, fields: dict[str, object]) -> None:
        if self.closed:
            vars(self).update(fields)
        if not self.closed and self not in _live_writers:
            _live_writers.append(self)

    def after_fork(self) -> None:
        """In a forked child: release the parent's files. The child gets its own at its first log."""
        self.free.clear()
        for lane in self.lanes:
            lane.forget()
        self.main, self._is_child = False, True
        was_closed = self.closed
        self._begin_attempt()
        self.closed = was_closed

    def tick(self) -> None:
        """Called by the run's own thread each second: fetch device values, create segments in advance, check fences."""
        self.device_values.flush()
        for lane in list(self.lanes):
            for stream in list(lane.shapes.values()):
                stream.prepare()
                if not self.fenced and stream.fence():
                    self.fenced = True
                    self.bill.count(
                        "fenced",
                        message="another process took this run over with resume='takeover'; what this process logs is "
                        "kept, but does not count as the run's history",
                    )

    # -- writing

    def channel(
        self, table: str = "metrics", prefix: str = "", scope: str = "", at: str = "", current: list[int] | None = None
    ) -> Channel:
        """A new channel. `current` shares the clocks of another channel."""
        self._channels += 1
        return Channel(
            self._channels, table, prefix, scope, at, [UNKNOWN] * len(self.clocks) if current is None else current
        )

    def make_log(self, channel: Channel) -> Callable[..., None]:
        """The function that logs to `channel`; see `log_function.make_log`."""
        return make_log(self.free, channel, self.unusual(channel))

    def unusual(self, channel: Channel) -> UnusualCalls:
        """The slow path of `channel`."""
        return UnusualCalls(self, channel)

    def frame(self, payload: Mapping[str, object], time_ns: int | None = None, receipt: Receipt | None = None) -> int:
        """Append one frame. Returns its sequence number, 0 if it was refused (counted)."""
        start = time.perf_counter_ns()
        self.slow_path_rows += 1
        try:
            data, problems = encode(payload)
            if problems:
                self.changed_to_fit(problems)
            if len(data) >= layout.LARGEST_FRAME:
                self.bill.count(
                    "too_large", message=f"one record of {len(data)} bytes was asked for; at most 2 GiB fit. Split it."
                )
                return 0
            lane = self.take()
            if lane is None:
                return 0
            try:
                return self.append(lane, data, now() if time_ns is None else time_ns, receipt)[1]
            finally:
                self.free.append(lane)
        except LoggingFailed:
            raise
        except ours(Exception) as err:
            self.failed("log", err)
            return 0
        finally:
            self.slow_path_ns += time.perf_counter_ns() - start

    def frame_once(self, receipt: Receipt, payload: Mapping[str, object], time_ns: int | None = None) -> bool:
        """Append a frame, unless an earlier, interrupted call with this receipt has done so.

        Returns:
          False if this is not known yet: another thread is using the lane of the earlier call.
        """
        lane = receipt.lane
        if lane is not None and not receipt.seq and lane in self.lanes and not self._settle(lane):
            return False
        if not receipt.seq:
            self.frame(payload, time_ns, receipt)
        return True

    # -- what the slow path needs

    def append(self, lane: Lane, data: bytes, time_ns: int, receipt: Receipt | None = None) -> tuple[Lane, int]:
        """Append an encoded frame to `lane`, or to another lane if `lane` has no frame file and no descriptor is free.

        Returns:
          The position of the frame: its lane and its sequence number there.
        Raises:
          OSError: it could not be written.
        """
        try:
            return lane, lane.append(data, time_ns, receipt)
        except OSError as err:
            if err.errno not in NO_DESCRIPTOR or is_foreign(err):
                raise
            free_lane = self._free_lane_with_frame_log()
            if free_lane is None:
                raise
            self.no_descriptor(err)
        try:
            return free_lane, free_lane.append(data, time_ns, receipt)
        finally:
            self.free.append(free_lane)

    def _free_lane_with_frame_log(self) -> Lane | None:
        for lane in list(self.free):
            if lane.has_frame_log and self._claim(lane):
                return lane
        return None

    def _claim(self, lane: Lane) -> bool:
        """Take this lane off the free list; False if it is in use."""
        with tolerating(ValueError):
            self.free.remove(lane)
            return True
        return False

    def _settle(self, lane: Lane) -> bool:
        """Check whether an interrupted frame of `lane` is in its file; False while another thread uses the lane."""
        deadline = time.monotonic() + self.lane_wait_seconds
        while not self._claim(lane):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0002)
        try:
            lane.settle()
        finally:
            self.free.append(lane)
        return True

    def no_descriptor(self, err: OSError) -> None:
        """Report that no file descriptor is free for another journal file."""
        self.bill.remark(
            "no_descriptor",
            f"no file descriptor is left for another file of the journal ({err}); rows go to those that are "
            "open and nothing is lost. Raise the limit (ulimit -n), or close files",
        )

    def changed_to_fit(self, problems: Iterable[str]) -> None:
        """Count the changes that `frames.encode` made."""
        for problem in problems:
            self.bill.count("changed_to_fit", message=f"something logged was changed to be storable: {problem}")

    def take(self) -> Lane | None:
        """A lane for the caller alone, to be appended to `free` afterwards; None if there is none (counted).

        Raises:
          OSError: the writer's folder cannot be created.
        """
        if self.closed:
            self.bill.count(
                "after_finish", message="something was logged after finish(); it was not kept. Log before, or attach()"
            )
            return None
        if self.pid != os.getpid():  # forked without a hook
            self.after_fork()
        if self._is_child and self.in_child is not None:
            self.in_child()
        deadline = 0.0
        while True:
            try:
                return self.free.pop()
            except ours(IndexError):
                pass
            self.open()
            lane = unused(self.lanes)
            if lane is not None:  # a caller was interrupted before it could return it
                return lane
            if len(self.lanes) < self.most_lanes:
                lane = Lane(self.folder, next(self._lane_numbers), self.frame_file_bytes)
                self.lanes.append(lane)
                return lane
            deadline = deadline or time.monotonic() + self.lane_wait_seconds
            if time.monotonic() > deadline:
                lane = unused(self.lanes, thorough=True)
                if lane is not None:
                    return lane
                self.bill.count(
                    "no_lane",
                    message=f"more than {self.most_lanes} threads logged at once and one waited "
                    f"{self.lane_wait_seconds} s in vain; its row was dropped. Log from fewer threads",
                )
                return None
            time.sleep(0.0002)

    def earns_stream(self, shape: Shape) -> bool:
        """Whether a key set has been seen often enough for a separate stream, and another stream is possible."""
        seen = self._rare.get(shape, 0) + 1
        if seen < self.rows_before_stream:
            if seen > 1 or len(self._rare) < self.most_rare_shapes:
                self._rare[shape] = seen
            return False
        if sum(len(lane.shapes) for lane in self.lanes) >= self.most_streams and not self._evict():
            return False
        self._rare.pop(shape, None)
        return True

    def new_stream(self, lane: Lane, channel: Channel, shape: Shape) -> Stream:
        """A stream for `shape` = (channel id, full keys, type codes, deferred keys) in `lane`."""
        _channel, keys, types, later = shape
        meta = {
            "writer": self.id,
            "attempt": self.attempt,
            "lane": lane.index,
            "stream": next(self._stream_numbers),
            "table": channel.table,
            "scope": channel.scope,
            "at": channel.at,
            "keys": list(keys),
            "types": types,
            "deferred": list(later),
            "clocks": list(self.clocks),
            "time_offset": self.time_offset,
        }
        stream = Stream(
            self.folder,
            meta,
            shape=shape,
            mapped=self.mapped,
            first_size=self.first_segment_bytes,
            largest_size=self.largest_segment_bytes,
        )
        lane.shapes[shape] = stream
        return stream

    def may_keep_mapped(self) -> bool:
        """Whether one more segment may stay mapped after it is left."""
        return sum(s.mapped_bytes for lane in self.lanes for s in list(lane.shapes.values())) < self.most_mapped_bytes

    def failed(self, where: str, err: BaseException) -> None:
        """Count a failure outside rollbook's control, and report it once per cause."""
        number = getattr(err, "errno", None)
        if number in (28, 27, 122):  # ENOSPC, EFBIG, EDQUOT
            self.bill.count(
                "disk_full",
                message=f"no space for the run in {self.run_folder}: {err}. What is logged meanwhile is lost and "
                "counted; logging resumes once there is space",
            )
        elif number == 2:
            self.bill.count(
                "folder_gone",
                message=f"the run's folder {self.run_folder} is gone or was moved: {err}. Rows are lost until it is "
                f"back",
            )
        elif number in (1, 13, 30):
            self.bill.count("not_writable", message=f"the run's folder {self.run_folder} cannot be written: {err}")
        else:
            self.bill.count(f"error_in_{where}", message=f"rollbook could not {where}: {type(err).__name__}: {err}")

    def seconds_spent(self) -> float:
        """Time of the callers spent in logging. Slow calls were timed; fast ones are counted, and the cost of one is
        measured now.
        """
        plain = max(0, self.rows_written() - self.slow_path_rows)
        return ((plain * self.row_cost_ns() if plain else 0.0) + self.slow_path_ns) / 1e9

    def row_cost_ns(self) -> float:
        """Nanoseconds of one call of `log` with the widest key set that has a stream; 0 without a stream."""
        streams = [s for lane in self.lanes for s in list(lane.shapes.values())]
        if not streams:
            return 0.0
        _channel, keys, types, _later = max(streams, key=lambda stream: stream.width).shape
        return _row_cost_ns(keys, types, self.clocks)

    def rows_written(self) -> int:
        """Number of rows and frames of this attempt."""
        return sum(lane.seq for lane in self.lanes)

    def _evict(self) -> bool:
        """Close the stream that has been idle longest, if it has been idle for a second."""
        quietest: tuple[int, Lane, Stream] | None = None
        for lane in list(self.free):  # unused lanes; another thread may take one meanwhile
            for stream in list(lane.shapes.values()):
                last = stream.last_time(len(self.clocks))
                if quietest is None or last < quietest[0]:
                    quietest = (last, lane, stream)
        if quietest is None or now() - quietest[0] < 1_000_000_000:
            return False
        lane = quietest[1]
        if not self._claim(lane):  # ours while we close its stream
            return False
        try:
            lane.drop(quietest[2])
        finally:
            self.free.append(lane)
        return True


def _row_cost_ns(keys: tuple[str, ...], types: str, clocks: tuple[str, ...]) -> float:
    """Nanoseconds of one call that logs a row of these keys: the median of 65 calls, minus the timer's own cost.

    The calls use the same function as the training loop; their rows are packed into spare memory.

    Args:
      types: d, q or b for each key, as in a segment's head.
    """
    n = 65
    stream = Stream(
        "", {"clocks": clocks, "types": types}, shape=(0, (), "", ()), mapped=False, first_size=0, largest_size=0
    )
    row: dict[str, object] = {key: {"d": 0.5, "q": 1, "b": True}[kind] for key, kind in zip(keys, types, strict=True)}
    stream.buffer = bytearray(stream.width * n)
    stream.last = stream.width * (n - 1)
    stream.types = [*map(type, row.values())]
    lane = Lane("", 0, 0)
    channel = Channel(0, "metrics", "", "", "", [UNKNOWN] * len(clocks))
    lane.scopes[0] = {tuple(row): stream}
    slow_path: Any = _refuse
    log = make_log([lane], channel, slow_path)
    clock = time.perf_counter_ns
    bare, calls = [], []
    for i in range(n):
        start = clock()
        bare.append(clock() - start)
        start = clock()
        log(row, env_step=i)
        calls.append(clock() - start)
    return float(max(0, sorted(calls)[n // 2] - sorted(bare)[n // 2]))


def _refuse(*_call: object) -> None:
    raise AssertionError("a row of this stream took the slow path")


_live_writers: list[Writer] = []


def _after_fork_in_child() -> None:
    for writer in list(_live_writers):
        writer.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
