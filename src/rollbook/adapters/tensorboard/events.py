"""Event files without torch: the verbs of a SummaryWriter on the messages of the `tensorboard` package."""

from __future__ import annotations

import io
import math
import os
import time

from rollbook._optional import need
from rollbook.adapters._pixels import as_frames, as_picture, host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["EventWriter"]

_WHY = "writing event files"
BINS = 64


def _part(module: str) -> Any:
    return need(f"tensorboard.{module}", extra="tensorboard", why=_WHY)


class EventWriter:
    """Scalars, histograms, texts, pictures, films (as GIF) and hyper-parameters.

    A file is begun in the constructor; after `close` the next value begins another one.

    Args:
      folder: where the file goes.
      purge_step: TensorBoard hides what older files of the folder hold at this step and beyond.
      max_queue, flush_secs: how many events, and for how long, may wait in memory.
      filename_suffix: appended to the file's name.
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
        self._event = _part("compat.proto.event_pb2")
        self._summary = _part("compat.proto.summary_pb2")
        self._file_options = (max_queue, flush_secs, filename_suffix)
        self._files: dict[str, Any] = {}
        if purge_step is not None:
            start = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(self._event.Event(wall_time=time.time(), step=purge_step, session_log=start))
        else:
            self._file(folder)

    # -- verbs

    def add_scalar(self, tag: str, value: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """One number."""
        self._value(global_step, walltime, tag=tag, simple_value=float(value))

    def add_scalars(
        self, tag: str, values: Mapping[str, Any], global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Several curves of one chart: each gets a run of its own, a folder `<tag>_<name>`, as TensorBoard wants it."""
        for name, value in values.items():
            where = os.path.join(self.log_dir, f"{tag}_{name}".replace("/", "_"))
            self._value(global_step, walltime, where, tag=tag, simple_value=float(value))

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A distribution, in 64 bins of equal width; NaN and infinities are left out."""
        import numpy as np

        numbers = host_array(values).astype(np.float64).reshape(-1)
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return
        counts, edges = np.histogram(numbers, bins=BINS)
        self.add_histogram_raw(
            tag,
            float(numbers.min()),
            float(numbers.max()),
            int(numbers.size),
            float(numbers.sum()),
            float(np.square(numbers).sum()),
            edges[1:].tolist(),
            counts.tolist(),
            global_step,
            walltime,
        )

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: list[float],
        bucket_counts: list[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A distribution that was binned already."""
        histogram = self._summary.HistogramProto(
            min=min,
            max=max,
            num=num,
            sum=sum,
            sum_squares=sum_squares,
            bucket_limit=bucket_limits,
            bucket=bucket_counts,
        )
        self._value(global_step, walltime, tag=tag, histo=histogram)

    def add_text(self, tag: str, text: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text (Markdown)."""
        tensor = _part("compat.proto.tensor_pb2").TensorProto(
            dtype="DT_STRING",
            string_val=[text.encode("utf-8", "backslashreplace")],
            tensor_shape=_part("compat.proto.tensor_shape_pb2").TensorShapeProto(dim=[{"size": 1}]),
        )
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        metadata = self._summary.SummaryMetadata(plugin_data=plugin)
        self._value(global_step, walltime, tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor)

    def add_image(
        self,
        tag: str,
        pixels: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture, uint8 or floats in [0, 1]."""
        picture = _as_bytes(as_picture(pixels, dataformats))
        self._picture(tag, picture, [picture], global_step, walltime)

    def add_video(
        self, tag: str, film: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """A film [n, time, channels, height, width], as a GIF."""
        frames = [_as_bytes(frame) for frame in as_frames(film)]
        self._picture(tag, frames[0], frames, global_step, walltime, fps)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Hyper-parameters and what they led to, in a folder of their own as the HPARAMS page wants it."""
        hp = _part("plugins.hparams.summary_v2")
        where = os.path.join(self.log_dir, run_name or str(time.time()))
        plain = {
            key: value if isinstance(value, (bool, int, float, str)) else str(value)
            for key, value in hparam_dict.items()
        }
        domains = hparam_domain_discrete or {}
        described = [hp.HParam(key, hp.Discrete(list(domains[key])) if key in domains else None) for key in plain]
        config = hp.hparams_config_pb(hparams=described, metrics=[hp.Metric(key) for key in metric_dict])
        for summary in (config, hp.hparams_pb(plain, trial_id=where)):
            self._add(self._event.Event(wall_time=time.time(), summary=summary), where)
        for key, value in metric_dict.items():
            self._value(global_step, None, where, tag=key, simple_value=float(value))

    def flush(self) -> None:
        """Bring everything to the files."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Flush and let go."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    # -- parts

    def _file(self, where: str) -> Any:
        file = self._files.get(where)
        if file is None:
            make: Any = _part("summary.writer.event_file_writer").EventFileWriter
            file = self._files[where] = make(where, *self._file_options)
        return file

    def _value(self, step: int | None, walltime: float | None, where: str | None = None, **fields: Any) -> None:
        summary = self._summary.Summary(value=[self._summary.Summary.Value(**fields)])
        event = self._event.Event(wall_time=time.time() if walltime is None else walltime, summary=summary)
        if step is not None:
            event.step = int(step)
        self._add(event, where)

    def _add(self, event: Any, where: str | None = None) -> None:
        self._file(where or self.log_dir).add_event(event)

    def _picture(
        self, tag: str, first: Any, frames: list[Any], step: int | None, walltime: float | None, fps: float = 4
    ) -> None:
        pil = need("PIL.Image", extra="tensorboard", why=_WHY)
        pictures = [pil.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame) for frame in frames]
        data = io.BytesIO()
        if len(pictures) > 1:
            pause = max(20, math.floor(1000 / fps)) if fps > 0 else 250
            pictures[0].save(data, "GIF", save_all=True, append_images=pictures[1:], duration=pause, loop=0)
        else:
            pictures[0].save(data, "PNG")
        height, width, channels = first.shape
        image = self._summary.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=data.getvalue()
        )
        self._value(step, walltime, tag=tag, image=image)


def _as_bytes(picture: Any) -> Any:
    import numpy as np

    if picture.dtype == np.uint8:
        return picture
    scale = 255.0 if np.issubdtype(picture.dtype, np.floating) else 1.0
    return (picture * scale).clip(0, 255).astype(np.uint8)
