"""The interface of an Acme logger: an object with `write(mapping)` and `close()`.

    class Printer(Logger):
        def write(self, data):
            print(data)

A subclass only has to define `write`, as in 2020; `close` does nothing unless it is overridden.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, TypeAlias

from rollbook.values.arrays import host_array, is_tensor

LoggingData: TypeAlias = Mapping[str, Any]
LoggerLabel: TypeAlias = str
LoggerStepsKey: TypeAlias = str
TaskInstance: TypeAlias = int


class Logger(abc.ABC):
    """A destination for records."""

    @abc.abstractmethod
    def write(self, data: LoggingData) -> None:
        """Take one record. The caller's record is not changed.

        Args:
          data: name -> value.
        """

    def close(self) -> None:  # noqa: B027 - a default, so that loggers written before `close` existed still work
        """Write held records and close. Nothing is written afterwards."""


class Wrapper(Logger):
    """A logger that wraps another one.

    Args:
      to: the wrapped logger.
    """

    def __init__(self, to: Logger) -> None:
        self._to = to

    def flush(self) -> None:
        """Pass on held records, here and in the wrapped loggers."""
        inner = getattr(self._to, "flush", None)
        if inner is not None:
            inner()

    def close(self) -> None:
        """Pass on held records, then close the wrapped logger."""
        self._to.close()


class NoOpLogger(Logger):
    """Does nothing."""

    def write(self, data: LoggingData) -> None:
        """Do nothing.

        Args:
          data: not used.
        """


def tensor_to_numpy(value: object) -> Any:
    """A tensor (torch, TensorFlow or JAX; also one that requires grad) as a numpy array; other values unchanged.

    Args:
      value: anything.
    """
    if is_tensor(value) or hasattr(value, "numpy") or type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        return host_array(value)
    return value


def to_numpy(values: object) -> Any:
    """The same nested structure with tensors as numpy arrays. Always a new container; key order is kept.

    Args:
      values: dicts, lists and tuples of values, nested; or one value.
    """
    if isinstance(values, Mapping):
        items = {key: to_numpy(value) for key, value in values.items()}
        if type(values) is dict:
            return items
        try:
            return type(values)(items)  # type: ignore[call-arg]
        except TypeError:  # a mapping that cannot be built from another one
            return items
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*map(to_numpy, values))
    if isinstance(values, (list, tuple)):
        return type(values)(map(to_numpy, values))
    return tensor_to_numpy(values)
