"""TensorBoard: one event file with a whole run, log/serial/events.out.tfevents.<timestamp>.<hostname>."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

from rollbook.protocols import Row, RunInfo
from rollbook.sinks._files import FileSink
from rollbook.sinks._steps import step_of
from rollbook.sinks.event_files import Messages, as_float32, utf8, whole_records
from rollbook.values import Histogram, Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FOLDER = "log/serial"
WRITER = "rollbook"
LARGEST_IMAGE = 64 * 1024 * 1024
_WHY = "the TensorBoard sink"


class TensorBoard(FileSink):
    """Rows as TensorBoard events: scalars, histograms, text and images, under their logged keys.

    One file per run; later attempts append to it, and TensorBoard follows it. Scalars are 32-bit floats there (the
    format's choice); the book has all digits. Event files know no attempts: when a later attempt begins, a session mark
    at its first step makes TensorBoard hide the file's events at that step and beyond. So a rewound curve shows no
    zigzag; the abandoned events stay in the file. A mark has one step for all keys. It is placed beyond rows that only
    know another clock, so that none of those is hidden; the price is a zigzag before it.

    Images are read from the run's folder (PNG, JPEG, GIF) and copied into the file; a missing one is left out.

    Args:
      x: the clock to use as the step; by default the run's own choice. Rows that do not know it use the first clock
        they know, in the run's order, or else their row number.
    """

    needs = ("tensorboard", "tensorboard")
    thinned = (None, "key")
    accepts: frozenset[type] = frozenset({float, int, bool, str, Histogram, Image})

    def __init__(self, *, x: str = "") -> None:
        super().__init__()
        self._asked_x = x
        self._x = ""
        self._clocks: tuple[str, ...] = ()
        self._path = ""
        self._attempt = self._writes = 0
        self._last_step = -1
        self._messages: Any = None

    def open_for_steps(self, run: Any) -> None:
        """Open it for a program that has steps of its own instead of rows, of a `Run`; see `write_steps`.

        Args:
          run: an open `Run`.
        """
        self.open(RunInfo(run.folder, run.project, run.name, run.id, clocks=("step",), x="step", resumed=run.resumed))
        self._attempt = run.attempt - 1 if run.resumed else 0
        self._writes = run.attempt

    def write_steps(self, events: Iterable[tuple[int, Mapping[str, Any]]], now: float) -> None:
        """Append values at steps.

        Args:
          events: (step, {tag: value}), written in this order.
          now: unix seconds, for all of them.
        """
        self.write([Row(now, {"step": step}, values, attempt=self._writes) for step, values in events])

    def state(self) -> dict[str, Any]:
        """The attempt that was written last, and the furthest step of a row without the axis's clock."""
        return {"attempt": self._attempt, "beside": self._last_step}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self._attempt = int(state.get("attempt", 0))
        self._last_step = int(state.get("beside", -1))

    def _opened(self, run: RunInfo) -> None:
        self._messages = Messages(_WHY)
        self._clocks = run.clocks
        self._x = self._asked_x or run.x
        self._attempt, self._last_step = 0, -1

    def _owned(self) -> Iterable[str]:
        folder = Path(self._folder, FOLDER)
        if not folder.is_dir():
            return []
        files = sorted(folder.glob("events.out.tfevents.*"))
        return [f"{FOLDER}/{path.name}" for path in files if _is_ours(path)]

    def _reread(self) -> None:
        self._path = min(self._lengths, default="")

    def _whole(self, path: str, size: int) -> int:
        return whole_records(path, size)

    def _remember(self) -> object:
        return self._path, self._attempt, self._last_step

    def _recall(self, token: Any) -> None:
        self._path, self._attempt, self._last_step = token

    def _render(self, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
        messages = self._messages
        for row in rows:
            values = [value for key, given in row.values.items() if (value := self._value(key, given)) is not None]
            if not values:
                continue
            if not self._path:
                # Named after the first row, not the present time, so that a restart uses the same name.
                host = re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname().partition(".")[0]) or "host"
                self._path = f"{FOLDER}/events.out.tfevents.{int(row.time)}.{host}"
                head = (messages.version(row.time), messages.source(row.time, WRITER))
                yield self._path, b"".join(map(messages.framed, head))
            step, is_x = step_of(row, self._x, self._clocks)
            if row.attempt > self._attempt:
                if self._attempt and is_x:
                    yield self._path, messages.framed(messages.session(row.time, max(step, self._last_step + 1)))
                if is_x or not self._attempt:
                    self._attempt = row.attempt
            if not is_x:
                self._last_step = max(self._last_step, step)
            yield self._path, messages.framed(messages.event(row.time, step, values))

    def _value(self, key: str, value: object) -> Any:
        messages = self._messages
        if isinstance(value, (float, int)):
            return messages.scalar(utf8(key), as_float32(value))
        if isinstance(value, str):
            return messages.text(utf8(key), value)
        if isinstance(value, Histogram):
            return messages.histogram(utf8(key), value)
        if isinstance(value, Image):
            data = self._image(value)
            return None if data is None else messages.image(utf8(key), data, value.height, value.width)
        return None

    def _image(self, image: Image) -> bytes | None:
        folder = Path(self._folder).resolve()
        path = (folder / image.path).resolve()
        if not path.is_relative_to(folder):  # the path comes from the run's files: it must stay inside them
            return None
        try:
            return path.read_bytes() if path.stat().st_size <= LARGEST_IMAGE else None
        except OSError:
            return None


def _is_ours(path: Path) -> bool:
    """Whether an event file begins like ours; others in the folder belong to a framework and are left alone."""
    try:
        with path.open("rb") as file:
            start = file.read(256)
    except OSError:
        return False
    return not start or (b"brain.Event:2" in start and WRITER.encode() in start)
