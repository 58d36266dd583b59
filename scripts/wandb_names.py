#!/usr/bin/env python3
"""Which names of wandb code bases of reinforcement learning use, and which of them `rollbook.wandb` has.

    python scripts/wandb_names.py                      docs/adapters/wandb_names.md from scripts/wandb_names.jsonl
    python scripts/wandb_names.py --count REPOSITORY…  first reads these Git repositories, a line each

A repository is a clone, bare or not, in a folder whose path ends in `<owner>/<name>` or `<owner>+<name>/…`. Every `.py`
file of its newest commit is read by syntax tree; nothing is run. A name counts where wandb is imported: `wandb.init`,
and what is used of the objects that it gives, `run.log` after `run = wandb.init()` and `Table.add_data` after `table =
wandb.Table()`. Keys of a program's own settings (`wandb.config.lr`) do not count.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".jsonl")
PAGE = ROOT / "docs" / "adapters" / "wandb_names.md"
LIKE_A_DICT = ("as_dict", "get", "items", "keys", "pop", "setdefault", "setdefaults", "update", "values")
"""Of `config` and `summary`, other attributes are the program's own keys."""
WITHOUT_EFFECT = (
    "Api.viewer",
    "api.api_key",
    "login",
    "mark_preempting",
    "run.get_url",
    "run.url",
    "setup",
    "teardown",
)


class Uses(ast.NodeVisitor):
    """The names of wandb in one file (`names`: how often each) and the keywords of its calls."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: Counter[str] = Counter()
        self.keywords: defaultdict[str, set[str]] = defaultdict(set)
        self.known: dict[str, str] = {}  # what stands in the file -> its name in wandb; "" is the module
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    if one.name == "wandb" or one.name.startswith("wandb."):
                        self.known[one.asname or "wandb"] = (
                            one.name.removeprefix("wandb").lstrip(".") if one.asname else ""
                        )
                        self.count(one.name.removeprefix("wandb").lstrip("."))
            elif isinstance(node, ast.ImportFrom) and not node.level and re.match(r"wandb(\.|$)", node.module or ""):
                inner = (node.module or "").removeprefix("wandb").lstrip(".")
                for one in node.names:
                    name = f"{inner}.{one.name}".strip(".")
                    self.known[one.asname or one.name] = name
                    self.count(name)
        if self.known:
            everywhere = dict(self.known)
            for part in tree.body:  # what a class or a function calls `run` is another thing in the next one
                self.known = dict(everywhere)
                self.remember(part)
                if not isinstance(part, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    everywhere = dict(self.known)
                self.visit(part)

    def count(self, name: str) -> None:
        """Count a name up to where the program's own keys begin."""
        parts = name.split(".")
        for at, part in enumerate(parts[:-1]):
            if part in ("config", "summary") and parts[at + 1] not in LIKE_A_DICT:
                parts = parts[: at + 1]
                break
        if parts != [""]:
            self.names[".".join(parts)] += 1

    def remember(self, part: ast.stmt) -> None:
        """`run = wandb.init()`, `with wandb.init() as run` and `self.run = wandb.run` name objects of wandb."""
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        for node in ast.walk(part):
            if isinstance(node, ast.Assign):
                pairs += [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.AnnAssign):
                pairs.append((node.target, node.value))
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                pairs += [(one.optional_vars, one.context_expr) for one in node.items if one.optional_vars]
            elif isinstance(node, (ast.For, ast.comprehension)):
                pairs.append((node.target, node.iter))
        for _ in range(2):  # objects of objects
            found: defaultdict[str, set[str | None]] = defaultdict(set)
            for target, value in pairs:
                stands = dotted(target)
                if stands and value is not None and not (isinstance(value, ast.Constant) and value.value is None):
                    found[stands].add(self.object_of(value))
            for stands, names in found.items():
                if len(names) == 1 and (name := names.pop()) is not None:  # else it is something else in other places
                    self.known.setdefault(stands, name)

    def object_of(self, value: ast.expr) -> str | None:
        """What an expression gives, by its name in wandb: `run` of `wandb.init(…)`, `Table` of `wandb.Table(…)`."""
        called = isinstance(value, ast.Call)
        name = self.name_of(value.func if isinstance(value, ast.Call) else value)
        if not called or name is None:
            return None if name in ("config", "summary", "run.config", "run.summary") else name
        last = name.rpartition(".")[2]
        return "run" if name == "init" else last if last[:1].isupper() else None

    def name_of(self, node: ast.expr) -> str | None:
        """The name in wandb of what an expression means, as far as it is known."""
        stands = dotted(node)
        rest: list[str] = []
        while stands:
            if stands in self.known:
                return ".".join(part for part in (self.known[stands], *rest) if part)
            stands, _, last = stands.rpartition(".")
            rest.insert(0, last)
        return None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Count the longest name, not its parts."""
        if dotted(node) in self.known:  # `self.run`, as the program calls it
            return
        if name := self.name_of(node):
            self.count(name)
        elif dotted(node) is None:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Note the keywords."""
        name = self.name_of(node.func)
        if name:
            self.keywords[name] |= {one.arg for one in node.keywords if one.arg}
            if isinstance(node.func, ast.Name):
                self.count(name)
        self.generic_visit(node)


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of an expression that is no more than that."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return None


def python_files(git: list[str]) -> Iterator[bytes]:
    """The Python files of the newest commit that speak of wandb."""
    listed = subprocess.check_output([*git, "ls-tree", "-rz", "HEAD"], text=True).split("\0")
    blobs = [line.split()[2] for line in listed if line.endswith(".py") and line.startswith("100")]
    batch = subprocess.run(
        [*git, "cat-file", "--batch"], input="\n".join(blobs).encode(), capture_output=True, check=True
    )
    answer = io.BytesIO(batch.stdout)
    while head := answer.readline():
        if b"missing" not in head:
            text = answer.read(int(head.split()[2]) + 1)
            if b"wandb" in text:
                yield text


def counted(repository: Path) -> dict[str, Any]:
    """A line of the list: what the newest commit of a repository uses."""
    git = ["git", "-C", str(repository)]
    commit, day = subprocess.check_output([*git, "log", "-1", "--format=%H %cs"], text=True).split()
    names: Counter[str] = Counter()
    keywords: defaultdict[str, set[str]] = defaultdict(set)
    for text in python_files(git):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                uses = Uses(ast.parse(text))
        except (SyntaxError, ValueError):
            continue  # Python 2, a template
        names += uses.names
        for call, words in uses.keywords.items():
            keywords[call] |= words
    owner_and_name = re.search(r"([\w.-]+)[+/]([\w.-]+?)(?:/repo)?(?:\.git)?/?$", str(repository))
    assert owner_and_name, f"{repository}: the path does not end in OWNER/NAME"
    return {
        "code_base": "/".join(owner_and_name.groups()),
        "commit": commit,
        "day": day,
        "names": dict(sorted(names.items())),
        "keywords": {call: sorted(words) for call, words in sorted(keywords.items()) if words},
    }


def listed() -> list[dict[str, Any]]:
    """The lines of the list."""
    return [json.loads(line) for line in LIST.read_text(encoding="utf-8").splitlines()]


def found(name: str, of: dict[str, Any]) -> Any:
    """What a name of the list is in rollbook's module; `of` has an object of each class that the names go into.

    Raises:
      AttributeError: it is not there.
    """
    first, _, rest = name.partition(".")
    here, parts = (of[first], rest) if rest and first in of else (of[""], name)
    for part in parts.split("."):
        here = getattr(here, part)
    return here


def missing(code_base: dict[str, Any], of: dict[str, Any]) -> list[str]:
    """The names of a code base, and the keywords of its calls, that rollbook's module does not take."""
    gone = []
    for name in code_base["names"]:
        words = code_base["keywords"].get(name, ())
        try:
            here = found(name, of)
        except AttributeError:
            gone.append(name)
            continue
        try:
            inspect.signature(here).bind_partial(**dict.fromkeys(words)) if words else None
        except TypeError as failure:
            gone.append(f"{name}: {failure}")
    return gone


def objects() -> dict[str, Any]:
    """An object of each class whose attributes the list names; "" is the module. A disabled run is open."""
    import rollbook.wandb as ours

    return {
        "": ours,
        "run": ours.init(mode="disabled"),
        "Api": ours.Api(),
        "Artifact": ours.Artifact("a", type="t"),
        "Table": ours.Table(columns=["a"], data=[[1]]),
    }


def page() -> str:
    """The page of the list."""
    lines, of = listed(), objects()
    users = [line for line in lines if line["names"]]
    gone = {line["code_base"]: missing(line, of) for line in users}
    whole = sum(not names for names in gone.values())
    counts = Counter(name for line in users for name in line["names"])
    rows: defaultdict[int, list[str]] = defaultdict(list)
    for name, count in counts.items():
        rows[count].append(f"`{name}`")
    others = ", ".join(line["code_base"] for line in lines if not line["names"])
    text = [
        "# Names of wandb that code bases use",
        "",
        f"{len(lines)} code bases of reinforcement learning were read by syntax tree; {len(users)} of them use wandb.",
        f"**{whole} of the {len(users)} find all their names and keywords in [`rollbook.wandb`](wandb.md).** Made by",
        "`python scripts/wandb_names.py` from `scripts/wandb_names.jsonl`, which has the names and keywords of each;",
        "`--count` reads repositories again.",
        "",
        "| code bases | names |",
        "|---|---|",
        *(f"| {count} | {' '.join(sorted(names))} |" for count, names in sorted(rows.items(), reverse=True)),
        "",
        "| code base | commit | of | names | not here |",
        "|---|---|---|---|---|",
        *(
            f"| {line['code_base']} | {line['commit'][:8]} | {line['day']} | {len(line['names'])} | "
            f"{', '.join(gone[line['code_base']])} |"
            for line in users
        ),
        "",
        "Taken without effect, since there is no server: " + ", ".join(f"`{name}`" for name in WITHOUT_EFFECT) + ".",
        "",
        f"No use of wandb by name: {others}. A logger of another package may use it for them.",
    ]
    return "\n".join(text) + "\n"


def main(arguments: list[str]) -> None:
    """Count what is named, then write the page."""
    if arguments[:1] == ["--count"]:
        lines = {line["code_base"].lower(): line for line in (listed() if LIST.exists() else ())}
        lines |= {line["code_base"].lower(): line for line in map(counted, map(Path, arguments[1:]))}
        text = "".join(json.dumps(line) + "\n" for _, line in sorted(lines.items()))
        LIST.write_text(text, encoding="utf-8", newline="\n")
    PAGE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
