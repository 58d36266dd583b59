"""FlattenDictLogger: makes nested records flat, under a label."""

from __future__ import annotations

from collections.abc import Sequence

from rollbook.adapters.acme.base import Logger, LoggingData, Wrapper
from rollbook.system.bill import Bill
from rollbook.values import flatten


class FlattenDictLogger(Wrapper):
    """Prefixes keys with `<label>/` and joins the names of nested dicts with "/".

    Args:
      logger: the wrapped logger.
      label: the prefix.
      raw_keys: keys that pass unchanged.
    """

    def __init__(self, logger: Logger, label: str = "Logs", raw_keys: Sequence[str] = ()) -> None:
        super().__init__(logger)
        self._label, self._raw_keys = label, frozenset(raw_keys)
        self._bill = Bill(who="FlattenDictLogger")

    def write(self, values: LoggingData) -> None:
        """Pass on `values`, flat. If two values get the same name, the later one is used (reported once).

        Args:
          values: the record.
        """
        flat = {key: value for key, value in values.items() if key in self._raw_keys}
        nested = {key: value for key, value in values.items() if key not in self._raw_keys}
        for key, value in flatten(nested, prefix=f"{self._label}/"):
            if key in flat:
                self._bill.report(key, f"two values of one record come to the name {key!r}; the later one counts")
            flat[key] = value
        self._to.write(flat)
