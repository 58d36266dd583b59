"""run.json, the manifest of a run: its identity, its status, its attempts, and the effective part of each.

    fields = read("runs/cartpole/ppo-k3v9x2ab")      # correct types, for any content of the file
    with ManifestLock(folder):
        fields["status"] = "finished"
        write(folder, fields)
    chain(fields)                                    # {attempt: Cut or None}: the effective history

The only module that reads, writes and interprets run.json. Standard library only, light enough for the training
process. docs/disk-format.md has its fields.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from io import FileIO

from rollbook.errors import ForeignManifest, NewerFormat, NotARun
from rollbook.schema.clocks import may_be_clock
from rollbook.schema.run_files import MANIFEST_FILE, RunFile
from rollbook.system import files
from rollbook.system.files import lexists, make_folders
from rollbook.system.guard import ours, raising, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.schema.problems import Problem
    from rollbook.schema.shapes import Attempt, RunJson

Attempts = str | Sequence[int]
"""Which attempts of a run to read: "effective", "all", or a list of attempt numbers."""

FORMAT = 2
"""The version of the run folder that this rollbook writes, and the highest that it reads."""

ORIGIN = ("config", "seed", "git", "packages", "command", "python", "executable", "platform", "environment")
"""Fields of an attempt rather than of the run: how it was started, with which code and packages."""

_LISTED = (
    "id", "project", "name", "status", "seed", "group", "job_type", "tags", "notes", "parent", "forked_from", "created",
    "ended", "host", "made_by", "config", "summary", "total", "reached", "attempts",
    "writers_died", "algo", "env", "folder", "from_path", "cause", "worked",
)  # fmt: skip
"""The fields of run.json in a listing. Each run has all of them, None if unknown."""

_ALGO = ("algo", "algorithm", "algo_name", "algorithm_name", "alg", "alg_name", "agent_name", "algo_id")
_ENV = (
    "env", "env_id", "env_name", "environment", "environment_name", "gym_id", "env_type", "task", "task_name", "env.id",
    "env.name", "env.env_name", "environment.name",
)  # fmt: skip
"""Where configurations name the algorithm and the environment, the commonest first."""

EDITABLE = ("name", "notes", "tags", "group")
"""Fields that people may edit at any time; `edited` lists the changed ones."""

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_LARGEST = 2**63


def new_id() -> str:
    """Eight letters and digits, unique to a run (40 random bits)."""
    return "".join(_LETTERS[byte & 31] for byte in os.urandom(8))


def id_from(*texts: str) -> str:
    """The id that every process computes from these texts, in the form of `new_id`."""
    import hashlib

    digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=8).digest()
    return "".join(_LETTERS[byte & 31] for byte in digest)


def path_of(folder: str | os.PathLike[str]) -> str:
    """The path of a run's manifest."""
    return os.path.join(folder, MANIFEST_FILE)


# -- reading and writing


def read(folder: str | os.PathLike[str], *, to_continue: bool = False) -> RunJson:
    """The content of a run's run.json, with the correct type for every known field (see `clean`).

    Args:
      to_continue: the caller wants to continue the run: then a damaged list of attempts is an error too.
    Raises:
      NotARun: there is none, or it cannot be read.
      ForeignManifest: another tool wrote it. rollbook's own has an `id` and a `format`; one that lost them is
        recognised by the other files of a run folder.
      NewerFormat: a later rollbook wrote it.
    """
    path, shown = path_of(folder), os.fspath(folder)
    content: Any = None
    with raising(lambda err: _unreadable(folder, err), OSError, ValueError, RecursionError):
        raw = files.read_regular(path)
        content = json.loads(raw)
        if b"\\ud" in raw:  # half of a surrogate pair perhaps, which no table can hold
            content = _escaped(content)
    is_marked = isinstance(content, dict) and isinstance(content.get("id"), str) and type(content.get("format")) is int
    if not is_marked and not holds_a_run(folder):
        raise _foreign(path, shown, content)
    if not isinstance(content, dict) or not isinstance(content.get("id"), str):
        raise NotARun(f"{path} does not describe a run: it has no id.", f"Try: rollbook repair {files.pasted(folder)}")
    version = content.get("format")
    if type(version) is not int or version > FORMAT:
        raise NewerFormat(f"{shown} has format {version!r}; this rollbook reads up to {FORMAT}. Upgrade rollbook.")
    fields, problems = clean(content)
    if to_continue and any(problem.kind == "attempts" for problem in problems):
        repair = f"rollbook repair {files.pasted(folder)}"
        raise NotARun(f"{path} does not say which attempts the run had: {problems[0]}.", f"Try: {repair}")
    return fields


def _escaped(content: Any) -> Any:
    """JSON data whose texts can be stored: lone surrogates are escaped."""
    if isinstance(content, str):
        return content if content.isascii() else content.encode("utf-8", "backslashreplace").decode()
    if isinstance(content, dict):
        return {_escaped(name): _escaped(value) for name, value in content.items()}
    return [_escaped(value) for value in content] if isinstance(content, list) else content


def holds_a_run(folder: str | os.PathLike[str]) -> bool:
    """Whether rollbook wrote the other files of a folder: a damaged run.json is then rollbook's own."""
    data = os.path.join(folder, "data")
    return lexists(data) and any(lexists(os.path.join(data, *names)) for names in _TRACES)


def _unreadable(folder: str | os.PathLike[str], err: Exception) -> NotARun:
    path, shown = path_of(folder), os.fspath(folder)
    if isinstance(err, (FileNotFoundError, NotADirectoryError)):
        repair = f"if it was a run, try: rollbook repair {files.pasted(folder)}"
        advice = repair if holds_a_run(folder) else "no run lies here"
        return NotARun(
            f"{shown} has no run.json. If it is a folder of runs, open it with rollbook.open(…) or `rollbook ls`; "
            f"{advice}"
        )
    if isinstance(err, ValueError) and not holds_a_run(folder):
        return _foreign(path, shown, {})
    return NotARun(f"{path} cannot be read: {err}.", f"Try: rollbook repair {files.pasted(folder)}")


def _foreign(path: str, shown: str, content: object) -> ForeignManifest:
    fields = content if isinstance(content, dict) else {}
    named = next((fields[name] for name in _TOOLS if isinstance(fields.get(name), str)), "")
    tool = f" ({'Isaac Lab, ' if 'task' in fields else ''}{named:.40})" if named and named.isprintable() else ""
    return ForeignManifest(
        f"{path} was written by another tool{tool}, not by rollbook, and is left as it is. What that tool logged can "
        f"be brought into a run, if an importer reads it: rollbook import {files.pasted(shown)}"
    )


_TRACES = (("journal",), ("keeper", RunFile.PLAN), ("keeper", RunFile.FINISHED), (RunFile.WRITERS,), ("page.lock",))
"""Below data/: files of every run folder, some from its start, some until its end."""

_TOOLS = ("library", "tool", "framework", "generator")
"""Fields in which the run.json of other tools has their name; Isaac Lab's has `library` and `task`."""


def look(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The same without errors, for example for a keeper: the readable part of the file, {} if there is none."""
    content = files.read_json(path_of(folder))
    return dict(clean(content)[0]) if content else {}


def damage(folder: str | os.PathLike[str]) -> list[Problem]:
    """Problems of single fields in a readable run.json, one sentence each."""
    return clean(files.read_json(path_of(folder)))[1]


def write(folder: str | os.PathLike[str], fields: Mapping[str, object], *, durable: bool = False) -> None:
    """Replace run.json atomically; `durable` also survives a power loss. Its `revision` grows with each write.

    Raises:
      OSError: it cannot be written; the old file is unchanged.
    """
    revision = max(_revision(fields) + 1, time.time_ns() // 1_000_000)
    files.write_json(path_of(folder), {**fields, "revision": revision}, durable=durable, indent=1)


def progress(fields: Mapping[str, object]) -> tuple[int, int, float]:
    """(attempt, revision, end time) of a run.json: of two versions of one run, the greater one is newer."""
    listed = fields.get("attempts")
    numbers = [entry.get("n") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    ended = fields.get("ended")
    return (
        max((number for number in numbers if type(number) is int), default=0),
        _revision(fields),
        float(ended) if isinstance(ended, (int, float)) and 0 < ended < _LARGEST else 0.0,
    )


def _revision(fields: Mapping[str, object]) -> int:
    """Milliseconds since 1970 by the host's clock, never fewer than before; 0 from an older rollbook."""
    revision = fields.get("revision")
    return revision if type(revision) is int and 0 < revision < _LARGEST else 0


def edit(folder: str | os.PathLike[str], changed: Mapping[str, object]) -> None:
    """Change fields that people may edit at any time: those of `EDITABLE`.

    Safe while the run is written: its writer takes over the changes (`take_edits`) when it writes run.json again.

    Raises:
      NotARun, NewerFormat: it cannot be read. OSError: it cannot be written; the old file is unchanged.
    """
    with ManifestLock(os.fspath(folder)):
        fields = read(folder)
        new = {name: value for name, value in changed.items() if name in EDITABLE and fields.get(name) != value}
        if not new:
            return
        changing: Any = fields
        changing.update(new)
        fields["edited"] = sorted({*fields.get("edited", ()), *new})
        write(folder, fields, durable=True)


def take_edits(fields: RunJson, on_disk: Mapping[str, Any]) -> None:
    """Merge changes that other processes made to run.json since these fields were read. Changes `fields`."""
    fields["revision"] = max(_revision(fields), _revision(on_disk))
    if on_disk.get("writers_died"):  # set by keepers
        fields["writers_died"] = on_disk["writers_died"]
    edited = [name for name in on_disk.get("edited") or () if name in EDITABLE and name in on_disk]
    changing: Any = fields
    changing.update((name, on_disk[name]) for name in edited)
    if edited:
        fields["edited"] = edited
    if isinstance(on_disk.get("results"), dict):  # set by the keeper after an attempt has ended
        fields["results"] = on_disk["results"]
    if isinstance(on_disk.get("retention"), dict):  # set by any process of the run
        fields["retention"] = on_disk["retention"]


def keep_results(folder: str, attempt: int, values: Mapping[str, object]) -> None:
    """Write the results of a run (`book.results`) into run.json, if `attempt` is still the newest attempt.

    Raises:
      OSError: it cannot be written; the old file is unchanged.
    """
    with ManifestLock(folder):
        fields = look(folder)
        entry = {"attempt": attempt, "values": dict(values)}
        if not fields or int(fields.get("format") or 0) > FORMAT or fields.get("results") == entry:
            return
        if newest(fields).get("n", 1) == attempt:
            write(folder, {**fields, "results": entry})


def keep_retention(folder: str | os.PathLike[str], changed: Mapping[str, object]) -> None:
    """Write how much of the rollouts is to be kept, or what was trimmed, into run.json; other entries stay.

    Raises:
      OSError: it cannot be written; the old file is unchanged.
    """
    with ManifestLock(os.fspath(folder)):
        fields = look(folder)
        entry = {**fields.get("retention", {}), **changed}
        if fields and int(fields.get("format") or 0) <= FORMAT and fields.get("retention") != entry:
            write(folder, {**fields, "retention": entry}, durable=True)


def results(fields: Mapping[str, object]) -> dict[str, Any]:
    """The results of a run, written when its newest attempt ended; {} before that."""
    entry = fields.get("results")
    values = (
        entry.get("values") if isinstance(entry, dict) and entry.get("attempt") == newest(fields).get("n", 1) else None
    )
    return dict(values) if isinstance(values, dict) else {}


def listed(fields: Mapping[str, Any], *, checked: bool = False) -> dict[str, Any]:
    """The fields of a run in a listing, of its folder or in a store, with its results in the summary.

    Args:
      fields: the content of a run.json; {} gives each field as None, 0 or {}.
      checked: `read` has checked them; otherwise fields with a wrong type count as missing.
    """
    if not checked:
        fields, _ = clean(fields)
    row: dict[str, Any] = {name: fields.get(name) for name in _LISTED}
    row["attempts"] = len(fields.get("attempts") or ())
    row["cause"] = (failure(fields) or {}).get("type")
    row["worked"] = worked(fields) if row["attempts"] else None
    row["writers_died"] = sum((fields.get("writers_died") or {}).values())
    row["summary"] = {**results(fields), **(fields.get("summary") or {})}
    config = fields.get("config")
    if config:
        row["algo"], row["env"] = row["algo"] or _word_of(config, _ALGO), row["env"] or _word_of(config, _ENV)
    if row["algo"]:
        row["algo"] = row["algo"].lower()  # PPO and ppo are one
    return row


def _word_of(config: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first text under one of those names in a configuration."""
    for name in names:
        value = config.get(name)
        if value is None and "." in name:
            outer, _, inner = name.partition(".")
            nested = config.get(outer)
            value = nested.get(inner) if isinstance(nested, dict) else None
        if type(value) is str and value:
            return value
    return None


def clean(content: Mapping[str, object]) -> tuple[RunJson, list[Problem]]:
    """The fields of a run.json, each known one with the correct type, and their problems, one sentence each.

    A field with a wrong type counts as missing, so readers need no further check. Fields unknown to this version are
    passed on unchanged.
    """
    problems: list[Problem] = []

    def say(text: str, kind: str) -> None:
        from rollbook.schema.problems import Problem  # a sound run.json, and so a training, needs none

        problems.append(Problem(text, kind))

    fields: Any = dict(content)
    for name, (taken, kind) in _FIELDS.items():
        if name not in fields:
            continue
        value = taken(fields[name])
        if value is _WRONG:
            say(f"{name} is not {kind}", name)
            del fields[name]
        else:
            fields[name] = value
    impossible = [name for name in fields.get("clocks", ()) if not may_be_clock(name)]
    if impossible:
        say(f"clocks has {impossible[0]!r}, which cannot be a clock", "clocks")
        fields["clocks"] = [name for name in fields["clocks"] if name not in impossible]
    entries: list[Attempt] = []
    listed = content.get("attempts")
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, dict) or type(entry.get("n")) is not int:
            say("attempts: an entry is not an object with a number n", "attempts")
            continue
        entries.append(_entry(entry, say))
        _end_after(entries[-1], "started")
    if not isinstance(listed, list) and "attempts" in content:
        say("attempts is not a list of objects", "attempts")
    fields["attempts"] = entries
    _end_after(fields, "created")
    fields.setdefault("status", "running")
    for name in ("project", "name", "nonce", "notes"):
        fields.setdefault(name, "")
    for name in ("config", "summary", "total", "drops"):
        fields.setdefault(name, {})
    fields.setdefault("tags", [])
    fields.setdefault("clocks", [])
    return fields, problems


def _end_after(fields: Any, beginning: str) -> None:
    """An end before the beginning, by a clock that went back, becomes the beginning: nothing took less than 0 s."""
    began, ended = fields.get(beginning), fields.get("ended")
    if began is not None and ended is not None and ended < began:
        fields["ended"] = began


def _entry(entry: dict[str, object], say: Callable[[str, str], None]) -> Attempt:
    clean: Any = dict(entry)
    for name, (taken, kind) in _ENTRY_FIELDS.items():
        if name in clean and (value := taken(clean[name])) is not _WRONG:
            clean[name] = value
        elif name in clean:
            say(f"attempt {entry['n']}: {name} is not {kind}", "attempt")
            del clean[name]
    of_its_type: Attempt = clean
    return of_its_type


class _Wrong:
    """Marks a field with a wrong type."""


_WRONG = _Wrong()


def _text(value: object) -> object:
    return value if isinstance(value, str) else _WRONG


def _text_or_none(value: object) -> object:
    return value if value is None or isinstance(value, str) else _WRONG


def _word_or_none(value: object) -> object:
    """A group as text: some older runs have numbers."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) else _WRONG


def _integer_or_none(value: object) -> object:
    return value if value is None or type(value) is int else _WRONG


def _moment_or_none(value: Any) -> object:
    if value is None:
        return None
    return value if type(value) in (int, float) and abs(value) < _LARGEST else _WRONG  # NaN fails too


def _mapping(value: object) -> object:
    return value if isinstance(value, dict) else _WRONG


def _texts(value: object) -> object:
    return [str(text) for text in value] if isinstance(value, list) else _WRONG


def _counts(value: object) -> object:
    if not isinstance(value, dict) or any(type(number) is not int for number in value.values()):
        return _WRONG
    return value


def _cut(value: object) -> object:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("writers", {}), dict):
        return _WRONG
    with tolerating(TypeError, ValueError, OverflowError, AttributeError) as missed:
        Cut(value)
    if missed:
        return _WRONG
    return value


_FIELDS: dict[str, tuple[Callable[[object], object], str]] = {
    "format": (_integer_or_none, "an integer"),
    "id": (_text, "text"),
    "project": (_text, "text"),
    "name": (_text, "text"),
    "nonce": (_text, "text"),
    "rollbook": (_text, "text"),
    "status": (_text, "text"),
    "created": (_moment_or_none, "a time"),
    "ended": (_moment_or_none, "a time"),
    "seed": (_integer_or_none, "an integer"),
    "group": (_word_or_none, "text"),
    "job_type": (_word_or_none, "text"),
    "made_by": (_word_or_none, "text"),
    "algo": (_word_or_none, "text"),
    "env": (_word_or_none, "text"),
    "folder": (_mapping, "an object"),
    "from_path": (_texts, "a list"),
    "notes": (_text, "text"),
    "tags": (_texts, "a list"),
    "clocks": (_texts, "a list"),
    "edited": (_texts, "a list"),
    "total": (_counts, "an object of integers"),
    "reached": (_counts, "an object of integers"),
    "drops": (_counts, "an object of integers"),
    "remarks": (_counts, "an object of integers"),
    "writers_died": (_counts, "an object of integers"),
    "config": (_mapping, "an object"),
    "summary": (_mapping, "an object"),
    "retention": (_mapping, "an object"),
    "host": (_text_or_none, "text"),
    "boot_id": (_text_or_none, "text"),
    "x": (_text, "text"),
}

_ENTRY_FIELDS: dict[str, tuple[Callable[[object], object], str]] = {
    "parent": (_integer_or_none, "an integer"),
    "cut": (_cut, "a cut"),
    "checkpoint": (_text_or_none, "text"),
    "started": (_moment_or_none, "a time"),
    "ended": (_moment_or_none, "a time"),
    "last": (_integer_or_none, "an integer"),
    "status": (_text, "text"),
    "writer": (_text, "text"),
    "host": (_text_or_none, "text"),
    "offsets": (_counts, "an object of integers"),
    "origin": (_mapping, "an object"),
    "failure": (_mapping, "an object"),
}


# -- attempts, and which part of each counts


class Cut:
    """The end of the effective part of a parent attempt.

    Attributes:
      writers: {writer: {lane: last effective seq}}; a lane that is not listed has no effective rows.
      time: None: of all other writers, every row counts. A cut of an older rollbook has the last effective unix ns.
    """

    __slots__ = ("time", "writers")

    def __init__(self, cut: Mapping[str, object]) -> None:
        writers = cut.get("writers")
        self.writers: dict[str, dict[int, int]] = {}
        for writer, lanes in writers.items() if isinstance(writers, dict) else ():
            if isinstance(lanes, dict):
                self.writers[str(writer)] = {int(lane): int(seq) for lane, seq in lanes.items()}
        moment = cut.get("time")
        self.time = int(moment) if isinstance(moment, (int, float)) else None

    def holds(self, writer: str, lane: int, seq: Any, time_ns: Any) -> Any:
        """Which rows of one lane are before the cut: for arrays a boolean array, or one boolean for all."""
        if writer in self.writers:
            return seq <= self.writers[writer].get(lane, 0)
        return True if self.time is None else time_ns <= self.time


def when_cut(cut: object) -> float | None:
    """About when a cut in run.json was made, in unix seconds, for people; None if it does not say."""
    if not isinstance(cut, dict):
        return None
    moment = cut.get("moment", cut.get("time"))
    return moment / 1e9 if isinstance(moment, (int, float)) and 0 < moment < _LARGEST else None


class EffectiveRows:
    """Which rows are in the effective history: the newest attempt and its chain of parents, each up to its child's cut.

    Args:
      fields: run.json.
      saved: returns (attempt, writer, lane, seq, unix ns) of the first row of each checkpoint, by id; called only if a
        row was logged at a checkpoint.
    Attributes:
      newest: the newest attempt's number, 0 if none is listed.
      chain: attempt -> its child's cut, for the attempts that count; None for the newest, which counts whole.
    """

    def __init__(
        self, fields: Mapping[str, Any], saved: Callable[[], Mapping[str, tuple[int, str, int, int, int]]]
    ) -> None:
        self.chain, self._saved = chain(fields), saved
        self.newest = max(self.chain, default=0)

    def has(self, attempt: int, writer: str, lane: int, seq: int, time_ns: int, at: str = "") -> bool:
        """Whether a row counts. `at`: the checkpoint it was logged at, as in `Row`."""
        own = self.checkpoint_counts(at) if at else None
        return bool(self.counts(attempt, writer, lane, seq, time_ns)) if own is None else own

    def counts(self, attempt: int, writer: str, lane: int, seq: Any, time_ns: Any) -> Any:
        """Whether rows of one lane count by where they stand; for arrays a boolean array, or one boolean for all."""
        if attempt > self.newest:  # run.json does not have it yet
            return True
        if attempt not in self.chain:
            return False
        cut = self.chain[attempt]
        return True if cut is None else cut.holds(writer, lane, seq, time_ns)

    def checkpoint_counts(self, checkpoint: str) -> bool | None:
        """Whether a checkpoint is in the effective history; None if unknown."""
        row = self._saved().get(checkpoint)
        if row is None:
            return None
        return bool(self.counts(*row))


def newest(fields: Mapping[str, Any]) -> Attempt:
    """The entry of the newest attempt, {} if none is listed."""
    entries: list[Attempt] = fields.get("attempts") or []
    nothing: Attempt = {}
    return max(entries, key=lambda entry: int(entry["n"]), default=nothing)


def entry_of(fields: Mapping[str, Any], number: int) -> Attempt:
    """The entry of one attempt, {} if it is not listed."""
    entries: list[Attempt] = fields.get("attempts") or []
    nothing: Attempt = {}
    return next((entry for entry in reversed(entries) if entry["n"] == number), nothing)


def failure(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """What ended the newest attempt early: type, message and traceback, all texts; None if nothing did.

    Also None if the process could not record it: SIGKILL, the out-of-memory killer, a power loss.
    """
    entry = newest(fields)
    kept = entry.get("failure")
    if not kept:
        return None
    return {name: str(kept.get(name) or "") for name in ("type", "message", "traceback", "stderr")}


def worked(fields: Mapping[str, Any], until: float | None = None) -> float:
    """Seconds in which attempts of the run were at work; the time between them does not count.

    Args:
      until: where the newest attempt is taken to end, if it has not ended.
    """
    total, entries = 0.0, list(fields.get("attempts") or [])
    for entry in entries:
        ended = entry.get("ended")
        if ended is None and entry is entries[-1]:
            ended = until
        began = entry.get("started")
        if isinstance(began, (int, float)) and isinstance(ended, (int, float)):
            total += max(0.0, ended - began)
    return total


def chain(fields: Mapping[str, Any]) -> dict[int, Cut | None]:
    """The attempts of the effective history: attempt -> the cut that its child makes in it.

    The newest counts completely (None), and each of its parents up to its child's cut. A cut names positions, so
    clocks that go back or hosts that disagree cannot mix attempts up.
    """
    entries = {entry["n"]: entry for entry in fields.get("attempts") or ()}
    attempts: dict[int, Cut | None] = {}
    number, cut = max(entries, default=0), None
    while number in entries and number not in attempts:
        attempts[number] = cut
        entry = entries[number]
        cut = Cut(entry.get("cut") or {})
        parent = entry.get("parent")
        number = parent if type(parent) is int else 0
    return attempts


# -- what each attempt was started with


def follow_summary(summary: dict[str, object], mark: Mapping[str, object]) -> None:
    """Apply one summary mark to a summary: {"values": {…}, "gone": [key, …]}."""
    values, gone = mark.get("values"), mark.get("gone")
    if isinstance(values, dict):
        summary.update(values)
    for key in gone if isinstance(gone, list) else ():
        summary.pop(str(key), None)


def write_summary(folder: str | os.PathLike[str], writer: str, words: Mapping[str, list[Any]]) -> None:
    """Store summary entries of a further writer: {key: [unix ns, value]}, [unix ns] for a deleted key.

    Raises:
      OSError: it cannot be written.
    """
    place = os.path.join(folder, RunFile.KEEPER, RunFile.SUMMARY)
    make_folders(place, inside=folder)
    files.write_json(os.path.join(place, f"{writer}.json"), words)


def summary_of_others(folder: str | os.PathLike[str], since_ns: int) -> dict[str, list[Any]]:
    """The newest summary entries of further writers, per key, set after a given time."""
    place = os.path.join(folder, RunFile.KEEPER, RunFile.SUMMARY)
    newest: dict[str, list[Any]] = {}
    with tolerating(OSError) as missed:
        names = sorted(os.listdir(place))
    if missed:
        return newest
    for name in names:
        for key, word in files.read_json(os.path.join(place, name)).items() if name.endswith(".json") else ():
            if not isinstance(word, list) or len(word) not in (1, 2) or type(word[0]) is not int:
                continue  # not from this run
            if word[0] > max(since_ns, newest.get(key, [0])[0]):
                newest[key] = word
    return newest


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """The keys in which two origins differ, as phrases: "config.lr (1, now 5)"."""
    changed = difference(before, after)
    phrases = [f"{'.'.join(path)} ({_shown(_at(before, path))}, now {_shown(value)})" for path, value in changed["set"]]
    phrases += [f"{'.'.join(path)} ({_shown(_at(before, path))}, not given now)" for path in changed["gone"]]
    return phrases


def _at(fields: object, path: list[str]) -> object:
    for key in path:
        fields = fields.get(key, _WRONG) if isinstance(fields, dict) else _WRONG
    return fields


def _shown(value: object) -> str:
    return "not given before" if value is _WRONG else f"{_words(value):.60}"


def origin(fields: Mapping[str, Any], number: int) -> dict[str, Any]:
    """How an attempt was started: the fields of `ORIGIN` at that time; unknown ones are missing.

    run.json has those of the newest attempt. Older ones are stored as differences: the first attempt completely, each
    later one with its changes.
    """
    entries = sorted(fields.get("attempts") or (), key=lambda entry: int(entry["n"]))
    if not entries or number >= entries[-1]["n"]:
        return _origin_of_newest(fields)
    origin_so_far: dict[str, object] | None = None
    for entry in entries:
        own = entry.get("origin")
        if isinstance(own, dict):
            origin_so_far = (
                _patched(origin_so_far or {}, own)
                if "set" in own or "gone" in own
                else {k: own[k] for k in ORIGIN if k in own}
            )
        if entry["n"] == number:
            break
    return origin_so_far if origin_so_far is not None else _origin_of_newest(fields)


def close_origin(fields: RunJson) -> None:
    """Store the origin of the newest attempt in its entry, before another attempt begins. Changes `fields`."""
    entry = newest(fields)
    if not entry or "origin" in entry:
        return
    now = json.loads(json.dumps(_origin_of_newest(fields), default=repr))
    earlier = [former["n"] for former in fields["attempts"] if former["n"] < entry["n"] and "origin" in former]
    if earlier:
        entry["origin"] = difference(origin(fields, max(earlier)), now)
    else:
        entry["origin"] = now


def attempts(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The attempts of a run, oldest first, each with its origin (`config`, `seed`, `git`, `packages`)."""
    entries = []
    for entry in sorted(fields.get("attempts") or (), key=lambda entry: int(entry["n"])):
        begun_with = origin(fields, entry["n"])
        own = {name: value for name, value in entry.items() if name != "origin"}
        entries.append({**{name: begun_with.get(name) for name in ("config", "seed", "git", "packages")}, **own})
    return entries


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, Any]:
    """The changes from `before` to `after`: {"set": [[path, value], …], "gone": [path, …]}; paths are lists of keys."""
    changed: dict[str, object] = {"set": [], "gone": []}
    _compare(before, after, [], changed)
    return changed


def _compare(before: Mapping[str, Any], after: Mapping[str, object], path: list[str], changed: dict[str, Any]) -> None:
    for key in before:
        if key not in after:
            changed["gone"].append([*path, key])
    for key, value in after.items():
        if key not in before:
            changed["set"].append([[*path, key], value])
        elif isinstance(value, dict) and isinstance(before[key], dict) and value and before[key]:
            _compare(before[key], value, [*path, key], changed)
        elif _words(value) != _words(before[key]):
            changed["set"].append([[*path, key], value])


def _words(value: object) -> str:
    """A value as JSON text: NaN then equals itself, and a tuple equals its list."""
    return json.dumps(value, default=repr, sort_keys=True)


def _patched(before: Mapping[str, object], changed: Mapping[str, Any]) -> dict[str, object]:
    after: dict[str, object] = json.loads(json.dumps(before, default=repr))
    for step in [*(changed.get("gone") or ()), *(changed.get("set") or ())]:
        has_value = len(step) == 2 and isinstance(step[0], list)
        path = step[0] if has_value else step
        place: object = after
        for key in path[:-1]:
            place = place.setdefault(key, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or not path:
            continue
        if has_value:
            place[path[-1]] = step[1]
        else:
            place.pop(path[-1], None)
    return after


def _origin_of_newest(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: fields[name] for name in ORIGIN if name in fields}


# -- the lock


class ManifestLock:
    """Prevents others from replacing a run's run.json between our read and our write.

        with ManifestLock(run_folder):
            ...                         # read run.json, check, replace it

    Held for milliseconds by every process that changes run.json: its writer, a process that continues the run, the
    keeper of a crashed run, `rollbook repair`. Never raises and never waits for long: if no lock is available (a file
    system without locks, a read-only folder, a holder that hangs), work continues without it. Its file goes with it.

    Args:
      run_folder: the run's folder; None locks nothing.
      seconds: how long to wait for another holder.
    Attributes:
      is_held: no other process that looks has the lock.
    """

    _file: FileIO | None = None
    is_held = False

    def __init__(self, run_folder: str | None, seconds: float = 2.0) -> None:
        self._path = None if run_folder is None else os.path.join(run_folder, "data", "page.lock")
        self._seconds = seconds

    def __enter__(self) -> ManifestLock:
        if self._path is None:
            return self
        until = time.monotonic() + self._seconds
        while True:
            try:  # one call: an outside exception meanwhile leaves no descriptor that holds the lock
                self._file = FileIO(self._path, "r+", opener=_opened)
            except ours(OSError):
                return self
            fd = self._file.fileno()
            while (locked := files.try_lock(fd)) is False and time.monotonic() < until:
                time.sleep(_PAUSE)
            self.is_held = locked is True and files.is_same_file(fd, self._path)
            if self.is_held or not locked or time.monotonic() >= until:
                return self
            self._file.close()  # its last holder removed it meanwhile

    def __exit__(self, *_exc: object) -> None:
        if self._file is not None and not self._file.closed:
            if self.is_held and self._path is not None:
                files.remove(self._path)
                self.is_held = False
            files.unlock(self._file.fileno())
            self._file.close()

    def __del__(self) -> None:  # in a forked child, too, where the lock is another process's
        if self._file is not None:
            self._file.close()


def _opened(path: str, _flags: int) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)


_PAUSE = 0.005
