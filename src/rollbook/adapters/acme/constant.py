"""ConstantLogger: values that belong to every record."""

from __future__ import annotations

from rollbook.adapters.acme.base import Logger, LoggingData
from rollbook.ground.bill import Bill

__all__ = ["ConstantLogger"]


class ConstantLogger(Logger):
    """Adds `constant_data` to each record. Where both have a key, the value of the record counts (reported once)."""

    def __init__(self, constant_data: LoggingData, to: Logger) -> None:
        self._constant_data, self._to = dict(constant_data), to
        self._said = Bill(who="ConstantLogger")

    def write(self, data: LoggingData) -> None:
        """Hand on the constants and `data`."""
        for key in self._constant_data.keys() & data.keys():
            self._said.say(key, f"the record has a key {key!r} of its own; the constant of that name gives way")
        self._to.write({**self._constant_data, **data})

    def close(self) -> None:
        """Close the logger behind."""
        self._to.close()
