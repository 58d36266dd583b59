"""ConstantLogger: adds fixed values to every record."""

from __future__ import annotations

from rollbook.adapters.acme.base import Logger, LoggingData, Wrapper
from rollbook.system.bill import Bill


class ConstantLogger(Wrapper):
    """Adds fixed values to each record. If the record has the same key, its own value is used (reported once).

    Args:
      constant_data: key -> value.
      to: the wrapped logger.
    """

    def __init__(self, constant_data: LoggingData, to: Logger) -> None:
        super().__init__(to)
        self._constant_data = dict(constant_data)
        self._bill = Bill(who="ConstantLogger")

    def write(self, data: LoggingData) -> None:
        """Pass on the constants and `data`.

        Args:
          data: the record.
        """
        for key in self._constant_data.keys() & data.keys():
            self._bill.report(key, f"the record has a key {key!r} of its own; the constant of that name gives way")
        self._to.write({**self._constant_data, **data})
