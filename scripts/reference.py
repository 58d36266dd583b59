"""The generated parts of the pages: `python scripts/reference.py` writes them, and a test fails while they are old.

A part stands between `<!-- made by python scripts/reference.py: NAME -->` and `<!-- end -->`. Its text comes from
signatures and first lines of docstrings, or from a table of the program. Words are changed there, not on the page.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from click import Context

import rollbook
from rollbook.cli.app import app
from rollbook.schema import aliases as keys
from rollbook.schema.clocks import STANDARD
from rollbook.schema.tables import TABLES
from rollbook.stats import DECISIONS

DOCS = Path(__file__).resolve().parents[1] / "docs"
PART = re.compile(r"(<!-- made by python scripts/reference\.py: ([\w.]+) -->\n).*?(<!-- end -->)", re.DOTALL)
METHODS = {"siblings": "siblings(n, seeds=…)"}
"""Calls that are shown in another way than by their signature: this one passes everything else on to `init`."""


def written(page: str) -> str:
    """A page with its generated parts as the program is now."""
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n{part[3]}", page)


def call_of(name: str, function: Any) -> str:
    """How a function is called: its parameters in order, the standard clocks as `**clocks`."""
    parts: list[str] = []
    signature = inspect.signature(function).parameters
    takes_clocks = any(clock in signature for clock in STANDARD)
    for parameter in [p for p in signature.values() if p.name not in ("self", *STANDARD)]:
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append("**clocks" if takes_clocks else f"**{parameter.name}")
        elif parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}")
        else:
            if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
                parts.append("*")
            parts.append(parameter.name)
    return f"{name}({', '.join(parts)})"


def first_words(thing: Any) -> str:
    """The first paragraph of a docstring, on one line that a table can hold."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(re.split(r"\n(?:Args|Attributes|Returns|Raises):", text)[0].split()).replace("|", "\\|")


def public(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class of ours, its bases' included, by name."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("rollbook")]
    internal = frozenset().union(*(getattr(sys.modules[base.__module__], "_INTERNAL", ()) for base in ours))
    members: dict[str, Any] = {}
    for base in reversed(ours):
        members |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    return {name: members[name] for name in sorted(members) if name not in internal}


def table(rows: list[tuple[str, str]]) -> str:
    """A Markdown table of names and what each does."""
    return "| name | what it does |\n|---|---|\n" + "".join(f"| {name} | {what} |\n" for name, what in rows)


def members_of(cls: type, without: type | None = None) -> str:
    """The public members of a class, less those of `without`."""
    hidden = public(without) if without else {}
    rows = []
    for name, member in public(cls).items():
        if name not in hidden and inspect.getdoc(member):
            is_call = inspect.isfunction(member)
            rows.append((f"`{call_of(name, member) if is_call else name}`", first_words(member)))
    return table(rows)


def module_names() -> str:
    """What the module itself offers."""
    verbs, rows = [], []
    for name in [*rollbook.__all__, "open"]:
        thing = getattr(rollbook, name, None)
        if name in public(rollbook.Scope) or name in public(rollbook.Run):
            verbs.append(f"`{name}`")
        elif inspect.isfunction(thing):
            rows.append((f"`{METHODS.get(name, call_of(name, thing))}`", first_words(thing)))
        elif inspect.isclass(thing):
            rows.append((f"`{name}`", first_words(thing)))
    rows.append(
        (
            ", ".join(verbs),
            "The methods of the current run: the innermost `with` run of this context, else the "
            "one opened last. Without a run they count and warn.",
        )
    )
    return table([*rows, ("`__version__`", "The version of rollbook.")])


def canonical_names() -> str:
    """The canonical names, with their units and clocks."""
    rows = [f"| `{entry.name}` | {entry.definition} | {entry.unit} | {entry.clock} |\n" for entry in keys.TABLE]
    return "| name | what it is | unit | clock |\n|---|---|---|---|\n" + "".join(rows)


def names_in_tools() -> str:
    """What each tool calls the canonical names of episodes and counters."""
    shown = ("train/return", "train/length", "test/return", "test/length", "time/env_steps")
    tools: dict[str, dict[str, list[str]]] = {}
    for entry in keys.TABLE:
        for native in entry.natives if entry.name in shown else ():
            tools.setdefault(native.framework, {}).setdefault(entry.name, []).append(f"`{native.key}`")
    rows = [[tool, *(", ".join(names.get(name, [])) for name in shown)] for tool, names in sorted(tools.items())]
    head = ["tool", *(f"`{name}`" for name in shown)]
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def decisions() -> str:
    """Which interval is chosen when."""
    rows = "".join(
        f"| {row.statistic} | {row.tasks} | {row.seeds} | {row.method} | "
        f"{'-' if row.claim is None else f'{100 * row.claim:.10g}'} |\n"
        for row in DECISIONS
    )
    return "| statistic | tasks from | seeds from | method | claims at worst, % |\n|---|---|---|---|---|\n" + rows


def help_of(name: str) -> str:
    """What the help of a command says, without its examples."""
    command = app.get_command(Context(app), name)
    assert command is not None
    text = inspect.cleandoc(command.help or "").partition("\b")[0]
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]
    return "\n\n".join(paragraphs) + "\n"


def columns_of_tables() -> str:
    """The fixed columns of each table, with the kinds of those that are no text."""
    rows = ""
    for name, known in TABLES.items():
        cells = [column if kind == "text" else f"{column} ({kind})" for column, kind in known.columns.items()]
        rows += f"| {name} | {', '.join(cells)} |\n" if cells else ""
    return (
        "| table | columns besides time, clocks, scope and identity; text where nothing else is said |\n|---|---|\n"
        + rows
    )


PARTS = {
    "module": module_names,
    "Scope": lambda: members_of(rollbook.Scope),
    "Run": lambda: members_of(rollbook.Run, without=rollbook.Scope),
    "Book": lambda: members_of(rollbook.Book),
    "RunSet": lambda: members_of(rollbook.RunSet),
    "names": canonical_names,
    "names.tools": names_in_tools,
    "decisions": decisions,
    "tables": columns_of_tables,
    **{f"help.{name}": partial(help_of, name) for name in app.list_commands(Context(app))},
}


def main() -> None:
    """Write every page."""
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text("utf-8")
        new = written(page)
        if new != page:
            path.write_text(new, "utf-8")
            print(f"{path.relative_to(DOCS.parent)}: written")


if __name__ == "__main__":
    main()
