"""FlattenDictLogger: nested records as flat ones, under a label."""

from __future__ import annotations

from collections.abc import Sequence

from rollbook.adapters.acme.base import Logger, LoggingData
from rollbook.ground.bill import Bill
from rollbook.ground.values import flatten

__all__ = ["FlattenDictLogger"]


class FlattenDictLogger(Logger):
    """Prefixes keys with `<label>/` and joins nested dicts, however deep, with "/".

    Args:
      logger: the logger behind.
      label: the prefix.
      raw_keys: keys that pass as they are.
    """

    def __init__(self, logger: Logger, label: str = "Logs", raw_keys: Sequence[str] = ()) -> None:
        self._logger, self._label, self._raw_keys = logger, label, frozenset(raw_keys)
        self._said = Bill(who="FlattenDictLogger")

    def write(self, values: LoggingData) -> None:
        """Hand on `values`, flat. Of two values that come to the same name, the later counts (reported once)."""
        flat = {key: value for key, value in values.items() if key in self._raw_keys}
        nested = {key: value for key, value in values.items() if key not in self._raw_keys}
        for key, value in flatten(nested, prefix=f"{self._label}/"):
            if key in flat:
                self._said.say(key, f"two values of one record come to the name {key!r}; the later one counts")
            flat[key] = value
        self._logger.write(flat)

    def close(self) -> None:
        """Close the logger behind."""
        self._logger.close()
