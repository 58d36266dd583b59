"""TensorBoard events, built with the messages of the `tensorboard` package. All code that writes event files uses this.

    messages = Messages("the TensorBoard sink")
    event = messages.event(time.time(), 7, [messages.scalar("loss", 0.5)])
    file.write(messages.framed(event))

Neither torch nor TensorFlow is needed; numpy only for histograms that need binning.
"""

from __future__ import annotations

import os
import struct
from functools import cache

from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    from rollbook.values import Histogram
    from rollbook.values.array_types import NDArray

BINS = 64
"""How many bins of equal width a histogram gets if no bins are requested and none of the default ones fits."""

_LARGEST_FLOAT = 3.4028234663852886e38


class Messages:
    """Makes summaries (one tagged value each) and events (summaries at a step and a moment).

    Args:
      why: what asks, as the subject of a sentence, for the error about a missing package.
    Raises (constructor):
      MissingExtra: the `tensorboard` package is not installed.
    Threads: any; nothing is kept between calls.
    """

    def __init__(self, why: str) -> None:
        base = "tensorboard.compat.proto."
        self.events = need(base + "event_pb2", extra="tensorboard", why=why)
        self.summaries = need(base + "summary_pb2", extra="tensorboard", why=why)
        self.tensors = need(base + "tensor_pb2", extra="tensorboard", why=why)
        self.shapes = need(base + "tensor_shape_pb2", extra="tensorboard", why=why)
        self.kinds = need(base + "types_pb2", extra="tensorboard", why=why)
        # Only the checksum is needed; the package's record writer would write the same bytes, but only to its own file.
        stub = need("tensorboard.compat.tensorflow_stub.pywrap_tensorflow", extra="tensorboard", why=why)
        self._checksum = stub.masked_crc32c
        self._make_value, self._make_summary = self.summaries.Summary.Value, self.summaries.Summary
        self._make_event = self.events.Event

    # -- events

    def event(self, time: float, step: int | None, values: Sequence[object]) -> Event:
        """An event of these summary values; without a step it is at 0, as in TensorBoard."""
        summary = self._make_summary(value=values)
        if step is None:
            return self._make_event(wall_time=time, summary=summary)
        return self._make_event(wall_time=time, step=int(step), summary=summary)

    def version(self, time: float) -> Event:
        """The event that every file begins with."""
        return self._make_event(wall_time=time, file_version="brain.Event:2")

    def source(self, time: float, writer: str) -> Event:
        """The event that names the program that writes the file."""
        return self._make_event(wall_time=time, source_metadata=self.events.SourceMetadata(writer=writer))

    def session(self, time: float, step: int) -> Event:
        """A mark that makes TensorBoard hide what the folder holds at `step` and beyond."""
        start = self.events.SessionLog(status=self.events.SessionLog.START)
        return self._make_event(wall_time=time, step=int(step), session_log=start)

    def framed(self, event: Event) -> bytes:
        """The bytes of an event in a file: length, checksum, event, checksum."""
        data = event.SerializeToString()
        head = struct.pack("<Q", len(data))
        return b"".join((head, struct.pack("<I", self._checksum(head)), data, struct.pack("<I", self._checksum(data))))

    def summary(self, *values: object) -> Summary:
        """Summary values as one summary, as `FileWriter.add_summary` takes it."""
        return self._make_summary(value=values)

    # -- summary values

    def scalar(self, tag: str, number: float) -> Summary.Value:
        """One number, which an event holds as a 32-bit float."""
        return self._make_value(tag=tag, simple_value=number)

    def described_scalar(self, tag: str, number: float, title: str, description: str) -> Summary.Value:
        """One number under a separate title, with a text that explains it."""
        about = self.summaries.SummaryMetadata(display_name=title, summary_description=description)
        return self._make_value(tag=tag, simple_value=number, metadata=about)

    def tensor_scalar(self, tag: str, number: float, *, double: bool = False) -> Summary.Value:
        """One number in TensorBoard's newer form, which can hold all digits (`double`)."""
        if double:
            tensor = self.tensors.TensorProto(double_val=[number], dtype=self.kinds.DT_DOUBLE)
        else:
            tensor = self.tensors.TensorProto(float_val=[number], dtype=self.kinds.DT_FLOAT)
        return self.plugin(tag, "scalars", tensor)

    def text(self, tag: str, text: str) -> Summary.Value:
        """A text (Markdown). Characters that UTF-8 cannot encode are written with a backslash."""
        tensor = self.tensors.TensorProto(
            dtype=self.kinds.DT_STRING,
            string_val=[text.encode("utf-8", "backslashreplace")],
            tensor_shape=self.shape(1),
        )
        return self.plugin(tag, "text", tensor)

    def image(self, tag: str, data: bytes, height: int, width: int, channels: int = 3) -> Summary.Value:
        """A picture: `data` is a PNG, JPEG or GIF file."""
        picture = self.summaries.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=data
        )
        return self._make_value(tag=tag, image=picture)

    def histogram(self, tag: str, histogram: Histogram) -> Summary.Value:
        """A distribution with edges and counts."""
        return self.buckets(
            tag,
            histogram.low,
            histogram.high,
            histogram.count,
            histogram.total,
            histogram.total_squares,
            histogram.edges[1:],
            histogram.counts,
        )

    def buckets(
        self,
        tag: str,
        low: float,
        high: float,
        count: float,
        total: float,
        total_squares: float,
        limits: Sequence[float],
        counts: Sequence[float],
    ) -> Any:
        """A distribution in TensorBoard's form: `limits` are the upper edges of the buckets that `counts` counts."""
        histo = self.summaries.HistogramProto(
            min=low,
            max=high,
            num=count,
            sum=total,
            sum_squares=total_squares,
            bucket_limit=limits,
            bucket=counts,
        )
        return self._make_value(tag=tag, histo=histo)

    def distribution(
        self, tag: str, numbers: NDArray, bins: Any = "tensorflow", max_bins: int | None = None
    ) -> Summary.Value | None:
        """The distribution of an array's numbers, binned; NaN and infinities are left out.

        Args:
          numbers: any shape.
          bins: edges, a number of bins or the name of a rule of `numpy.histogram`; "tensorflow": edges that grow by a
            tenth, on both sides of 0.
          max_bins: if there are more bins, neighbours are merged.
        Returns:
          None if no finite number is left.
        """
        import numpy as np

        flat = np.asarray(numbers, dtype=np.float64).reshape(-1)
        flat = flat[np.isfinite(flat)]
        if not flat.size:
            return None
        asked = default_edges() if isinstance(bins, str) and bins == "tensorflow" else bins
        counts, edges = np.histogram(flat, bins=asked)
        if not counts.any():  # all numbers are outside the edges
            counts, edges = np.histogram(flat, bins=BINS)
        if max_bins is not None and len(counts) > max_bins:
            together = len(counts) // max_bins
            starts = np.arange(0, len(counts), together)
            counts, edges = np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])
        filled = np.flatnonzero(counts)
        first, last = int(filled[0]), int(filled[-1])
        # A file keeps only upper edges; an empty bucket in front shows where the first one begins.
        shown = counts[first - 1 : last + 1] if first else np.concatenate(([0], counts[: last + 1]))
        return self.buckets(
            tag,
            float(flat.min()),
            float(flat.max()),
            float(flat.size),
            float(flat.sum()),
            float(flat.dot(flat)),
            edges[first : last + 2].tolist(),
            shown.tolist(),
        )

    def plugin(self, tag: str, name: str, tensor: object = None, content: bytes = b"") -> Summary.Value:
        """A tensor for one of TensorBoard's plugins.

        Args:
          name: of the plugin.
          content: the plugin's data about the tag.
        """
        about = self.summaries.SummaryMetadata.PluginData(plugin_name=name, content=content)
        return self._make_value(tag=tag, metadata=self.summaries.SummaryMetadata(plugin_data=about), tensor=tensor)

    def shape(self, *lengths: int) -> TensorShapeProto:
        """The shape of a tensor."""
        make = self.shapes.TensorShapeProto
        return make(dim=[make.Dim(size=length) for length in lengths])


@cache
def default_edges() -> tuple[float, ...]:
    """Edges of bins for numbers of any size: 0, and ±1e-12 growing by steps of a tenth up to 1e20."""
    upper = []
    edge = 1e-12
    while edge < 1e20:
        upper.append(edge)
        edge *= 1.1
    return (*(-edge for edge in reversed(upper)), 0.0, *upper)


def whole_records(path: str | os.PathLike[str], size: int) -> int:
    """How many of the first `size` bytes of an event file are complete records, judged by their lengths."""
    end = 0
    with open(path, "rb") as file:
        while end + 16 <= size:
            file.seek(end)
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or end + 16 + length > size:
                break
            end += 16 + length
    return end


def as_float32(value: float) -> float:
    """The number, or an infinity if it is beyond what an event can hold."""
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    if number > _LARGEST_FLOAT:
        return float("inf")
    return float("-inf") if number < -_LARGEST_FLOAT else number


def utf8(text: str) -> str:
    """A tag that a message can hold: characters that UTF-8 cannot encode are written with a backslash."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
