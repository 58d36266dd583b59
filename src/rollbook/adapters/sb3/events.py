"""TensorBoard events of a Stable-Baselines logger: single-element tensors are numbers, lists distributions."""

from __future__ import annotations

from rollbook.adapters.sb3 import _host
from rollbook.adapters.sb3._host import Figure, HParam, Image, KVWriter, Video, excluded_from
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array, is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.adapters.sb3._host import HParam

if TYPE_CHECKING or _host.VERSION is None:
    _Base = KVWriter
else:
    from stable_baselines3.common.logger import TensorBoardOutputFormat as _Base


class TensorBoardOutputFormat(_Base):
    """A subclass of Stable-Baselines3's `TensorBoardOutputFormat` if that is installed; `writer` is its SummaryWriter.

    Arguments as in `stable_baselines3.common.logger.TensorBoardOutputFormat`.

    Args:
      folder: where the event file goes.
      compat: as in Stable-Baselines3: tensors and arrays of any size are distributions, lists are left out.
    """

    def __init__(self, folder: str, *, compat: bool = False) -> None:
        self.compat = compat
        from rollbook.adapters.tensorboard import native

        self.writer: Any = native.open_events("auto", folder, {})
        self._is_closed = False

    def write(self, key_values: Mapping[str, object], key_excluded: Mapping[str, object], step: int = 0) -> None:
        """Append one row's events and flush them.

        Raises:
          RuntimeError: it was closed.
        """
        if self._is_closed:
            raise RuntimeError("The SummaryWriter was closed, please re-create one.")
        for key, value in sorted(key_values.items(), key=lambda item: str(item[0])):
            if value is not None and not excluded_from(key_excluded.get(key), "tensorboard"):
                self._one(str(key), value, step)
        self.writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if not self._is_closed:
            self.writer.close()
            self._is_closed = True

    def _one(self, key: str, value: object, step: int) -> None:
        writer = self.writer
        if isinstance(value, str):
            writer.add_text(key, value, step)
        elif isinstance(value, Video):
            writer.add_video(key, value.frames, step, value.fps)
        elif isinstance(value, Image):
            writer.add_image(key, value.image, step, dataformats=value.dataformats)
        elif isinstance(value, Figure):
            writer.add_figure(key, value.figure, step, close=value.close)
        elif isinstance(value, HParam):
            self._hparams(value)
        elif self.compat and not isinstance(value, (bool, int, float)):
            if is_tensor(value) or (hasattr(value, "__array_interface__") and hasattr(value, "__setitem__")):
                writer.add_histogram(key, host_array(value), step)
            elif (number := scalar_of(value)) is not None:
                writer.add_scalar(key, number, step)
        elif (number := scalar_of(value)) is not None:
            writer.add_scalar(key, number, step)
        else:
            array = host_array(value)
            if array.size and array.dtype.kind in "biuf":
                writer.add_histogram(key, array, step)

    def _hparams(self, value: HParam) -> None:
        """Write into this run's own file; `add_hparams` would start another run in a new folder."""
        if type(self.writer).__module__.startswith("tensorboardX"):  # its messages are classes of its own
            self.writer.add_hparams(value.hparam_dict, value.metric_dict, name=".")
            return
        from rollbook.adapters.tensorboard.plugins import hparams
        from rollbook.sinks.event_files import Messages

        messages = Messages("hyper-parameters in event files")
        for summary in hparams(messages, value.hparam_dict, value.metric_dict):
            self.writer.file_writer.add_summary(messages.summary(summary))
