"""Which runs of other tools are below a folder: one answer for `ls`, `ui`, `open`, `compare` and `import`.

    walk = Walk(base, own)
    walk.runs                      [FoundRun, …]: each file that is understood belongs to exactly one of them
    walk.problems, walk.strange    what could not be read, and files that no importer understands

Files are recognised by their names; only tables and lines of JSON with unknown names are opened. Files of several
formats in one folder are one run: that of the format listed first, with the fields that only the others have. The files
of a folder do not belong to the folders below it, except folders that are named as parts of a training (`eval`, `tb`).
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import hashlib
import json
import os
import re
from collections import Counter
from pathlib import Path

from rollbook.errors import RollbookError, UnknownOption
from rollbook.formats.importers._companions import joined
from rollbook.formats.importers._found import FoundRun
from rollbook.formats.importers._names import as_name
from rollbook.formats.importers._paths import NEUTRAL
from rollbook.formats.importers._positions import read_paths
from rollbook.formats.importers._registry import looks_into, make, patterns
from rollbook.formats.importers._stages import stages_joined, written
from rollbook.schema import manifest
from rollbook.schema.run_files import MANIFEST_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from rollbook.formats.importers._recorded import Recorded
    from rollbook.protocols import ForeignRun, Importer

_ABOVE = 3
"""How many folders above the one that was opened may say algorithm and environment."""

_DEEPEST = 12
_MOST_ENTRIES = 300_000
"""In a larger tree, only this many files and folders are searched."""

_PASSED_OVER = frozenset(
    ("node_modules", "__pycache__", "site-packages", ".git", ".venv", "venv", "artifacts", ".rollbook")
)
"""The last one is rollbook's own, with boards, colours and the bin; see runs/folder_files.py."""
_OF_MANY = frozenset({".db", ".sqlite", ".sqlite3"})
"""Databases hold many runs: the other files in the folder of one need not belong to it."""


_OF_FILES = frozenset({"csv", "jsonl", "scores", "printed"})
"""Formats of single files, which may be in the opened folder next to others."""


class Walk:
    """The runs of other tools below a folder.

    Args:
      base: the folder, absolute.
      own: folders of runs of rollbook, which are passed over; others are recognised by their run.json.
      options: of importers; each gets those that it takes.
      recorded: which files runs of rollbook name as those of their own trainings: they are passed over, too.
    Attributes:
      runs: each with a name of its own.
      problems: sentences about what could not be read.
      strange: (path, why) of files that look like results and that no importer understands.
    Raises:
      UnknownOption: an option that no format there takes.
    """

    def __init__(
        self,
        base: Path,
        own: Container[str] = (),
        options: Mapping[str, object] | None = None,
        sources: dict[str, list[str]] | None = None,
        recorded: Recorded | None = None,
    ) -> None:
        self._base, self._own, self._recorded = base, own, recorded
        self._real = Path(os.path.realpath(base))
        self._judged: dict[str, bool] = {}
        self.problems: list[str] = []
        self.strange: list[tuple[Path, str]] = []
        if sources is None:
            sources = found(base, own)
        self._folders = sources
        self.runs = self._named(told_apart(self._joined(list(self._all(sources, dict(options or {}))))))
        for one in self.runs:
            one.stamp()
        self._read_paths()

    def _read_paths(self) -> None:
        """Read the paths of all runs, each compared with the others."""
        of_path = [one for one in self.runs if one.run.folder is not None]
        paths = [(*(one.parts or (self._base.name,)), *filter(None, [_called(one.run)])) for one in of_path]
        above = self._base.parts[-_ABOVE:]
        for one, path_facts in zip(of_path, read_paths(paths, above), strict=True):
            one.path_facts = path_facts

    def _all(self, sources: dict[str, list[str]], options: dict[str, object]) -> Iterator[FoundRun]:
        """The runs of all formats; a file that one of them reads is not read by another."""
        earlier: set[Path] = set()
        claimed: set[Path] = set()
        refused: dict[Path, str] = {}
        untaken = set(options) if sources else set()
        for format_name, folders in sources.items():
            importer, taken = _made(format_name, options)
            claimed = claimed | earlier
            earlier = set()
            untaken -= taken
            gathers = getattr(importer, "gathers", False)
            if getattr(importer, "is_last_resort", False):
                folders = _without_others(folders, claimed)
            for folder in [self._base] if gathers else [Path(folder) for folder in folders]:
                try:
                    runs = list(importer.runs(folder))
                except (RollbookError, OSError, ValueError) as err:
                    self.problems.append(f"{folder}: {err}")
                    continue
                refused.update(getattr(importer, "refused", {}))
                for run in runs:
                    files = [file for file in run.files if file not in claimed]
                    if self._recorded is not None and self._recorded.holds(files):
                        earlier.update(files)
                        continue
                    if (run.files and not files) or any(map(self._is_of_rollbook, {str(f.parent) for f in files})):
                        continue
                    if len(files) < len(run.files) and run.parts:
                        run.parts = {name: rows for name, rows in run.parts.items() if folder / name not in claimed}
                        run.files = files
                    if not any(file.suffix in _OF_MANY for file in files):
                        earlier.update(files)
                    if run.folder is None and not gathers and run.name == folder.name and folder.is_dir():
                        run.folder = folder
                    yield FoundRun(run, format_name, folder)
        if untaken:
            raise UnknownOption(
                f"{', '.join(sorted(untaken))}=: no format of the files below {self._base} takes this option. They are "
                f"of: {', '.join(sources)}"
            )
        claimed |= earlier
        self.strange = [(file, why) for file, why in sorted(refused.items()) if file not in claimed]

    def _is_of_rollbook(self, folder: str) -> bool:
        """Whether a folder belongs to a run of rollbook, which also writes event files."""
        if len(folder) <= len(str(self._base)):
            return False
        if folder not in self._judged:
            self._judged[folder] = (
                folder in self._own or manifest.holds_a_run(folder) or self._is_of_rollbook(os.path.dirname(folder))
            )
        return self._judged[folder]

    # -- which files are one training

    def _joined(self, every: list[FoundRun]) -> list[FoundRun]:
        """The runs, each with those that are parts of the same training."""
        whole: dict[Path, list[FoundRun]] = {}  # folder -> the runs that are all of it, in the order of formats
        for one in every:
            if one.run.folder is not None and not one.run.part:
                whole.setdefault(one.run.folder, []).append(one)
        owners = {_folder_of(one): one for one in every if one.run.folder is None and _folder_of(one) is not None}
        prefixes: dict[int, str] = {}
        parts = [one for one in every if one.run.folder is not None and one.run.part]
        earlier = stages_joined(whole, parts, prefixes, (self._base, self._real))
        for folder in list(whole):
            owner = next((owners[above] for above in (folder, *folder.parents) if above in owners), None)
            if owner is not None:
                whole[folder] = [owner, *whole[folder]]
        inner: set[int] = set()
        for members in whole.values():
            first, *rest = members
            prefix = prefixes.get(id(first), "")
            if rest or prefix:
                joined(first.run, prefix, [(one.run, one.format_name, prefixes.get(id(one), "")) for one in rest])
                inner.update(map(id, rest))
        for first, *rest in earlier:
            joined(first.run, prefixes[id(first)], [(one.run, one.format_name, prefixes[id(one)]) for one in rest])
            inner.update(map(id, rest))
        left = [one for one in every if id(one) not in inner]
        apart = {id(tensorboard): zoo for zoo, tensorboard in _of_zoo(left)}
        for one in left:
            if (zoo := apart.get(id(one))) is not None:
                joined(zoo.run, "", [(one.run, one.format_name, "")])
        return [one for one in left if id(one) not in apart]

    # -- names

    def _below(self, folder: Path) -> tuple[str, ...]:
        """The folders from the one that was opened down to a run's, as they are called there, links by their names."""
        for top in (self._base, self._real):
            with contextlib.suppress(ValueError):
                return folder.relative_to(top).parts
        for above in (folder, *folder.parents):
            if (link := self._linked.get(str(above))) is not None:
                return (*link.relative_to(self._base).parts, *folder.relative_to(above).parts)
        return ()

    @functools.cached_property
    def _linked(self) -> dict[str, Path]:
        """The folders below links that lead out of the tree: real path -> path in the tree."""
        folders = {folder for each in self._folders.values() for folder in each}
        return {os.path.realpath(folder): Path(folder) for folder in sorted(folders)}

    def _named(self, runs: list[FoundRun]) -> list[FoundRun]:
        """The runs with their names: the path below the folder that was opened, without what all of them share."""
        for one in runs:
            if one.run.folder is not None:
                one.parts = self._below(one.run.folder)
        of_path = [one for one in runs if one.run.folder is not None]
        shared = _shared([one.parts for one in of_path])
        for one in of_path:
            if not one.parts and not one.run.part and one.format_name in _OF_FILES and len(one.run.files) == 1:
                one.run.part = one.run.files[0].stem  # a table in the folder that was opened
            one.run.name = as_name("-".join(_shortened(one.parts[shared:], one.run.part)) or self._base.name or "run")
        for one in _same(runs):
            if one.run.folder is not None:
                one.run.name = as_name("-".join(filter(None, (*one.parts, one.run.part))) or one.run.name)
        for one in _same(runs):
            if one.run.folder is not None:
                one.run.name = as_name(f"{one.run.name}-{one.format_name}")
        for one in _same(runs):
            mark = hashlib.blake2b(one.identity.encode("utf-8", "surrogateescape"), digest_size=3).hexdigest()
            one.run.name = as_name(f"{one.run.name}-{mark}")
        return runs


def _without_others(folders: list[str], claimed: set[Path]) -> list[str]:
    """Those of some folders in, next to and below which no other format has a file: logs/ may be next to results/."""
    around: set[str] = set()
    for folder in {str(file.parent) for file in claimed}:
        while folder not in around and len(folder) > 1:
            around.add(folder)
            folder = os.path.dirname(folder)
    return [
        folder
        for folder in folders
        if not {os.path.realpath(folder), os.path.dirname(os.path.realpath(folder))} & around
    ]


def _called(run: ForeignRun) -> str:
    """What distinguishes a run from others in its folder; for a table that names algorithms itself, its file."""
    return run.files[0].stem if run.part and run.files and (run.algo or run.env) else run.part


_NUMBERED = re.compile(r"(.+)_(\d+)")
_SOON = 600.0
"""Seconds between the first step of an environment and the event file of the same training."""


def _of_zoo(runs: list[FoundRun]) -> list[tuple[FoundRun, FoundRun]]:
    """The trainings of RL Zoo whose event files are in a tree of their own: `logs/ppo/Ant-v4_1`, `tb/Ant-v4/PPO_1`.

    Names have to fit, and the time in the event file's name the start in the Monitor file.
    """
    events: dict[tuple[str, str, str], list[FoundRun]] = {}
    for one in runs:
        folder = one.run.folder
        if one.format_name == "tensorboard" and folder is not None and (named := _NUMBERED.fullmatch(folder.name)):
            events.setdefault((folder.parent.name, named[1].lower(), named[2]), []).append(one)
    pairs = []
    for one in runs if events else ():
        folder = one.run.folder
        if one.format_name != "sb3" or folder is None or not (named := _NUMBERED.fullmatch(folder.name)):
            continue
        fitting = events.get((named[1], folder.parent.name.lower(), named[2]), [])
        started = _started(one.run) if fitting else None
        same = [other for other in fitting if started is not None and abs(written(other.run) - started) < _SOON]
        if len(same) == 1:
            pairs.append((one, same[0]))
    return pairs


def _started(run: ForeignRun) -> float | None:
    """When the first Monitor file of a run says that it started."""
    file = next((file for file in run.files if file.name.endswith("monitor.csv")), None)
    try:
        with open(file or "", encoding="utf-8", errors="replace") as stream:
            return float(json.loads(stream.readline(10_000)[1:])["t_start"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _folder_of(one: FoundRun) -> Path | None:
    """The folder that belongs to a run which its tool named; None for databases and files that hold several."""
    files = one.run.files
    if not files or any(file.suffix in (*_OF_MANY, ".json", ".parquet", ".log", ".journal", ".zip") for file in files):
        return None
    folder = files[0].parent
    return folder.parent if folder.name in ("metrics", "data") else folder


def _shared(paths: list[tuple[str, ...]]) -> int:
    """How many folders all paths begin with, so that each keeps one."""
    if len(paths) < 2:
        return 0
    least = min(len(path) for path in paths) - 1
    return next((n for n in range(max(0, least)) if len({path[n] for path in paths}) > 1), max(0, least))


def _shortened(parts: tuple[str, ...], part: str) -> list[str]:
    """The parts of a name, without folders at the end that only describe their content."""
    kept = list(parts)
    while len(kept) > 1 and (kept[-1].lower() in NEUTRAL or (kept[-1] == "0" and kept[-2].lower() in NEUTRAL)):
        kept.pop()
    if len(kept) > 1 and kept[-1] == "version_0":  # Lightning's first version
        kept.pop()
    return [*kept, part] if part else kept


def told_apart(runs: list[FoundRun]) -> list[FoundRun]:
    """The runs, each with an identity of its own: a store and a copy of it hold runs of one name and id.

    The one highest in the tree keeps its identity, so that a copy further below does not become another run.
    """
    alike: dict[str, list[FoundRun]] = {}
    for one in runs:
        alike.setdefault(one.identity, []).append(one)
    for several in alike.values():
        placed = sorted((one for one in several if one.run.files), key=lambda one: _height(one.run.files[0]))
        for one in placed[1:]:
            one.identity += f"\0{os.path.abspath(one.run.files[0])}"
    return runs


def _height(file: Path) -> tuple[int, str]:
    return len(file.parts), str(file)


def _same(runs: list[FoundRun]) -> list[FoundRun]:
    """The runs whose project and name others have, too."""
    names = Counter((one.run.project, as_name(one.run.name).lower()) for one in runs)
    return [one for one in runs if names[one.run.project, as_name(one.run.name).lower()] > 1]


def _made(format_name: str, options: dict[str, object]) -> tuple[Importer, set[str]]:
    """The importer, and which of the options it takes."""
    if options:
        taken = {}
        for name, value in options.items():
            with contextlib.suppress(UnknownOption):
                make(format_name, **{name: value})
                taken[name] = value
        return make(format_name, **taken), set(taken)
    return make(format_name), set()


# -- by names alone


def found(root: str | os.PathLike[str], own: Container[str] = (), deepest: int = _DEEPEST) -> dict[str, list[str]]:
    """The formats that other tools left below a folder, each with the folders that hold its files, by names alone.

    Runs of rollbook are skipped. Nothing is opened, so this costs one listing per folder.

    Args:
      own: folders that are known to be runs of rollbook; others are recognised by their run.json.
      deepest: how many folders below the root are searched.
    """
    wanted, looks_for, by_name, by_ending = _wanted()
    sources: dict[str, list[str]] = {}
    for folder, names in _folders(os.path.abspath(os.fspath(root)), own, deepest):
        above = os.path.basename(os.path.dirname(folder)) + "/" + os.path.basename(folder)
        for name in names:
            named = by_name.get(name, ())
            looking = by_ending.get(name[name.rfind(".") :].lower(), ())
            match = looks_for.fullmatch(f"/{above}/{name}") if not named or named[0] in _OF_FILES else None
            for format_name in (*named, *looking) if match is None else (str(match.lastgroup), *named, *looking):
                folders = sources.setdefault(format_name, [])
                if not folders or folders[-1] != folder:
                    folders.append(folder)
    return {name: sources[name] for name in wanted if name in sources}


@functools.cache
def _wanted() -> tuple[list[str], re.Pattern[str], dict[str, list[str]], dict[str, list[str]]]:
    """The formats in their order, `_any_of` for their patterns, and the formats by names and by endings of files.

    Other packages may offer some: asked for once.
    """
    known = patterns()
    names: dict[str, list[str]] = {}
    endings: dict[str, list[str]] = {}
    for name, globs in known.items():
        for glob in globs:
            if not any(sign in glob for sign in "*?[/"):
                names.setdefault(glob, []).append(name)
        for ending in looks_into(name):
            endings.setdefault(ending, []).append(name)
    others = {
        name: tuple(glob for glob in globs if any(sign in glob for sign in "*?[/")) for name, globs in known.items()
    }
    return [*known], _any_of({name: globs for name, globs in others.items() if globs}), names, endings


def _any_of(wanted: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    """One expression for "/folder/folder/file" whose last group is the format of a file name."""
    groups = []
    for name, globs in wanted.items():
        paths = [f"*/{glob}" for glob in globs]
        inside = "|".join(fnmatch.translate(path).removesuffix(r"\Z").removesuffix(r"\z") for path in paths)
        groups.append(f"(?P<{name}>{inside})")
    return re.compile("|".join(groups) or r"(?!)")


def _leads_out(target: str, trees: list[str]) -> bool:
    """Whether a link leads to a folder that is in none of some trees and has none of them below it."""
    return not any(os.path.commonpath((target, tree)) in (target, tree) for tree in trees)


def _folders(root: str, own: Container[str], deepest: int) -> Iterator[tuple[str, list[str]]]:
    """Each folder at or below the root that is not a run of rollbook, with the names of its files."""
    waiting = [(root, 0)]
    seen = 0
    trees: list[str] = []  # the real paths of this one, and of those to which links have led
    while waiting:
        folder, depth = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        seen += len(entries)
        files = []
        below = []
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _PASSED_OVER and entry.path not in own:
                        below.append(entry.path)
                elif entry.is_symlink() and entry.is_dir():
                    trees = trees or [os.path.realpath(root)]
                    if _leads_out(target := os.path.realpath(entry.path), trees) and entry.path not in own:
                        trees.append(target)
                        below.append(entry.path)
                else:
                    files.append(entry.name)
            except OSError:
                continue
        if MANIFEST_FILE in files and manifest.holds_a_run(folder):
            continue
        yield folder, sorted(files)
        if depth < deepest and seen < _MOST_ENTRIES:
            waiting += [(path, depth + 1) for path in sorted(below, reverse=True)]
