"""Select, Rename and Prefix: which keys a sink gets, and under which names.

The keys of a mark change together with those of the rows, so that an Aggregate behind still knows what a dump names.
"""

from __future__ import annotations

import re

from rollbook.errors import BadInput
from rollbook.sinks.filters._base import Filter, with_keys, with_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rollbook.protocols import Row, Sink


def pattern(asked: str, who: str) -> re.Pattern[str]:
    """The compiled pattern; the error names the filter."""
    try:
        return re.compile(asked)
    except (re.error, TypeError) as err:
        raise BadInput(
            f"{who} was given {asked!r}, which is not a regular expression ({err}). "
            "To match a key as it stands, use re.escape(key)."
        ) from None


class Select(Filter):
    """Keeps some of the keys. Rows without any keys left are dropped.

    Args:
      to: the sink behind.
      keys: a regular expression; keys in which it is found stay. None: all.
      drop: a regular expression; keys in which it is found are dropped. None: none.
    Raises:
      BadInput: neither is given, or one is not a regular expression.
    """

    name = "select"

    def __init__(self, to: Sink, *, keys: str | None = None, drop: str | None = None) -> None:
        if keys is None and drop is None:
            raise BadInput("Select was given neither keys= nor drop=, and would change nothing. Name one or both.")
        super().__init__(to, keys=keys, drop=drop)
        self._keep = None if keys is None else pattern(keys, "Select keys=")
        self._drop = None if drop is None else pattern(drop, "Select drop=")
        self._known: dict[str, bool] = {}

    def _row(self, row: Row) -> Iterable[Row]:
        wanted = {key: value for key, value in row.values.items() if self._wants(key)}
        if len(wanted) == len(row.values):
            return (row,)
        return (with_values(row, wanted),) if wanted else ()

    def _mark(self, row: Row) -> Iterable[Row]:
        if row.mark != "dump" or not row.keys:  # the names in a final mark are the run's status
            return (row,)
        wanted = tuple(key for key in row.keys if self._wants(key))
        # A dump of keys that are all removed must not pass: without keys it would mean all of them.
        return (with_keys(row, wanted),) if wanted else ()

    def _wants(self, key: str) -> bool:
        wanted = self._known.get(key)
        if wanted is None:
            wanted = (self._keep is None or self._keep.search(key) is not None) and (
                self._drop is None or self._drop.search(key) is None
            )
            self._known[key] = wanted
        return wanted


class _Renaming(Filter):
    """Gives keys other names. If the row already has the new name, the key keeps its old one."""

    def _row(self, row: Row) -> Iterable[Row]:
        names = {key: self._new(key) for key in row.values}
        taken = {key for key, new in names.items() if key == new}
        values = {}
        for key, value in row.values.items():
            new = names[key]
            if new != key and new in taken:
                new = key
            taken.add(new)
            values[new] = value
        return (with_values(row, values),)

    def _mark(self, row: Row) -> Iterable[Row]:
        return (with_keys(row, tuple(map(self._new, row.keys))),) if row.mark == "dump" else (row,)

    def _new(self, key: str) -> str:
        raise TypeError(f"{type(self).__name__} does not say how it renames")


class Rename(_Renaming):
    """Renames keys.

    Args:
      to: the sink behind.
      names: old key -> new key.
      pattern, replace: for keys that `names` does not name: `re.sub(pattern, replace, key)`.
    Raises:
      BadInput: neither names nor a pattern; a pattern without a replacement, or one that is not a regular expression.
    """

    name = "rename"

    def __init__(
        self,
        to: Sink,
        names: Mapping[str, str] | None = None,
        *,
        pattern: str | None = None,
        replace: str | None = None,
    ) -> None:
        if (pattern is None) != (replace is None) or (names is None and pattern is None):
            raise BadInput(
                f"Rename was given names={names!r}, pattern={pattern!r}, replace={replace!r}; it takes a mapping "
                "{'old': 'new'}, or a pattern and what replaces it, or both"
            )
        names = dict(names or {})
        super().__init__(to, names=names, pattern=pattern, replace=replace)
        self._names = names
        self._replace = replace or ""
        self._pattern = None if pattern is None else _checked(pattern, self._replace)
        self._known: dict[str, str] = {}

    def _new(self, key: str) -> str:
        new = self._names.get(key) or self._known.get(key)
        if new is None:
            new = key if self._pattern is None else self._pattern.sub(self._replace, key) or key
            self._known[key] = new
        return new


class Prefix(_Renaming):
    """Puts a text before each key: Prefix(to, "seed3/").

    Args:
      to: the sink behind.
      prefix: the text; no separator is added.
    """

    name = "prefix"

    def __init__(self, to: Sink, prefix: str) -> None:
        super().__init__(to, prefix=prefix)
        self._prefix = prefix

    def _new(self, key: str) -> str:
        return self._prefix + key


def _checked(asked: str, replace: str) -> re.Pattern[str]:
    compiled = pattern(asked, "Rename pattern=")
    try:
        compiled.sub(replace, "")  # checks the replacement, whether or not anything matches
    except (re.error, IndexError) as err:
        raise BadInput(f"Rename was given replace={replace!r}, which does not fit pattern={asked!r}: {err}") from None
    return compiled
