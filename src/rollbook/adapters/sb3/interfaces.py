"""The classes of a Stable-Baselines3 logger, for programs (and readers) without that library.

Where it is installed, its own classes are used instead (`_host`), so that `isinstance` works for both.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Video:
    """A video.

    Args:
      frames: [n, time, channels, height, width].
      fps: frames per second.
    """

    def __init__(self, frames: object, fps: float) -> None:
        self.frames, self.fps = frames, fps


class Figure:
    """A matplotlib figure.

    Args:
      figure: the figure.
      close: close it after logging.
    """

    def __init__(self, figure: object, close: bool) -> None:
        self.figure, self.close = figure, close


class Image:
    """An image.

    Args:
      image: an array or a tensor.
      dataformats: the order of its axes, such as "CHW".
    """

    def __init__(self, image: object, dataformats: str) -> None:
        self.image, self.dataformats = image, dataformats


class HParam:
    """Hyper-parameters and the metrics they are judged by.

    Args:
      hparam_dict: parameter -> value.
      metric_dict: metric -> number; at least one.
    Raises:
      Exception: `metric_dict` is empty (TensorBoard would not show the parameters).
    """

    def __init__(self, hparam_dict: Mapping[str, object], metric_dict: Mapping[str, float]) -> None:
        if not metric_dict:
            raise Exception("`metric_dict` must not be empty: TensorBoard shows hyper-parameters beside metrics only")
        self.hparam_dict, self.metric_dict = hparam_dict, metric_dict


class KVWriter:
    """Writes rows. Arguments as in `stable_baselines3.common.logger.KVWriter`."""

    def write(self, key_values: dict[str, object], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Write one row; `key_excluded` names for each key the formats that do not get it."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the output."""
        raise NotImplementedError


class SeqWriter:
    """Writes texts. Arguments as in `stable_baselines3.common.logger.SeqWriter`."""

    def write_sequence(self, sequence: list[str]) -> None:
        """Write one line: the parts of `sequence`, a space between them."""
        raise NotImplementedError
