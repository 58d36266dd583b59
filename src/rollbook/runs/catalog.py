"""Many runs: finding, filtering, grouping.

    runs = rollbook.open("runs")
    runs.one("cartpole/ppo", seed=3)                       # a Book
    runs.where("config.lr < 3e-4 and status == 'finished'")
    for algorithm, group in runs.group_by("config.algo").items(): ...

A listing stats one file per run; what run.json says is kept in memory and, for large folders, in the user's cache
folder (never in a run), by size and time of that file.
"""

from __future__ import annotations

import builtins
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from rollbook import manifest
from rollbook.errors import AmbiguousRun, RollbookError, RunNotFound
from rollbook.runs.conditions import Condition, value_at
from rollbook.storage.status import derived

if TYPE_CHECKING:
    from rollbook.book.book import Book

__all__ = ["RunSet", "open"]

_DEEPEST = 3
"""How many folders below the root a run may lie: <root>/<project>/<run>, and one to spare."""
_WORTH_A_CACHE = 200
_FIELDS = (
    "id",
    "project",
    "name",
    "status",
    "seed",
    "group",
    "job_type",
    "tags",
    "notes",
    "parent",
    "forked_from",
    "created",
    "ended",
    "host",
    "config",
    "summary",
    "total",
    "attempts",
)

_Stamp = tuple[int, int, int]
_known: dict[str, tuple[_Stamp, dict[str, Any]]] = {}


def open(path: str | os.PathLike[str] = "runs") -> RunSet:
    """All runs below a folder (or the one run that the folder is), as they are now.

    Args:
      path: a folder of projects, a project, or a run.
    Raises:
      RunNotFound: there is no such folder. A folder without runs gives an empty set.
      NotARun, NewerFormat: the folder is one run, and its run.json cannot be read. Among many runs such a one is left
        out and told of in `problems`.
    """
    root = os.path.abspath(os.fspath(path))
    if not os.path.isdir(root):
        raise RunNotFound(f"open({os.fspath(path)!r}): there is no such folder. Runs lie in 'runs', or where dir= said")
    if os.path.lexists(manifest.path_of(root)):
        manifest.read(root)  # somebody asked for this very run: if it cannot be read, that is the answer
    folders = sorted(_find(root, 0))
    problems: list[str] = []
    rows = _load(root, folders, problems)
    return RunSet([row for row in rows if row is not None], root, problems)


class RunSet(Sequence["Book"]):
    """Books, in the order of their paths. Immutable; a book is opened when it is asked for.

    Args:
      rows: one dict per run: path, id, project, name, status, seed, group, job_type, tags, notes, created, ended,
        attempts (how many), config, summary and more of run.json.
      root: the folder they were found in.
      problems: what could not be read below it.
    Attributes:
      root, problems: the same.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], root: str = "", problems: Sequence[str] = ()) -> None:
        self._rows, self.root, self.problems = list(rows), root, list(problems)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Book: ...

    @overload
    def __getitem__(self, place: slice) -> RunSet: ...

    def __getitem__(self, place: int | slice) -> Book | RunSet:
        if isinstance(place, slice):
            return RunSet(self._rows[place], self.root)
        return _book(self._rows[place])

    def __iter__(self) -> Iterator[Book]:
        return (_book(row) for row in self._rows)

    def __repr__(self) -> str:
        return f"<RunSet of {len(self._rows)} runs below {self.root}>"

    def table(self) -> list[dict[str, Any]]:
        """One dict per run; see the class. Cheap: nothing but run.json was read."""
        return [dict(row) for row in self._rows]

    def where(self, condition: str) -> RunSet:
        """The runs for which a condition holds.

        Args:
          condition: comparisons of fields (`status`, `seed`, `project`, `config.lr`, `summary.best`, `created` …) with
            numbers and quoted text, joined by and, or, not; `in`, and `tags has "a"`. A field that a run lacks is None;
            comparing it with < or > is false. Nothing is executed.
        Raises:
          BadInput: it cannot be read; says where.
        """
        wanted = Condition(condition)
        return RunSet([row for row in self._rows if wanted.holds(row)], self.root)

    def filter(self, wanted: Callable[[dict[str, Any]], bool]) -> RunSet:
        """The runs for whose row (a dict as in `table`) `wanted` is true."""
        return RunSet([row for row in self._rows if wanted(dict(row))], self.root)

    def group_by(self, field: str) -> dict[Any, RunSet]:
        """Run sets by the value of a field such as "config.algo", as they appear; None for runs that lack it."""
        groups: dict[Any, list[Mapping[str, Any]]] = {}
        for row in self._rows:
            value = value_at(row, field)
            groups.setdefault(value if value.__hash__ else repr(value), []).append(row)
        return {value: RunSet(rows, self.root) for value, rows in groups.items()}

    def one(self, name: str | None = None, **fields: Any) -> Book:
        """The only run that fits.

        Args:
          name: an id, a name, or project/name.
          fields: fields that must be equal: seed=3, status="finished", or a dict for several, config={"lr": 1e-3}.
        Raises:
          RunNotFound, AmbiguousRun: none fits, or more than one; both list candidates.
        """
        found = [row for row in self._rows if name is None or _is_named(row, name)]
        near = found or self._rows
        found = [row for row in found if all(_fits(row.get(field), value) for field, value in fields.items())]
        if len(found) == 1:
            return _book(found[0])
        asked = ", ".join([repr(name)] * (name is not None) + [f"{field}={value!r}" for field, value in fields.items()])
        listed = found or near
        shown = "; ".join(
            f"{row['project']}/{row['name']} {row['id']} (seed {row.get('seed')}, {row['status']})"
            for row in listed[:8]
        )
        more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
        if not found:
            raise RunNotFound(f"one({asked}): no run fits below {self.root}. Candidates: {shown or 'none'}{more}")
        raise AmbiguousRun(f"one({asked}): {len(found)} runs fit. Narrow it with a field or an id: {shown}{more}")


def _book(row: Mapping[str, Any]) -> Book:
    from rollbook.book.book import Book

    return Book(str(row["path"]))


def _is_named(row: Mapping[str, Any], name: str) -> bool:
    return name in (row["id"], row["name"], f"{row['project']}/{row['name']}", f"{row['name']}-{row['id']}")


def _fits(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_fits(found.get(name), value) for name, value in wanted.items())
    return bool(found == wanted)


def _find(folder: str, depth: int) -> Iterator[str]:
    """The run folders at or below `folder`."""
    if os.path.isfile(os.path.join(folder, "run.json")):
        yield folder
        return
    if depth >= _DEEPEST:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if not entry.name.startswith(".") and entry.is_dir():
                yield from _find(entry.path, depth + 1)
        except OSError:
            continue


def _load(root: str, folders: list[str], problems: list[str]) -> list[dict[str, Any] | None]:
    cache = _Cache(root) if len(folders) >= _WORTH_A_CACHE else None
    rows = [_row(folder, cache, problems) for folder in folders]
    if cache is not None:
        cache.save({folder: _known[folder] for folder in folders if folder in _known})
    return rows


def _row(folder: str, cache: _Cache | None, problems: list[str]) -> dict[str, Any] | None:
    try:
        stat = os.stat(os.path.join(folder, "run.json"))
    except OSError:
        return None
    stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    known = _known.get(folder) or (cache.get(folder) if cache is not None else None)
    if known is None or known[0] != stamp:
        try:
            known = (stamp, _fields(folder))
        except (RollbookError, OSError) as err:
            problems.append(str(err))
            return None
    _known[folder] = known
    row = {"path": folder, **known[1]}
    if row["status"] == "running":  # the only thing about a run that changes without run.json changing
        row["status"] = derived(folder, manifest.read(folder))
    return row


def _fields(folder: str) -> dict[str, Any]:
    about = manifest.read(folder)
    row = {name: about.get(name) for name in _FIELDS}
    row["attempts"] = len(about.get("attempts") or ())
    for name in ("config", "summary", "total"):
        row[name] = row[name] if isinstance(row[name], dict) else {}
    row["tags"] = row["tags"] if isinstance(row["tags"], list) else []
    return row


class _Cache:
    """What the run.json files below one root said last time, in the user's cache folder. Losing it costs only time."""

    def __init__(self, root: str) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        name = hashlib.blake2b(root.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
        self._path = os.path.join(home, "rollbook", f"catalog-{name}.json")
        self._known: dict[str, tuple[_Stamp, dict[str, Any]]] | None = None

    def get(self, folder: str) -> tuple[_Stamp, dict[str, Any]] | None:
        """What is known of a run."""
        if self._known is None:
            self._known = self._read()
        return self._known.get(folder)

    def save(self, known: dict[str, tuple[_Stamp, dict[str, Any]]]) -> None:
        """Keep what was read, if anything was."""
        if self._known is not None and self._known == known:
            return
        if self._known is None:  # everything was in memory already
            return
        import msgspec

        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            temporary = f"{self._path}.{os.getpid()}.tmp"
            with builtins.open(temporary, "wb") as file:
                file.write(msgspec.json.encode({folder: [stamp, row] for folder, (stamp, row) in known.items()}))
            os.replace(temporary, self._path)
        except (OSError, TypeError, ValueError):
            return

    def _read(self) -> dict[str, tuple[_Stamp, dict[str, Any]]]:
        import msgspec

        try:
            with builtins.open(self._path, "rb") as file:
                found = msgspec.json.decode(file.read(), type=dict[str, tuple[tuple[int, int, int], dict[str, Any]]])
        except (OSError, ValueError, msgspec.MsgspecError):
            return {}
        return {folder: known for folder, known in found.items() if set(_FIELDS) <= set(known[1])}
