"""Event files without torch: the methods of a SummaryWriter, built on the messages of the `tensorboard` package.

Tags, folders and the bytes of summaries equal those of torch's writer, except for the differences in
docs/adapters/tensorboard.md.
"""

from __future__ import annotations

import io
import math
import os
import sys
import time

from rollbook.adapters._pixels import as_frames, as_picture, as_rgb
from rollbook.adapters.tensorboard import plugins
from rollbook.adapters.tensorboard.libraries import PACKAGES, original
from rollbook.sinks.event_files import Messages, default_edges
from rollbook.system.optional import need
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tensorboard.compat.proto.event_pb2 import Event

    from rollbook.values.array_types import NDArray

_WHY = "writing event files"


class FileWriter:
    """An event file of tensorboard's EventFileWriter, with the methods of torch's `FileWriter` that programs use.

    They are reached as `writer.file_writer` and `writer._get_file_writer()`, for summaries made elsewhere.

    Args:
      folder: its folder, created if missing.
      max_queue, flush_secs: how many events may wait in memory, and for how long.
      filename_suffix: appended to the file's name.
    """

    def __init__(self, folder: str, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        make: Any = need("tensorboard.summary.writer.event_file_writer", extra="tensorboard", why=_WHY).EventFileWriter
        self._event = need("tensorboard.compat.proto.event_pb2", extra="tensorboard", why=_WHY).Event
        self._folder, self.event_writer = folder, make(folder, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_event(self, event: Event, step: Any = None, walltime: float | None = None) -> None:
        """Append an event with the current time (or `walltime`) and, if given, a step.

        Args:
          event: a message `tensorboard.compat.proto.event_pb2.Event`; its time and step are set here.
          step: a whole number. None leaves the event's own.
          walltime: Unix seconds. None: now.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: object, global_step: object = None, walltime: float | None = None) -> None:
        """Append an event with a summary.

        Args:
          summary: a message `Summary`.
          global_step: a whole number, or None.
          walltime: Unix seconds. None: now.
        """
        self.add_event(self._event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write everything to the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Flush and close."""
        self.event_writer.close()


RARE = (
    "add_audio",
    "add_custom_scalars",
    "add_custom_scalars_marginchart",
    "add_custom_scalars_multilinechart",
    "add_embedding",
    "add_graph",
    "add_image_with_boxes",
    "add_mesh",
    "add_onnx_graph",
    "add_pr_curve",
    "add_pr_curve_raw",
    "add_tensor",
)
"""Methods of torch's SummaryWriter that are left to it."""


def _torch_writer(own: EventWriter, verb: str) -> Any:
    """torch's SummaryWriter, made without files of its own: it writes to those of `own`."""
    why = f"{verb}() of event files that rollbook writes (or use events='tensorboardX')"
    need(PACKAGES["torch"], extra="tensorboard", why=why, also="torch")
    theirs, file = original("torch"), sys.modules[f"{PACKAGES['torch']}.writer"].FileWriter

    class OverOwnFiles(theirs):  # type: ignore[misc,valid-type]
        log_dir = own.log_dir

        def __init__(self) -> None:
            """Nothing is opened."""

        def _get_file_writer(self) -> Any:
            made = file.__new__(file)
            made.event_writer = own._get_file_writer().event_writer
            return made

    return OverOwnFiles()


class EventWriter:
    """The methods of torch's SummaryWriter; the rare ones need torch itself. Videos are GIFs.

    The constructor starts a file. After `close`, the next value starts another one.

    Args:
      folder: where the file goes.
      purge_step: TensorBoard hides data of older files in the folder from this step on.
      max_queue, flush_secs: how many events may wait in memory, and for how long.
      filename_suffix: appended to the file's name.
    Raises (each method): errors of its arguments. `SummaryWriter` counts them.
    """

    def __init__(
        self,
        folder: str,
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self.log_dir = folder
        self.messages = Messages(_WHY)
        self._file_options = (max_queue, flush_secs, filename_suffix)
        self.all_writers: dict[str, FileWriter] = {}
        self._torch: Any = None
        own = self._file(folder)
        if purge_step is not None:
            own.event_writer.add_event(self.messages.session(time.time(), purge_step))

    @property
    def file_writer(self) -> FileWriter | None:
        """The file of the folder itself; None between `close` and the next value."""
        return self.all_writers.get(self.log_dir)

    def _get_file_writer(self) -> FileWriter:
        return self._file(self.log_dir)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    # -- numbers

    def add_scalar(
        self,
        tag: str,
        scalar_value: object,
        global_step: object = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
        display_name: str = "",
        summary_description: str = "",
    ) -> None:
        """Log one number, or an array or tensor of one element."""
        number = scalar_value if type(scalar_value) is float else number_of(scalar_value)
        messages = self.messages
        if new_style:
            value = messages.tensor_scalar(tag, number, double=double_precision)
        elif display_name or summary_description:
            value = messages.described_scalar(tag, number, display_name, summary_description)
        else:
            value = messages.scalar(tag, number)
        self._add(value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: object = None,
        walltime: float | None = None,
    ) -> None:
        """Log several curves of one chart. As TensorBoard requires, each gets its own run, a folder `<tag>_<name>`."""
        walltime = time.time() if walltime is None else walltime
        for name, value in tag_scalar_dict.items():
            where = f"{self.log_dir}/{main_tag.replace('/', '_')}_{name}"
            self._add(self.messages.scalar(main_tag, number_of(value)), global_step, walltime, where)

    def add_histogram(
        self,
        tag: str,
        values: object,
        global_step: object = None,
        bins: object = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Log a distribution. NaN and infinities are left out; if no value remains, nothing is written."""
        value = self.messages.distribution(tag, host_array(values), bins, max_bins)
        if value is not None:
            self._add(value, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: object = None,
        walltime: float | None = None,
    ) -> None:
        """Log a distribution that is already binned.

        Raises:
          ValueError: the numbers of counts and limits differ.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw({tag!r}): each bucket has one limit and one count; there are {len(bucket_limits)} "
                f"limits and {len(bucket_counts)} counts"
            )
        limits, counts = [float(x) for x in bucket_limits], [float(x) for x in bucket_counts]
        value = self.messages.buckets(tag, min, max, num, sum, sum_squares, limits, counts)
        self._add(value, global_step, walltime)

    # -- text and images

    def add_text(self, tag: str, text_string: str, global_step: object = None, walltime: float | None = None) -> None:
        """Log a text (Markdown)."""
        self._add(self.messages.text(f"{tag}/text_summary", text_string), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: object,
        global_step: object = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image, uint8 or floats in [0, 1]."""
        picture = as_rgb(as_picture(img_tensor, dataformats))
        self._picture(tag, [picture], global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: object,
        global_step: object = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Log a batch of images, as a grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: object, global_step: object = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Log a matplotlib figure, or a list of them side by side."""
        import numpy as np

        from rollbook.adapters.tensorboard.figures import close_figures, pixels_of

        figures = list(figure) if isinstance(figure, (list, tuple)) else [figure]
        drawn = np.stack([pixels_of(each)[..., :3] for each in figures])
        self.add_image(tag, drawn, global_step, walltime, dataformats="NHWC")
        if close:
            close_figures(figures)

    def add_video(
        self,
        tag: str,
        vid_tensor: object,
        global_step: object = None,
        fps: float = 4,
        walltime: float | None = None,
        dataformats: str = "NTCHW",
    ) -> None:
        """Log a video [n, time, channels, height, width], as a GIF."""
        frames = [as_rgb(frame) for frame in as_frames(vid_tensor, dataformats)]
        self._picture(tag, frames, global_step, walltime, fps)

    # -- hyper-parameters

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: object = None,
    ) -> None:
        """Log hyper-parameters and their results, in a separate folder as the HPARAMS page requires."""
        where = os.path.normpath(os.path.join(self.log_dir, run_name or str(time.time())))
        if where == os.path.normpath(self.log_dir):
            where = self.log_dir
        for value in plugins.hparams(self.messages, hparam_dict, metric_dict, hparam_domain_discrete):
            self._add(value, global_step, None, where)
        for key, result in metric_dict.items():
            self._add(self.messages.scalar(key, number_of(result)), global_step, None, where)
        if where != self.log_dir:
            self.all_writers.pop(where).close()

    # -- the rest

    def __getattr__(self, name: str) -> Any:
        """Rare methods (`add_mesh`, `add_embedding`, …) are torch's own, writing to these files.

        Raises:
          MissingExtra: torch is not installed.
        """
        if name not in RARE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self._torch is None:
            self._torch = _torch_writer(self, name)
        return getattr(self._torch, name)

    # -- the files

    def flush(self) -> None:
        """Write everything to the files."""
        for file in self.all_writers.values():
            file.flush()

    def close(self) -> None:
        """Flush and close."""
        for file in self.all_writers.values():
            file.close()
        self.all_writers.clear()

    @property
    def default_bins(self) -> tuple[float, ...]:
        """The edges of bins="tensorflow"."""
        return default_edges()

    def _file(self, where: str) -> FileWriter:
        file = self.all_writers.get(where)
        if file is None:
            file = self.all_writers[where] = FileWriter(where, *self._file_options)
        return file

    def _add(self, value: object, step: object, walltime: float | None, where: str | None = None) -> None:
        self._event([value], step, walltime, where)

    def _event(self, values: Sequence[object], step: Any, walltime: float | None, where: str | None = None) -> None:
        moment = time.time() if walltime is None else walltime
        self._file(where or self.log_dir).event_writer.add_event(self.messages.event(moment, step, values))

    def _picture(
        self,
        tag: str,
        frames: Sequence[NDArray],
        step: object,
        walltime: float | None,
        fps: float = 4,
    ) -> None:
        pil = need("PIL.Image", extra="tensorboard", why=_WHY)
        pictures = [pil.fromarray(frame) for frame in frames]
        height, width, channels = frames[0].shape
        data = io.BytesIO()
        if len(pictures) > 1:
            pause = max(20, math.floor(1000 / fps)) if fps > 0 else 250
            pictures[0].save(data, "GIF", save_all=True, append_images=pictures[1:], duration=pause, loop=0)
        else:
            pictures[0].save(data, "PNG")
        self._add(self.messages.image(tag, data.getvalue(), height, width, channels), step, walltime)


def number_of(value: object) -> float:
    """`value` as a number; also of an array or tensor of one element and any shape.

    Raises:
      ValueError: it has no element or several, or is not a number.
    """
    number = scalar_of(value)
    if number is None:
        array = host_array(value)
        if array.size != 1 or array.dtype.kind not in "biufc":
            raise ValueError(f"a scalar is one number; this is {type(value).__name__} {str(value)[:80]!r}")
        number = array.item()
    return float(number)
