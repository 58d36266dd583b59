"""Names of columns that DuckDB confuses: "Loss" and "loss" are one name to it, and "" is none. It ends a name
at a NUL.

Such columns have an inner name inside of a query. `SqlNames.query` writes the inner names into a query, `outer` takes
them out of the names of results, and of messages, again.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping

from rollbook.errors import BadInput

_MARK = "\u2060"  # is not seen where a message has it
_INNER = re.compile(rf"{_MARK}[0-9a-f]{{8}}")

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/|[eE]?'(?:[^']|'')*'|\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$|[0-9][\w.]*)"""
    r"""|(?P<quoted>"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$]*)|(?P<other>::|.)""",
    re.DOTALL,
)
_WORDS = """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default
    deferrable desc describe distinct do else end except false fetch for foreign from group having in initially
    intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider
    placing primary qualify references returning select show some summarize symmetric table then to trailing true
    union unique unpivot using variadic when where window with
"""
_RESERVED = frozenset(_WORDS.split())


def inner(name: str) -> str:
    """The inner name of a column."""
    shown = name.replace("\0", r"\0")
    return f"{shown}{_MARK}{zlib.crc32(name.encode(errors='surrogatepass')):08x}"


def outer(text: str) -> str:
    """A text, or the name of a column, without marks of inner names; of the column without a name: two quotes."""
    return (_INNER.sub("", text) or '""') if _MARK in text else text


def confused(names: Iterable[str]) -> frozenset[str]:
    """Those of the names that DuckDB takes for another of them, for none, or for a shorter one."""
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(name.casefold(), set()).add(name)
    return frozenset(
        name for key, group in alike.items() for name in group if len(group) > 1 or not key or "\0" in name
    )


class SqlNames:
    """The names of the columns that a query may use.

    Args:
      tables: the columns of each table.
    Attributes:
      confused: those that have inner names.
    """

    def __init__(self, tables: Mapping[str, Iterable[str]]) -> None:
        self._spelled: dict[str, list[str]] = {}
        names = dict.fromkeys(name for columns in tables.values() for name in columns)
        for name in names:
            self._spelled.setdefault(name.casefold(), []).append(name)
        self._tables = {table.casefold() for table in tables}
        self.confused = confused(names) | {""}

    def query(self, text: str) -> str:
        """A query, or a condition, with the inner names.

        Raises:
          BadInput: a name could be one of several, or is in quotes and not spelled as the column.
        """
        tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text)]
        tokens = [("skip" if kind == "tag" else kind, token) for kind, token in tokens]
        meant = [n for n, (kind, _) in enumerate(tokens) if kind != "skip"]
        aliases = self._aliases(tokens, meant)
        inside_cast: list[bool] = []
        for index, n in enumerate(meant):
            kind, token = tokens[n]
            before = tokens[meant[index - 1]][1].lower() if index else ""
            if token == "(":
                inside_cast.append(before in ("cast", "try_cast"))
            elif token == ")" and inside_cast:
                inside_cast.pop()
            if kind not in ("quoted", "word"):
                continue
            is_type = before == "::" or (before == "as" and any(inside_cast[-1:]))
            is_call = index + 1 < len(meant) and tokens[meant[index + 1]][1] == "("
            if kind == "word" and (token.lower() in _RESERVED or is_type or is_call):
                continue
            name = token[1:-1].replace('""', '"') if kind == "quoted" else token
            if name in self.confused:
                tokens[n] = (kind, _quoted(inner(name)))
            elif name not in aliases and name.casefold() not in self._tables:
                self._check(name, is_quoted=kind == "quoted")
        return "".join(token for _, token in tokens)

    @staticmethod
    def _aliases(tokens: list[tuple[str, str]], meant: list[int]) -> set[str]:
        """Names that the query itself gives: those after `as`, and those of `with name as`."""
        found = set()
        for index, n in enumerate(meant):
            if tokens[n][1].lower() == "as":
                for neighbour in (index - 1, index + 1):
                    if 0 <= neighbour < len(meant):
                        found.add(tokens[meant[neighbour]][1].strip('"'))
        return found

    def _check(self, name: str, is_quoted: bool) -> None:
        spelled = self._spelled.get(name.casefold(), [])
        if name in spelled or not spelled or (len(spelled) == 1 and not is_quoted):
            return
        names = " and ".join(_quoted(each) for each in spelled)
        raise BadInput(
            f"there is no column {_quoted(name)}, but {names}: write the one that is meant in double quotes, in its own"
            " upper and lower case"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
