"""Which rows of the journal are reliable after a reboot.

Pages of a mapped file reach the disk in any order, so after a power loss a row may look committed although its values
never arrived. The keeper syncs each second and records the safe sequence number of each lane. If the machine was
rebooted since a writer wrote, rows beyond that mark are set aside and counted.

The kernel writes every page within half a minute. So a row more than a minute older than the writer's last one is
accepted even without a mark: without a keeper, or if it died early, an hour of rows is not lost.
"""

from __future__ import annotations

import os
from functools import cached_property

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import Segment, WriterInfo
from rollbook.schema.run_files import RunFile, parse_name
from rollbook.system.files import read_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import boot_id, is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray

_WRITE_BACK_NS = 60 * 10**9


def settled(path: str) -> tuple[bytes, tuple[str, str, int, str, int, int]] | None:
    """The committed rows of a segment that is being written, as the content of a finished one; None if it has none.

    The second value says what they cover: (table, writer, lane, stream, lowest seq, last seq).
    """
    with Segment(path) as segment:
        found, header = segment.settled(), segment.header
    if found is None:
        return None
    data, look = found
    return data, (header.table, header.writer, header.lane, f"S{header.stream:03d}", look.lowest_seq, look.last_seq)


class DurableMarks:
    """The durable marks of one run, read when a row is first doubted.

    Args:
      run: the run's folder.
    Attributes:
      unconfirmed: messages about writers from before a reboot without a mark; their rows are kept.
    """

    def __init__(self, run: str) -> None:
        self.unconfirmed: list[str] = []
        self._run = run
        self._newest: dict[str, int] = {}

    def doubtful(self, info: WriterInfo, lane: int, seqs: NDArray, times_ns: NDArray) -> NDArray | None:
        """Which of these rows of a journal segment are unreliable: a boolean array, or None for none of them."""
        if not self.rebooted(info):
            return None
        boot, all_marks = self._noted
        marks = all_marks.get(info.id) if boot == info.boot_id else None
        if marks is None:
            if info.id not in self.unconfirmed:
                self.unconfirmed.append(info.id)
            return None
        mark = marks.get(str(lane), 0)
        doubtful = (seqs > (mark if type(mark) is int else 0)) & (times_ns > self._newest_time(info) - _WRITE_BACK_NS)
        return doubtful if doubtful.any() else None

    @cached_property
    def _noted(self) -> tuple[str, dict[str, dict[str, object]]]:
        """(the boot of the marks, the marks), read when a row is doubtful."""
        with tolerating(OSError, ValueError, KeyError, TypeError, AttributeError):
            noted = read_json(os.path.join(self._run, RunFile.KEEPER, RunFile.DURABLE))
            return str(noted["boot_id"]), {str(w): dict(lanes) for w, lanes in noted["marks"].items()}
        return "", {}

    @staticmethod
    def rebooted(info: WriterInfo) -> bool:
        """Whether this writer's machine is this one, and was rebooted since it wrote."""
        return bool(info.boot_id) and info.boot_id != boot_id() and is_alive(info.about) is False

    def _newest_time(self, info: WriterInfo) -> int:
        """When the writer's last row was written, from its segments (unix ns)."""
        if info.id not in self._newest:
            newest = 0
            names = []
            with tolerating(OSError):
                names = os.listdir(info.folder)
            for name in names:
                parsed = parse_name(name)
                if parsed is None or parsed[0] != "seg":
                    continue
                path = os.path.join(info.folder, name)
                with tolerating(OSError, Damaged, NewerFormat), Segment(path) as segment:
                    look = segment.look()
                    data = segment.copy(look, max(0, look.upper - 1)) if look is not None else None
                    for _, time_ns, _, _ in segment.rows(data, look.first_seq) if data and look else ():
                        newest = max(newest, time_ns)
            self._newest[info.id] = newest
        return self._newest[info.id]
