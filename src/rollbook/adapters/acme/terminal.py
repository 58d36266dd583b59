"""TerminalLogger: one line per record.

    [Train Loop] Episode Length = 20 | Episode Return = -3.250 | Episodes = 4 | Steps = 80

Keys are sorted, and "episode_return" is shown as "Episode Return".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rollbook.adapters.acme._throttle import Throttle
from rollbook.adapters.acme.base import Logger, LoggingData, to_numpy
from rollbook.values import scalar_of


def serialize(values: LoggingData, *, compat: bool = False) -> str:
    """`values` as text: sorted by key, "snake_case" as "Snake Case", floats with three decimals.

    Args:
      values: the record.
      compat: as Acme prints them: numpy's integers like floats, and 0-d arrays in full precision.
    """
    pairs = sorted((str(key), value) for key, value in values.items())
    return " | ".join(f"{_title(key)} = {_value(value, compat)}" for key, value in pairs)


def _title(key: str) -> str:
    return key.replace("_", " ").title()


def _value(value: object, compat: bool) -> str:
    value = to_numpy(value)
    if compat:
        is_numpy_scalar = hasattr(value, "dtype") and not hasattr(value, "__setitem__")
        return f"{value:0.3f}" if isinstance(value, float) or is_numpy_scalar else str(value)
    if isinstance(value, Mapping):
        return str({key: to_numpy(inner) for key, inner in value.items()})
    if hasattr(value, "ndim") and value.ndim > 0:
        return str(value)
    number = scalar_of(value)
    return f"{number:0.3f}" if type(number) is float else str(value if number is None else number)


class TerminalLogger(Logger):
    """Prints records.

    Args:
      label: printed in front, "train_loop" as "[Train Loop] "; None and "" print no label.
      print_fn: called with the line. Acme's default, `logging.info`, shows nothing unless logging was configured.
      serialize_fn: turns a record into text.
      time_delta: minimum seconds between lines. The first record is printed, and the last one when the logger is closed
        or the program ends.
      clock: monotonic seconds.
    """

    def __init__(
        self,
        label: str | None = "",
        print_fn: Callable[[str], object] = print,
        serialize_fn: Callable[[LoggingData], str] = serialize,
        time_delta: float = 0.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        front = f"[{_title(label)}] " if label else ""

        def show(values: LoggingData) -> None:
            print_fn(f"{front}{serialize_fn(values)}")

        self._throttle = Throttle(show, time_delta, clock=clock)

    def write(self, values: LoggingData) -> None:
        """Print `values`, if they are due.

        Args:
          values: the record.
        """
        self._throttle.offer(values)

    def flush(self) -> None:
        """Print the held record."""
        self._throttle.flush()

    def close(self) -> None:
        """Print the held record."""
        self._throttle.flush()
