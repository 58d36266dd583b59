"""progress.csv and progress.json of Stable-Baselines3, but complete after a kill and valid for any reader."""

from __future__ import annotations

import json
import os

from rollbook.adapters._plain import json_data
from rollbook.adapters._table import GrowingTable
from rollbook.adapters.sb3._host import RICH, KVWriter, excluded_from, unsupported
from rollbook.values import scalar_of
from rollbook.values.arrays import host_tensor, is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_NOWHERE = ("",)
"""What the logger stores for a key without exclusion."""


def _kept(
    key_values: Mapping[str, object], key_excluded: Mapping[str, object], name: str, compat: bool
) -> dict[str, object]:
    """The values that this format writes: not excluded from it, and no image, video or set of hyper-parameters.

    Raises:
      FormatUnsupportedError: with `compat`, at the first of these.
    """
    wanted = {}
    for key, value in key_values.items():
        where = key_excluded.get(key, _NOWHERE)
        if where != _NOWHERE and excluded_from(where, name):
            continue
        if isinstance(value, RICH):
            if compat:
                raise unsupported((name,), value)
        else:
            wanted[str(key)] = value
    return wanted


class CSVOutputFormat(KVWriter):
    """One line per dump; columns in the order in which keys were first recorded.

    Arguments as in `stable_baselines3.common.logger.CSVOutputFormat`.

    Appends to an existing file. Text is quoted, and so is anything with a comma or a newline. A dump without a key for
    this format writes no line.

    Args:
      filename: the file.
      compat: raise FormatUnsupportedError for images and the like, as Stable-Baselines3 does, instead of leaving them
        out.
    Attributes:
      keys, separator, quotechar: as in Stable-Baselines3.
    """

    separator = ","
    quotechar = '"'

    def __init__(self, filename: str | os.PathLike[str], *, compat: bool = False) -> None:
        self.compat = compat
        self._table = GrowingTable(filename, self.separator, quote_text=True)

    @property
    def keys(self) -> list[str]:
        """The columns so far."""
        return self._table.columns

    @property
    def file(self) -> Any:
        """The table."""
        return self._table

    def write(self, key_values: Mapping[str, object], key_excluded: Mapping[str, object], step: int = 0) -> None:
        """Append one line."""
        row = _kept(key_values, key_excluded, "csv", self.compat)
        if row:
            self._table.write({key: _cell(value) for key, value in row.items()})

    def close(self) -> None:
        """Bring the file up to date and close it."""
        self._table.close()


class JSONOutputFormat(KVWriter):
    """One strict JSON object per dump: integers stay integers, NaN and infinities become null, other values their text.

    Arguments as in `stable_baselines3.common.logger.JSONOutputFormat`.

    Args:
      filename: the file, which is appended to.
      compat: raise FormatUnsupportedError for images and the like, instead of leaving them out.
    """

    def __init__(self, filename: str | os.PathLike[str], *, compat: bool = False) -> None:
        self.compat = compat
        self.file = open(filename, "a", encoding="utf-8")  # noqa: SIM115  # until close()

    def write(self, key_values: Mapping[str, object], key_excluded: Mapping[str, object], step: int = 0) -> None:
        """Append one line."""
        wanted = _kept(key_values, key_excluded, "json", self.compat)
        row = {key: json_data(value) for key, value in wanted.items()}
        if row:
            self.file.write(json.dumps(row, allow_nan=False) + "\n")
            self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _cell(value: object) -> object:
    if value is None or isinstance(value, (str, float, int)):
        return value
    number = scalar_of(value)
    if number is None:
        return _as_list(value)
    return number if is_tensor(value) else value  # numpy's own text has the digits of its own precision


def _as_list(value: object) -> object:
    value = host_tensor(value)
    return value.tolist() if hasattr(value, "tolist") else value
