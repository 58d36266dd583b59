"""run.json, the manifest of a run: its identity, its status, its attempts, and the effective part of each.

    about = read("runs/cartpole/ppo-k3v9x2ab")       # a RunJson: correct types, for any content of the file
    with ManifestLock(folder):
        about.status = "finished"
        write(folder, about)
    chain(about)                                     # {attempt: Cut or None}: the effective history

The only module that reads, writes and interprets run.json; its fields are those of `RunJson`. Standard library only,
light enough for the training process. docs/disk-format.md has the fields that readers need.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from functools import partial
from io import FileIO

from rollbook.errors import ForeignManifest, NewerFormat, NotARun
from rollbook.schema.clocks import may_be_clock
from rollbook.schema.json_object import EMPTY, LARGEST, READERS, WRONG, JsonObject, ignore
from rollbook.schema.run_files import MANIFEST_FILE, RunFile
from rollbook.system import files
from rollbook.system.files import lexists, make_folders
from rollbook.system.guard import ours, raising, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

    from rollbook.schema.problems import Problem

Attempts = str | Sequence[int]
"""Which attempts of a run to read: "effective", "all", or a list of attempt numbers."""

FORMAT = 2
"""The version of the run folder that this rollbook writes, and the highest that it reads."""

ORIGIN = ("config", "seed", "git", "packages", "command", "python", "executable", "platform", "environment")
"""Fields of an attempt rather than of the run: how it was started, with which code and packages."""

_LISTED = (
    "id", "project", "name", "status", "seed", "group", "job_type", "tags", "notes", "parent", "forked_from", "created",
    "ended", "host", "made_by", "config", "summary", "total", "reached", "attempts",
    "writers_died", "algo", "env", "folder", "from_path", "cause", "worked", "boards",
)  # fmt: skip
"""The fields of run.json in a listing. Each run has all of them, None if unknown."""

_ALGO = ("algo", "algorithm", "algo_name", "algorithm_name", "alg", "alg_name", "agent_name", "algo_id")
_ENV = (
    "env",
    "env_id",
    "env_name",
    "environment",
    "environment_name",
    "gym_id",
    "env_type",
    "task",
    "task_name",
    "env.id",
    "env.name",
    "env.env_name",
    "environment.name",
)
"""Where configurations name the algorithm and the environment, the commonest first."""

EDITABLE = ("name", "notes", "tags", "group")
"""Fields that people may edit at any time; `edited` lists the changed ones."""

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """Eight letters and digits, unique to a run (40 random bits)."""
    return "".join([_LETTERS[byte & 31] for byte in os.urandom(8)])


def id_from(*texts: str) -> str:
    """The id that every process computes from these texts, in the form of `new_id`."""
    import hashlib

    digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=8).digest()
    return "".join(_LETTERS[byte & 31] for byte in digest)


def path_of(folder: str | os.PathLike[str]) -> str:
    """The path of a run's manifest."""
    return os.path.join(folder, MANIFEST_FILE)


# -- its fields


def _positions(value: object) -> object:
    if not isinstance(value, dict):
        return WRONG
    found: dict[str, dict[int, int]] = {}
    with tolerating(TypeError, ValueError, OverflowError) as missed:
        for writer, lanes in value.items():
            if isinstance(lanes, dict):
                found[str(writer)] = {int(lane): int(seq) for lane, seq in lanes.items()}
    return WRONG if missed else found


READERS["dict[str, dict[int, int]]"] = (_positions, "numbers of lanes of writers")


class Cut(JsonObject):
    """The end of the effective part of a parent attempt.

    Attributes:
      moment: unix ns of the last row before it, for people: it decides nothing.
      writers: {writer: {lane: last effective seq}}; a lane that is not listed has no effective rows.
      time: None: of all other writers, every row counts. A cut of an older rollbook has the last effective unix ns.
      checkpoint: the id of the restored checkpoint; None for a cut without one.
    """

    moment: float | None = None
    writers: dict[str, dict[int, int]] = EMPTY
    time: float | None = None
    checkpoint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As in run.json and in the journal, where keys are texts."""
        lanes_of = {writer: {str(lane): seq for lane, seq in lanes.items()} for writer, lanes in self.writers.items()}
        return {**super().as_json(), "writers": lanes_of}

    def holds(self, writer: str, lane: int, seq: Any, time_ns: Any) -> Any:
        """Which rows of one lane are before the cut: for arrays a boolean array, or one boolean for all."""
        if writer in self.writers:
            return seq <= self.writers[writer].get(lane, 0)
        return True if self.time is None else time_ns <= self.time


def _cut(value: object) -> object:
    """A cut whose positions cannot be read is none; other fields decide nothing."""
    if not isinstance(value, dict):
        return WRONG
    wrong: list[str] = []
    cut = Cut.of(value, lambda _text, field: wrong.append(field))
    return WRONG if "writers" in wrong else cut


READERS["Cut"] = (_cut, "a cut")


class Attempt(JsonObject):
    """One attempt of a run, as listed in run.json.

    Attributes:
      n: its number, from 1; 0 in the entry that is returned if there is none.
      parent, cut: the attempt it continues, and the end of that one's effective part; None for the first.
      started, ended: unix seconds.
      last: unix ns of a clean end.
      writer: the id of its main writer. before: those of its process before, if that ended the run and went on.
      offsets: clock -> what is added to its readings.
      origin: how it was started, stored when a later attempt begins; see `manifest.origin`.
      failure: what ended it early: {"type", "message", "traceback"}, and "stderr" if known.
    """

    n: int = 0
    parent: int | None = None
    cut: Cut | None = None
    checkpoint: str | None = None
    started: float | None = None
    ended: float | None = None
    last: int | None = None
    status: str = ""
    writer: str = ""
    before: list[str] | None = None
    host: str | None = None
    offsets: dict[str, int] | None = None
    origin: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """As in run.json."""
        own = {**self.__dict__, **self.others}
        return own if self.cut is None else {**own, "cut": self.cut.as_json()}


def _list(value: object) -> object:
    return value if isinstance(value, list) else WRONG


READERS["list[Attempt]"] = (_list, "a list of objects")  # `RunJson.of` reads its entries


class RunJson(JsonObject):
    """run.json: each field has its type, whatever is in the file.

    Attributes:
      status: as last written: "running", "finished", "killed" or "crashed".
      attempts: its attempts.
      total: planned length of the run, by clock. reached: its clocks at its end.
      drops: the bill: cause -> how often something was refused or dropped.
      remarks: cause -> number of warnings without loss of data.
      reports: cause of a drop or remark -> what was wrong and what to do, as it was first reported.
      created, ended: unix seconds.
      x: the clock of charts.
      parent: the id of the run that started this one. forked_from: the checkpoint from which it started, as
        {"checkpoint", "path"}, or what was given for it.
      remote: the remote to which it is shipped, "" for none.
      revision: grows whenever run.json is written, so that an old copy can be recognised (`progress`).
      writers_died: set by keepers: writer -> number of its rows that were lost with a machine.
      edited: the fields of `EDITABLE` that a person has changed.
      results: {"attempt": n, "values": {…}}, the results of the run; see `results`.
      retention: of rollouts: `keep_bytes`, and once something was trimmed `bytes` (what is left) and how many
        rollouts lost their `tokens`, `text` and `answers`.
      part: {"of", "home", "since"} if this folder is one host's part of a run whose folder is elsewhere.
      imported: for a run that another tool wrote: its source files, and where its settings come from.
      algo, env, folder: the algorithm, the environment and the parts of the path of such a run; see
        `formats.importers._paths`.
      from_path: which of its fields only its path says, such as "algo" and "config.lr".
      hydra: for a job of Hydra: its name, overrides and folder.
      door: through what its program opened it, where that is not `rollbook.init`: "wandb", "lightning", ….
      boards: charts that its program, or its event files, put together (`add_custom_scalars`): name -> lists of keys.
      native: folders, seen from the run's, in which the program's own files of this training lie.
      command … problems: of the newest attempt; `origin` has those of the others.
    """

    format: int | None = None
    rollbook: str = ""
    id: str = ""
    project: str = ""
    name: str = ""
    nonce: str = ""
    status: str = "running"
    created: float | None = None
    ended: float | None = None
    seed: int | None = None
    group: str | None = None
    job_type: str | None = None
    notes: str = ""
    tags: list[str] = EMPTY
    parent: Any = None
    forked_from: Any = None
    config: dict[str, Any] = EMPTY
    summary: dict[str, Any] = EMPTY
    results: dict[str, Any] | None = None
    total: dict[str, int] = EMPTY
    reached: dict[str, int] | None = None
    clocks: list[str] = EMPTY
    x: str = ""
    drops: dict[str, int] = EMPTY
    remarks: dict[str, int] | None = None
    reports: dict[str, str] | None = None
    attempts: list[Attempt] = EMPTY
    remote: str = ""
    revision: int = 0
    host: str | None = None
    boot_id: str | None = None
    rendezvous: str | None = None
    edited: list[str] | None = None
    writers_died: dict[str, int] | None = None
    retention: dict[str, Any] | None = None
    part: dict[str, Any] | None = None
    door: str = ""
    native: list[str] | None = None
    boards: dict[str, Any] | None = None
    hydra: dict[str, Any] | None = None

    imported: dict[str, Any] | None = None
    made_by: str | None = None
    algo: str | None = None
    env: str | None = None
    folder: dict[str, Any] | None = None
    from_path: list[str] | None = None

    command: list[str] | None = None
    cwd: str | None = None
    python: str | None = None
    executable: str | None = None
    platform: str | None = None
    git: dict[str, Any] | None = None
    packages: dict[str, Any] | None = None
    environment: dict[str, Any] | None = None
    cpu: dict[str, Any] | None = None
    gpus: Any = None
    seeds: dict[str, Any] | None = None
    problems: dict[str, Any] | None = None

    @classmethod
    def of(cls, content: Mapping[str, object], report: Callable[[str, str], None] = ignore) -> Self:
        """The content of a run.json.

        Args:
          report: called with a sentence and the field for each value of a wrong type, which counts as missing.
        """
        made = super().of(content, report)
        impossible = [name for name in made.clocks if not may_be_clock(name)]
        if impossible:
            report(f"clocks has {impossible[0]!r}, which cannot be a clock", "clocks")
            made.clocks = [name for name in made.clocks if name not in impossible]
        entries: list[object] = [*made.attempts]
        made.attempts = []
        for entry in entries:
            if isinstance(entry, dict) and type(entry.get("n")) is int:
                read = Attempt.of(entry, partial(_of_attempt, report, entry["n"]))
                _end_after(read, read.started)
                made.attempts.append(read)
            else:
                report("attempts: an entry is not an object with a number n", "attempts")
        _end_after(made, made.created)
        return made

    def as_json(self) -> dict[str, Any]:
        """The content of run.json."""
        return {**self.__dict__, "attempts": list(map(Attempt.as_json, self.attempts)), **self.others}

    def __repr__(self) -> str:
        return (
            f"<run.json of {self.project}/{self.name} {self.id}, {self.status}: {', '.join(self.as_json())}"[:240] + ">"
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read: there is no run.json, or none that can be read."""
        return not self.id and self == RunJson()


def _of_attempt(report: Callable[[str, str], None], number: int, text: str, _field: str) -> None:
    report(f"attempt {number}: {text}", "attempt")


def _end_after(of: RunJson | Attempt, began: float | None) -> None:
    """An end before the beginning, by a clock that went back, becomes the beginning: nothing took less than 0 s."""
    if began is not None and of.ended is not None and of.ended < began:
        of.ended = began


# -- reading and writing


def read(folder: str | os.PathLike[str], *, to_continue: bool = False) -> RunJson:
    """The content of a run's run.json.

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
    about, problems = clean(content)
    if to_continue and any(problem.kind == "attempts" for problem in problems):
        repair = f"rollbook repair {files.pasted(folder)}"
        raise NotARun(f"{path} does not say which attempts the run had: {problems[0]}.", f"Try: {repair}")
    return about


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


def look(folder: str | os.PathLike[str]) -> RunJson:
    """The same without errors, for example for a keeper: the readable part of the file, `is_empty` if there is none."""
    return RunJson.of(files.read_json(path_of(folder)))


def damage(folder: str | os.PathLike[str]) -> list[Problem]:
    """Problems of single fields in a readable run.json, one sentence each."""
    return clean(files.read_json(path_of(folder)))[1]


def write(folder: str | os.PathLike[str], about: RunJson, *, durable: bool = False) -> None:
    """Replace run.json atomically; `durable` also survives a power loss. Its `revision` grows with each write.

    Raises:
      OSError: it cannot be written; the old file is unchanged.
    """
    # Milliseconds since 1970 by the host's clock, never fewer than before.
    revision = max(_revision(about) + 1, time.time_ns() // 1_000_000)
    files.write_json(path_of(folder), {**about.as_json(), "revision": revision}, durable=durable, indent=1)


def progress(about: RunJson) -> tuple[int, int, float]:
    """(attempt, revision, end time) of a run.json: of two versions of one run, the greater one is newer."""
    ended = about.ended or 0.0
    return newest(about).n, _revision(about), float(ended) if ended > 0 else 0.0


def _revision(about: RunJson) -> int:
    """0 from an older rollbook."""
    return about.revision if 0 < about.revision < LARGEST else 0


def edit(folder: str | os.PathLike[str], changed: Mapping[str, object]) -> None:
    """Change fields that people may edit at any time: those of `EDITABLE`.

    Safe while the run is written: its writer takes over the changes (`take_edits`) when it writes run.json again.

    Raises:
      NotARun, NewerFormat: it cannot be read. OSError: it cannot be written; the old file is unchanged.
    """
    with ManifestLock(os.fspath(folder)):
        about = read(folder)
        new = {name: value for name, value in changed.items() if name in EDITABLE and getattr(about, name) != value}
        if new:
            about.set(**new, edited=sorted({*(about.edited or ()), *new}))
            write(folder, about, durable=True)


def take_edits(about: RunJson, on_disk: RunJson) -> None:
    """Merge changes that other processes made to run.json since these fields were read. Changes `about`."""
    about.revision = max(_revision(about), _revision(on_disk))
    if on_disk.writers_died:  # set by keepers
        about.writers_died = on_disk.writers_died
    edited = [name for name in on_disk.edited or () if name in EDITABLE and on_disk.has(name)]
    if edited:
        about.set(**{name: getattr(on_disk, name) for name in edited}, edited=edited)
    if on_disk.results is not None:  # set by the keeper after an attempt has ended
        about.results = on_disk.results
    if on_disk.retention is not None:  # set by any process of the run
        about.retention = on_disk.retention


def keep_results(folder: str, attempt: int, values: Mapping[str, object]) -> None:
    """Write the results of a run (`book.results`) into run.json, if `attempt` is still the newest attempt.

    Raises:
      OSError: it cannot be written; the old file is unchanged.
    """
    with ManifestLock(folder):
        about = look(folder)
        entry = {"attempt": attempt, "values": dict(values)}
        if _may_be_rewritten(about) and about.results != entry and (newest(about).n or 1) == attempt:
            about.results = entry
            write(folder, about)


def keep_retention(folder: str | os.PathLike[str], changed: Mapping[str, object]) -> None:
    """Write how much of the rollouts is to be kept, or what was trimmed, into run.json; other entries stay.

    Raises:
      OSError: it cannot be written; the old file is unchanged.
    """
    with ManifestLock(os.fspath(folder)):
        about = look(folder)
        entry = {**(about.retention or {}), **changed}
        if _may_be_rewritten(about) and about.retention != entry:
            about.retention = entry
            write(folder, about, durable=True)


def _may_be_rewritten(about: RunJson) -> bool:
    return not about.is_empty and (about.format or 0) <= FORMAT


def results(about: RunJson) -> dict[str, Any]:
    """The results of a run, written when its newest attempt ended; {} before that."""
    entry = about.results or {}
    values = entry.get("values") if entry.get("attempt") == (newest(about).n or 1) else None
    return dict(values) if isinstance(values, dict) else {}


def listed(about: RunJson) -> dict[str, Any]:
    """The fields of a run in a listing, of its folder or in a store, with its results in the summary.

    Args:
      about: `RunJson()` gives each field as None, 0, "" or empty.
    """
    row: dict[str, Any] = {name: getattr(about, name, None) for name in _LISTED}
    row["attempts"] = len(about.attempts)
    row["cause"] = (failure(about) or {}).get("type")
    row["worked"] = worked(about) if about.attempts else None
    row["writers_died"] = sum((about.writers_died or {}).values())
    row["summary"] = {**results(about), **about.summary}
    config = about.config
    if config:
        row["algo"], row["env"] = about.algo or _word_of(config, _ALGO), about.env or _word_of(config, _ENV)
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
    """The fields of a run.json and their problems, one sentence each."""
    problems: list[Problem] = []

    def report(text: str, kind: str) -> None:
        from rollbook.schema.problems import Problem  # a sound run.json, and so a training, needs none

        problems.append(Problem(text, kind))

    return RunJson.of(content, report), problems


# -- attempts, and which part of each counts


def when_cut(cut: Cut | None) -> float | None:
    """About when a cut in run.json was made, in unix seconds, for people; None if it does not say."""
    moment = cut and (cut.moment or cut.time)
    return moment / 1e9 if moment and moment > 0 else None


class EffectiveRows:
    """Which rows are in the effective history: the newest attempt and its chain of parents, each up to its child's cut.

    Args:
      about: run.json.
      saved: returns (attempt, writer, lane, seq, unix ns) of the first row of each checkpoint, by id; called only if a
        row was logged at a checkpoint.
    Attributes:
      newest: the newest attempt's number, 0 if none is listed.
      chain: attempt -> its child's cut, for the attempts that count; None for the newest, which counts whole.
    """

    def __init__(self, about: RunJson, saved: Callable[[], Mapping[str, tuple[int, str, int, int, int]]]) -> None:
        self.chain, self._saved = chain(about), saved
        self.newest = max(self.chain, default=0)

    def has(self, attempt: int, writer: str, lane: int, seq: int, time_ns: int, at: str = "") -> bool:
        """Whether a row counts. `at`: the checkpoint it was logged at, as in `Row`."""
        own = self.checkpoint_counts(at) if at else None
        return bool(self.counts(attempt, writer, lane, seq, time_ns)) if own is None else own

    def counts(self, attempt: int, writer: str, lane: int, seq: Any, time_ns: Any) -> Any:
        """Whether rows of one lane count, by their positions; for arrays a boolean array, or one boolean for all."""
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


def newest(about: RunJson) -> Attempt:
    """The entry of the newest attempt; one with n = 0 if none is listed."""
    return max(about.attempts, key=lambda entry: entry.n, default=Attempt())


def main_writers(about: RunJson) -> frozenset[str]:
    """The ids of the writers that opened the run, of all attempts."""
    return frozenset(name for entry in about.attempts for name in (entry.writer, *(entry.before or ())) if name)


def entry_of(about: RunJson, number: int) -> Attempt:
    """The entry of one attempt; one with n = 0 if it is not listed."""
    return next((entry for entry in reversed(about.attempts) if entry.n == number), Attempt())


def failure(about: RunJson) -> dict[str, str] | None:
    """What ended the newest attempt early: type, message and traceback, all texts; None if nothing did.

    Also None if the process could not record it: SIGKILL, the out-of-memory killer, a power loss.
    """
    kept = newest(about).failure
    if not kept:
        return None
    return {name: str(kept.get(name) or "") for name in ("type", "message", "traceback", "stderr")}


def worked(about: RunJson, until: float | None = None) -> float:
    """Seconds in which attempts of the run were at work; the time between them does not count.

    Args:
      until: where the newest attempt is taken to end, if it has not ended.
    """
    total = 0.0
    for entry in about.attempts:
        ended = until if entry.ended is None and entry is about.attempts[-1] else entry.ended
        if entry.started is not None and ended is not None:
            total += max(0.0, ended - entry.started)
    return total


def chain(about: RunJson) -> dict[int, Cut | None]:
    """The attempts of the effective history: attempt -> the cut that its child makes in it.

    The newest counts completely (None), and each of its parents up to its child's cut. A cut names positions, so
    clocks that go back or hosts that disagree cannot mix attempts up.
    """
    entries = {entry.n: entry for entry in about.attempts}
    attempts: dict[int, Cut | None] = {}
    number, cut = max(entries, default=0), None
    while number in entries and number not in attempts:
        attempts[number] = cut
        cut, number = entries[number].cut or Cut(), entries[number].parent or 0
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
    summary_folder = os.path.join(folder, RunFile.KEEPER, RunFile.SUMMARY)
    make_folders(summary_folder, inside=folder)
    files.write_json(os.path.join(summary_folder, f"{writer}.json"), words)


def summary_of_others(folder: str | os.PathLike[str], since_ns: int) -> dict[str, list[Any]]:
    """The newest summary entries of further writers, per key, set after a given time."""
    summary_folder = os.path.join(folder, RunFile.KEEPER, RunFile.SUMMARY)
    newest: dict[str, list[Any]] = {}
    with tolerating(OSError) as missed:
        names = sorted(os.listdir(summary_folder))
    if missed:
        return newest
    for name in names:
        for key, word in files.read_json(os.path.join(summary_folder, name)).items() if name.endswith(".json") else ():
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
        fields = fields.get(key, _MISSING) if isinstance(fields, dict) else _MISSING
    return fields


def _shown(value: object) -> str:
    return "not given before" if value is _MISSING else f"{_words(value):.60}"


_MISSING = object()


def origin(about: RunJson, number: int) -> dict[str, Any]:
    """How an attempt was started: the fields of `ORIGIN` at that time; unknown ones are missing.

    run.json has those of the newest attempt. Older ones are stored as differences: the first attempt completely, each
    later one with its changes.
    """
    entries = _in_order(about)
    if not entries or number >= entries[-1].n:
        return _origin_of_newest(about)
    origin_so_far: dict[str, object] | None = None
    for entry in entries:
        own = entry.origin
        if own is not None:
            origin_so_far = (
                _patched(origin_so_far or {}, own)
                if "set" in own or "gone" in own
                else {k: own[k] for k in ORIGIN if k in own}
            )
        if entry.n == number:
            break
    return origin_so_far if origin_so_far is not None else _origin_of_newest(about)


def close_origin(about: RunJson) -> None:
    """Store the origin of the newest attempt in its entry, before another attempt begins. Changes `about`."""
    entry = newest(about)
    if not entry.n or entry.origin is not None:
        return
    now = json.loads(json.dumps(_origin_of_newest(about), default=repr))
    earlier = [former.n for former in about.attempts if former.n < entry.n and former.origin is not None]
    entry.origin = difference(origin(about, max(earlier)), now) if earlier else now


def attempts(about: RunJson) -> list[dict[str, Any]]:
    """The attempts of a run, oldest first, each with its origin (`config`, `seed`, `git`, `packages`)."""
    entries = []
    for entry in _in_order(about):
        begun_with = origin(about, entry.n)
        own = {name: value for name, value in entry.as_json().items() if name != "origin"}
        entries.append({**{name: begun_with.get(name) for name in ("config", "seed", "git", "packages")}, **own})
    return entries


def _in_order(about: RunJson) -> list[Attempt]:
    return sorted(about.attempts, key=lambda entry: entry.n)


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
        inner: object = after
        for key in path[:-1]:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or not path:
            continue
        if has_value:
            inner[path[-1]] = step[1]
        else:
            inner.pop(path[-1], None)
    return after


def _origin_of_newest(about: RunJson) -> dict[str, object]:
    return {name: getattr(about, name) for name in ORIGIN if about.has(name)}


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
