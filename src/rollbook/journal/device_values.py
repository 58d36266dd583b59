"""Values of committed rows that are still on a device: fetched later, in one batch."""

from __future__ import annotations

from rollbook.journal.lane import Receipt
from rollbook.journal.recovery import InterruptSafeLock
from rollbook.schema.clocks import now
from rollbook.system.guard import tolerating
from rollbook.values import devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.journal.lane import Lane
    from rollbook.journal.open_writer import OpenWriter

_MOST_BYTES = 64 * 1024 * 1024
_LONGEST_NS = 2_000_000_000


class _Array:
    """A device array that becomes a histogram after the fetch. `receipt` tells whether it was written."""

    __slots__ = ("key", "payload", "receipt", "time_ns", "value")

    def __init__(self, key: str, value: object, payload: dict[str, object]) -> None:
        self.key, self.value, self.payload = key, value, payload
        self.time_ns, self.receipt = now(), Receipt()


class DeviceValues:
    """The pending device values of a writer's rows.

    Any thread may add; one at a time fetches. If a fetch is interrupted, the next one repeats it. Numbers of rows may
    then be written twice, with the same value; histograms are not.

    Attributes:
      numbers: (lane, seq, key, value) of committed rows.
    """

    __slots__ = ("_arrays", "_bytes", "_lock", "_since", "_writer", "numbers")

    def __init__(self, writer: OpenWriter) -> None:
        self._writer = writer
        self.numbers: list[tuple[int, int, str, object]] = []
        self._arrays: list[_Array] = []
        self._since = self._bytes = 0
        self._lock = InterruptSafeLock()

    def add(self, lane: Lane, seq: int, key: str, value: object) -> None:
        """Store the device value of a committed row."""
        self.numbers.append((lane.index, seq, key, value))
        self._added(value)

    def add_array(self, key: str, value: object, payload: dict[str, object]) -> None:
        """Store a device array that becomes a histogram after the fetch."""
        self._arrays.append(_Array(key, value, payload))
        self._added(value)

    def _added(self, value: object) -> None:
        time_ns = now()
        self._since = self._since or time_ns
        self._bytes += _nbytes(value)
        if self._bytes > _MOST_BYTES or time_ns - self._since > _LONGEST_NS:
            self.flush()

    def flush(self, wait_seconds: float = 0.0) -> None:
        """Fetch all pending values in one batch, and write them.

        Args:
          wait_seconds: how long to wait for another thread that is fetching; 0 leaves it to that thread.
        """
        if not self.numbers and not self._arrays:
            return
        token = self._lock.acquire(wait_seconds)
        if token is not None:
            try:
                self._flush_numbers()
                self._flush_arrays()
            finally:
                self._lock.release(token)

    def _flush_numbers(self) -> None:
        waiting = list(self.numbers)
        self._since = self._bytes = 0
        by_lane: dict[int, dict[int, dict[str, object]]] = {}
        lost = []
        for (lane, seq, key, _value), number in zip(waiting, devices.fetch([item[3] for item in waiting]), strict=True):
            if number is None:
                lost.append(key)
            else:
                by_lane.setdefault(lane, {}).setdefault(seq, {})[key] = number
        for lane, rows in by_lane.items():
            keys = list(dict.fromkeys(key for row in rows.values() for key in row))
            columns = {key: [row.get(key) for row in rows.values()] for key in keys}
            self._writer.frame({"fill": list(rows), "lane": lane, "columns": columns})
        del self.numbers[: len(waiting)]  # others may have added more after them
        for key in lost:
            self._lost(key)

    def _flush_arrays(self) -> None:
        from rollbook.values.describe import histogram_columns

        waiting = list(self._arrays)
        for array, content in zip(waiting, devices.fetch([array.value for array in waiting]), strict=True):
            if content is not None:
                with tolerating(Exception) as missed:
                    columns = {"key": [array.key], **histogram_columns(content)}
                if missed:
                    content = None  # fetched, but not numeric
            if content is not None:
                payload = {**array.payload, "n": 1, "columns": columns}
                if not self._writer.frame_once(array.receipt, payload, array.time_ns):
                    continue
            self._arrays.remove(array)
            if content is None:
                self._lost(array.key)

    def _lost(self, key: str) -> None:
        self._writer.bill.count("lost_pending", message=f"the device value of {key!r} could not be fetched", name=key)


def _nbytes(value: object) -> int:
    """The device memory of the copy, if known."""
    with tolerating(Exception):
        size = getattr(value, "nbytes", None)
        return int(size) if size is not None else 8
    return 8
