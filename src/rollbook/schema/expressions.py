"""Checks SQL expressions that users pass as `where` and `order_by`, with DuckDB's own parser.

A text is accepted only if it is a single expression: no further statement, no query inside, nothing that reads a file.
So it is safe inside a query of ours. Parsing takes time proportional to the length, which is bounded.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rollbook.errors import BadInput
from rollbook.system.duckdb_here import cursor
from rollbook.system.optional import need

_WHY = "a condition in SQL"

LONGEST = 20_000
"""Largest number of characters of a condition."""
MOST_TERMS = 4_000
"""Largest number of columns and values in a condition; `name = 'x' or name = 'y'` has four."""
MOST_COLUMNS = 200
"""Largest number of different columns in a condition."""
_MOST_LEVELS = 800
"""Deepest nesting of a parsed condition; below what every CPython's json reads."""

_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")""")
# Each pattern starts only at the beginning of a word: starting at every letter would have quadratic cost.
_HAS = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\s+has\s+$")
_NESTED = re.compile(r"(?<![\w.])(?:config|summary|total)(?:\.\w+)*\s*\[\s*$")
_WORDS = re.compile(r"(?<![\w.])(None|True|False)(?![\w.(])")
_RESERVED = re.compile(r"(?<![\w.])group(?![\w.(]|\s+by\b)", re.IGNORECASE)  # both a field of runs and an SQL keyword
_PYTHON = {"None": "null", "True": "true", "False": "false"}
_IS_NULL = re.compile(r"(==|=|!=|<>|\bis\s+not|\bis)\s*null\b", re.IGNORECASE)
_REFUSED = {
    "SUBQUERY": "a query inside",
    "WINDOW": "a window over rows",
    "STAR": "a star",
    "PARAMETER": "a parameter",
    "LAMBDA": "a function of its own",
}
_ALSO_OF_ROWS = ("SUBQUERY", "LAMBDA")
"""What a condition on rows may have. The columns inside are its own."""
_EMPTY = ("where_clause", "having", "qualify", "sample")


class Expression:
    """One expression that is safe inside a query of ours.

    Attributes:
      text: as SQL.
      columns: its columns, each as a tuple of parts: `config.lr` is ("config", "lr").
    """

    def __init__(self, text: str, columns: tuple[tuple[str, ...], ...]) -> None:
        self.text, self.columns = text, columns


def condition(text: str, *, names: Iterable[str] = (), of_rows: bool = False) -> Expression:
    """A condition in SQL, such as "reward > 1 and key like 'train/%'".

    `tags has 'a'`, `config['lr']`, `==`, None, True and False are accepted too.

    Args:
      text: the condition.
      names: dotted names that are understood without quotes, whatever is in them: `summary.test/return.last`.
      of_rows: it is about rows of a table of one run: it may be of any length, and have queries inside.
    Raises:
      BadInput: it is not a single expression, or it is too long (`LONGEST`, `MOST_TERMS`, `MOST_COLUMNS`).
    """
    source = _Said("condition", text, _OF_ROWS if of_rows else _OF_RUNS)
    if not of_rows:
        bounded(text)
    if not text.strip():
        raise source.wrong(": there is no condition")
    sql = f"({_spelled(_named(text, names))}\n)"  # the new line ends a comment in the text
    node = _select(f"select {sql}", source)
    chosen = node.get("select_list") or []
    if len(chosen) != 1 or node.get("modifiers"):
        raise source.wrong(" is more than one condition")
    return Expression(sql, tuple(_columns(chosen, source, of_rows=of_rows)))


def order(text: str) -> Expression:
    """What rows of a table are ordered by, such as "reward desc, batch": columns, or expressions of them.

    Raises:
      BadInput: it is anything else.
    """
    source = _Said("order", text, 'Write columns, such as reward desc, "train/return"')
    sql = f"\n{_spelled(text)}\n"
    node = _select(f"select 1 order by{sql}", source)
    modifiers = node.get("modifiers") or []
    if [each.get("type") for each in modifiers] != ["ORDER_MODIFIER"] or len(node.get("select_list") or []) != 1:
        raise source.wrong(" is not an order alone")
    return Expression(
        sql, tuple(_columns([each["expression"] for each in modifiers[0]["orders"]], source, of_rows=True))
    )


def bounded(*texts: str | None) -> None:
    """Check that conditions and orders are not longer than a server takes.

    Raises:
      BadInput: one is.
    """
    for text in texts:
        if text is not None and len(text) > LONGEST:
            raise BadInput(
                f"condition {text!r:.80}… has {len(text):,} characters; a condition has {LONGEST:,} at most.",
                "Ask in several, or choose the rows in Python",
            )


class _Said(NamedTuple):
    """A text of a user: what it is, and how such a text is written."""

    what: str
    text: str
    hint: str

    def wrong(self, why: str) -> BadInput:
        return BadInput(f"{self.what} {self.text!r:.200}{why}.", self.hint)


def _named(text: str, names: Iterable[str]) -> str:
    """The condition with these names in quotes, so that a slash in a name is not read as a division."""
    there = sorted((name for name in names if name in text and "." in name), key=len, reverse=True)
    if not there:
        return text
    each = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, there))})(?![\w.])")
    pieces = _QUOTED.split(text)
    for n in range(0, len(pieces), 2):
        pieces[n] = each.sub(_in_quotes, pieces[n])
    return "".join(pieces)


def _in_quotes(name: re.Match[str]) -> str:
    first, _, rest = name[0].partition(".")
    return f"{first}.{quoted(rest)}"


def _spelled(text: str) -> str:
    """The condition as SQL; quoted parts stay unchanged."""
    pieces = _QUOTED.split(text.strip())
    _dotted(pieces)
    for n in range(0, len(pieces), 2):
        piece = _WORDS.sub(lambda match: _PYTHON[match.group(1)], pieces[n])
        pieces[n] = _IS_NULL.sub(
            lambda match: "is not null" if match.group(1).lower() in ("!=", "<>", "is not") else "is null", piece
        )
        pieces[n] = _RESERVED.sub('"group"', pieces[n])
        has = _HAS.search(pieces[n])
        if has and n + 1 < len(pieces):
            pieces[n] = f"{pieces[n][: has.start()]}list_contains({has.group(1)}, "
            pieces[n + 1] = "'" + pieces[n + 1][1:-1] + "')"
    return "".join(pieces)


def _dotted(pieces: list[str]) -> None:
    """Python's `config['lr']` becomes config."lr"."""
    inside = False
    for n in range(0, len(pieces) - 2, 2):
        inside = bool(_NESTED.search(pieces[n])) or (inside and pieces[n].strip() == "[")
        inside = inside and pieces[n + 2].lstrip().startswith("]")
        if inside:
            pieces[n] = pieces[n].rstrip()[:-1].rstrip()
            mark = pieces[n + 1][0]
            key = pieces[n + 1][1:-1].replace(mark * 2, mark)
            pieces[n + 1] = '."' + key.replace('"', '""') + '"'
            pieces[n + 2] = pieces[n + 2].lstrip()[1:]


_OF_RUNS = "Write it like: config.lr < 3e-4 and status = 'finished' and tags has 'paper'"
_OF_ROWS = 'Write it like: reward > 1 and "train/return" is not null. `sql` takes whole queries'


def _select(query: str, source: _Said) -> dict[str, Any]:
    """The single statement of a query, as parsed by DuckDB: a plain select, or an error."""
    need("duckdb", extra="sql", why=_WHY)
    try:
        tree = json.loads(_parsed(query))
    except Exception as err:  # a text that the parser refuses, such as one with a NUL
        raise source.wrong(f" cannot be read: {str(err)[:300]}") from None
    if tree.get("error"):
        message = str(tree.get("error_message") or "").partition("\n")[0][:300]
        raise source.wrong(f" cannot be read: {message}")
    statements = tree.get("statements") or []
    node: dict[str, Any] = statements[0].get("node") or {} if len(statements) == 1 else {}
    bare = (
        node.get("type") == "SELECT_NODE"
        and (node.get("from_table") or {}).get("type") == "EMPTY"
        and not any(node.get(name) for name in _EMPTY)
        and not node.get("group_expressions")
        and not ((node.get("cte_map") or {}).get("map"))
    )
    if not bare:
        raise source.wrong(" is more than one expression")
    return node


def parsed_query(query: str) -> dict[str, Any]:
    """A query that can be read, as DuckDB's parser understands it."""
    parsed: dict[str, Any] = json.loads(_parsed(query))
    return parsed


def text_of_query(parsed: dict[str, Any]) -> str:
    """The text of a query that `parsed_query` read."""
    asked = cursor(_WHY).execute("select json_deserialize_sql(?::json)", [json.dumps(parsed)])
    return str(asked.fetchone()[0])


@functools.lru_cache(maxsize=256)
def _parsed(query: str) -> str:
    return str(cursor(_WHY).execute("select json_serialize_sql(?)", [query]).fetchone()[0])


def _columns(parts: list[Any], source: _Said, *, of_rows: bool) -> list[tuple[str, ...]]:
    names: dict[tuple[str, ...], None] = {}
    terms = 0
    if _levels(parts) > _MOST_LEVELS:
        raise source.wrong(" is nested too deeply")
    for each in nodes_of(parts, _ALSO_OF_ROWS if of_rows else ()):
        refused = _REFUSED.get(str(each.get("class")))
        terms += each.get("class") in ("COLUMN_REF", "CONSTANT")
        if refused:
            raise source.wrong(f" uses {refused}, which it may not")
        if each.get("class") == "COLUMN_REF":
            names[tuple(str(part) for part in each["column_names"])] = None
    for many, most, what in (
        (terms, MOST_TERMS, "columns and values"),
        (len(names), MOST_COLUMNS, "different columns"),
    ):
        if many > most and not of_rows:
            raise BadInput(f"condition {source.text!r:.80}… names {many:,} {what}; a condition names {most:,} at most")
    return list(names)


def _levels(node: object) -> int:
    """How deep objects and lists are nested."""
    deepest, stack = 0, [(node, 1)]
    while stack:
        each, level = stack.pop()
        deepest = max(deepest, level)
        if isinstance(each, (dict, list)):
            stack.extend((part, level + 1) for part in (each.values() if isinstance(each, dict) else each))
    return deepest


def nodes_of(node: object, closed: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Every object of a parsed query, in DuckDB's JSON form; nothing of those of the classes `closed`."""
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            if each.get("class") in closed:
                continue
            yield each
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)


def quoted(name: str) -> str:
    """A name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text quoted for SQL."""
    return "'" + text.replace("'", "''") + "'"


def named_tables(query: str, tables: Iterable[str]) -> list[str]:
    """The tables that a query may use: those whose name is a word in it."""
    words = {word.lower() for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", query)}
    return [table for table in tables if table.lower() in words]
