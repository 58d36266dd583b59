"""TensorBoard: one event file with all of a run, log/serial/events.out.tfevents.<timestamp>.<hostname>."""

from __future__ import annotations

import re
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollbook._optional import need
from rollbook.sinks._files import FileSink
from rollbook.sinks._steps import step_of
from rollbook.values import Histogram, Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rollbook.protocols import Row, RunInfo

__all__ = ["TensorBoard"]

FOLDER = "log/serial"
WRITER = "rollbook"
LARGEST_IMAGE = 64 * 1024 * 1024
_LARGEST_FLOAT = 3.4028234663852886e38
_WHY = "the TensorBoard sink"


class TensorBoard(FileSink):
    """Rows as TensorBoard events: scalars, histograms, text and images, under their keys as they were logged.

    One file per run, appended to by later attempts, which TensorBoard reads by itself. Scalars are 32-bit floats there
    (the format's choice); the book has all digits. Event files know no attempts: when a later attempt begins, a
    session mark at its first step makes TensorBoard hide what the file holds at that step and beyond, so a rewound
    curve has no zigzag there either; the abandoned events stay in the file. A mark has one step for all keys: it stands
    beyond the rows that know another clock alone, so that none of those is hidden, at the price of a zigzag before it.

    Images are read from the run's folder (PNG, JPEG, GIF) and copied into the file; one that has gone is left out.

    Args:
      x: the clock to use as the step; by default the run's own choice. Rows that do not know it use the first clock
        they know, in the run's order, or else their row number.
    """

    accepts: frozenset[type] = frozenset({float, int, bool, str, Histogram, Image})

    def __init__(self, *, x: str = "") -> None:
        super().__init__()
        self._asked_x = x
        self._x = ""
        self._clocks: tuple[str, ...] = ()
        self._path = ""
        self._attempt = 0
        self._beside = -1
        self._proto: Any = None

    def state(self) -> dict[str, Any]:
        """The attempt that was written last, and the furthest step of a row that does not know the axis."""
        return {"attempt": self._attempt, "beside": self._beside}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self._attempt = int(state.get("attempt", 0))
        self._beside = int(state.get("beside", -1))

    def _opened(self, run: RunInfo) -> None:
        self._proto = _Protos()
        self._clocks = run.clocks
        self._x = self._asked_x or run.x
        self._attempt, self._beside = 0, -1

    def _owned(self) -> Iterable[str]:
        folder = self._folder / FOLDER
        if not folder.is_dir():
            return []
        found = sorted(folder.glob("events.out.tfevents.*"))
        return [f"{FOLDER}/{path.name}" for path in found if _is_ours(path)]

    def _reread(self) -> None:
        self._path = min(self._lengths, default="")

    def _whole(self, path: Path, size: int) -> int:
        return whole_records(path, size)

    def _remember(self) -> Any:
        return self._path, self._attempt, self._beside

    def _recall(self, token: Any) -> None:
        self._path, self._attempt, self._beside = token

    def _render(self, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
        proto = self._proto
        for row in rows:
            values = [value for key, given in row.values.items() if (value := self._value(key, given)) is not None]
            if not values:
                continue
            if not self._path:
                # Named after the first row, not after the moment, so that a restart comes to the same name.
                host = re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname().partition(".")[0]) or "host"
                self._path = f"{FOLDER}/events.out.tfevents.{int(row.time)}.{host}"
                yield self._path, proto.first(row.time)
            step, is_x = step_of(row, self._x, self._clocks)
            if row.attempt > self._attempt:
                if self._attempt and is_x:
                    yield self._path, proto.session(row.time, max(step, self._beside + 1))
                if is_x or not self._attempt:
                    self._attempt = row.attempt
            if not is_x:
                self._beside = max(self._beside, step)
            yield self._path, proto.summary(row.time, step, values)

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, (float, int)):
            return self._proto.scalar(key, _as_float32(value))
        if isinstance(value, str):
            return self._proto.text(key, value)
        if isinstance(value, Histogram):
            return self._proto.histogram(key, value)
        if isinstance(value, Image):
            data = self._image(value)
            return None if data is None else self._proto.image(key, value, data)
        return None

    def _image(self, image: Image) -> bytes | None:
        folder = self._folder.resolve()
        path = (folder / image.path).resolve()
        if not path.is_relative_to(folder):  # the path comes from the run's files: it must not lead out of them
            return None
        try:
            return path.read_bytes() if path.stat().st_size <= LARGEST_IMAGE else None
        except OSError:
            return None


class _Protos:
    """Builds framed events with the messages of the `tensorboard` package."""

    def __init__(self) -> None:
        base = "tensorboard.compat.proto."
        self._event = need(base + "event_pb2", extra="tensorboard", why=_WHY)
        self._summary = need(base + "summary_pb2", extra="tensorboard", why=_WHY)
        self._tensor = need(base + "tensor_pb2", extra="tensorboard", why=_WHY)
        self._shape = need(base + "tensor_shape_pb2", extra="tensorboard", why=_WHY)
        self._string = need(base + "types_pb2", extra="tensorboard", why=_WHY).DT_STRING
        # Only the checksum is needed; the package's record writer would frame the same bytes, but to a file it owns.
        stub = need("tensorboard.compat.tensorflow_stub.pywrap_tensorflow", extra="tensorboard", why=_WHY)
        self._checksum = stub.masked_crc32c
        self._text = self._summary.SummaryMetadata(
            plugin_data=self._summary.SummaryMetadata.PluginData(plugin_name="text")
        )

    def first(self, time: float) -> bytes:
        source = self._event.SourceMetadata(writer=WRITER)
        return self._frame(self._event.Event(wall_time=time, file_version="brain.Event:2")) + self._frame(
            self._event.Event(wall_time=time, source_metadata=source)
        )

    def session(self, time: float, step: int) -> bytes:
        start = self._event.SessionLog(status=self._event.SessionLog.START)
        return self._frame(self._event.Event(wall_time=time, step=step, session_log=start))

    def summary(self, time: float, step: int, values: Sequence[Any]) -> bytes:
        return self._frame(self._event.Event(wall_time=time, step=step, summary=self._summary.Summary(value=values)))

    def scalar(self, tag: str, number: float) -> Any:
        return self._summary.Summary.Value(tag=_utf8(tag), simple_value=number)

    def text(self, tag: str, text: str) -> Any:
        tensor = self._tensor.TensorProto(
            dtype=self._string,
            string_val=[_utf8(text).encode()],
            tensor_shape=self._shape.TensorShapeProto(dim=[self._shape.TensorShapeProto.Dim(size=1)]),
        )
        return self._summary.Summary.Value(tag=_utf8(tag), metadata=self._text, tensor=tensor)

    def histogram(self, tag: str, value: Histogram) -> Any:
        histo = self._summary.HistogramProto(
            min=value.low,
            max=value.high,
            num=value.count,
            sum=value.total,
            sum_squares=value.total_squares,
            bucket_limit=value.edges[1:],
            bucket=value.counts,
        )
        return self._summary.Summary.Value(tag=_utf8(tag), histo=histo)

    def image(self, tag: str, image: Image, data: bytes) -> Any:
        picture = self._summary.Summary.Image(
            height=image.height, width=image.width, colorspace=3, encoded_image_string=data
        )
        return self._summary.Summary.Value(tag=_utf8(tag), image=picture)

    def _frame(self, event: Any) -> bytes:
        data = event.SerializeToString()
        head = struct.pack("<Q", len(data))
        return b"".join((head, struct.pack("<I", self._checksum(head)), data, struct.pack("<I", self._checksum(data))))


def whole_records(path: Path, size: int) -> int:
    """How many of the first `size` bytes of an event file are whole records, judged by their lengths."""
    end = 0
    with path.open("rb") as file:
        while end + 16 <= size:
            file.seek(end)
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or end + 16 + length > size:
                break
            end += 16 + length
    return end


def _is_ours(path: Path) -> bool:
    """Whether an event file begins as ours do; others in the folder belong to a framework and are left alone."""
    try:
        with path.open("rb") as file:
            start = file.read(256)
    except OSError:
        return False
    return not start or (b"brain.Event:2" in start and WRITER.encode() in start)


def _as_float32(value: float) -> float:
    """The number, or an infinity if it is beyond what an event can hold."""
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    if number > _LARGEST_FLOAT:
        return float("inf")
    return float("-inf") if number < -_LARGEST_FLOAT else number


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
