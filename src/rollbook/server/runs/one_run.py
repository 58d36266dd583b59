"""One run: all facts about it, and changes of its tags, notes, name and group."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from rollbook.book import Book
from rollbook.book.questions import remarks_of
from rollbook.errors import BadInput, RollbookError
from rollbook.runs.fields import flat
from rollbook.schema import manifest
from rollbook.schema.endings import how_to_resume, resume_line, why_ended
from rollbook.schema.manifest import RunJson
from rollbook.schema.problems import Problem
from rollbook.schema.source import is_view
from rollbook.server.runs.table import TableRow, table_row
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import axis_of, contents, own_words
from rollbook.server.shared.shapes import Answer, Ask, Cell, Refused, RunAsk, plain
from rollbook.server.shared.state import ServerContext


class NewestAsk(Ask, kw_only=True):
    """A table of one run, such as "rollouts"; "": any run."""

    table: str = ""


class NewestAnswer(Answer, kw_only=True):
    """A run to open first.

    Attributes:
      run: its id; "" where there are no runs.
      has: whether it has rows in the table. Otherwise it is the newest of all.
      looked, of: how many runs were checked, newest first, and how many there are.
    """

    run: str
    has: bool
    looked: int
    of: int


class Change(msgspec.Struct, kw_only=True):
    """A value of the configuration that an attempt changed."""

    path: str
    before: Cell
    after: Cell


class Attempt(msgspec.Struct, kw_only=True):
    """One attempt of a run.

    Attributes:
      status: of one that never ended although another began after it, "crashed"; of the last, that of the run.
      effective: whether (a part of) it counts.
      config_changes: compared with the attempt that it continues, or, if it started over, with the one before it.
    """

    n: int
    parent: int | None
    started: float | None
    ended: float | None
    status: str
    host: str
    checkpoint: str | None
    effective: bool
    config_changes: list[Change]
    git: dict[str, Any] | None


class Failure(msgspec.Struct, kw_only=True):
    """What ended a run before its time.

    Attributes:
      type: of the exception, or the name of the signal.
      stderr: the last lines of the error output, where they are known.
    """

    type: str
    message: str
    traceback: str
    stderr: str


class OtherRun(msgspec.Struct, kw_only=True):
    """Another run shown here: its id in the API and its name."""

    run: str
    name: str
    seed: int | None


class RunAnswer(Answer, kw_only=True):
    """Everything that is known about a run, except its rows.

    Attributes:
      own: what distinguishes it from others of its name; see `TableRow`.
      made_by: for a run of another tool: the tool, and the folder of its files; "" for a run of rollbook.
      parent: the id of the run that started it; forked_from: the checkpoint from which it started.
      parent_run, forked_run: the runs of these two; None where they are not shown here.
      why: the reason for its status, in a line. failure: what ended it early, in full; None if that is not known.
      tables: rows of each table that has some, as `rollbook show` counts them.
      problems: what cannot be read, and why. remarks: what was lost or left out, and the problems, in words.
      worked: seconds in which its attempts were at work.
      resume_line: Python that continues it, or the command where its program does not call `rollbook.init`.
      resume_command: the command that starts the unchanged program again as its next attempt; "" if none is known.
    """

    run: str
    id: str
    path: str
    project: str
    name: str
    own: str
    seed: int | None
    group: str | None
    job_type: str | None
    tags: list[str]
    notes: str
    archived: bool
    status: str
    why: str | None
    failure: Failure | None
    created: float | None
    ended: float | None
    updated: float | None
    host: str
    made_by: str
    command: list[str]
    python: str
    rollbook: str
    git: dict[str, Any]
    packages: dict[str, Any]
    total: dict[str, Any]
    clocks: list[str]
    x: str
    parent: str | None
    forked_from: str | None
    parent_run: OtherRun | None
    forked_run: OtherRun | None
    config: dict[str, Any]
    summary: dict[str, Any]
    drops: dict[str, int]
    attempts: list[Attempt]
    tables: dict[str, int]
    problems: list[str]
    remarks: list[str]
    resume_line: str
    resume_command: str
    worked: float


def one_run(context: ServerContext, ask: RunAsk) -> RunAnswer:
    """The whole page of a run."""
    # Read what needs the open book, then give it back: other requests may wait for it.
    row = context.row(ask.run)
    with context.book(row) as book:
        info, attempts = book.info, attempts_of(book)
        problems, status, clocks = book.problems(deep=False), book.status, list(book.clocks)
    facts = context.facts.now(row)
    # `_text`, `_object` and `plain` make values of any kind fit for JSON: what a program wrote may be no text at all.
    return RunAnswer(
        run=row.key,
        id=plain(info.id),
        path=plain(row.folder),
        project=_text(info.project),
        name=_text(info.name),
        own=own_words(context, row),
        seed=_seed(info.seed),
        group=_text(info.group) or None,
        job_type=_text(info.job_type) or None,
        tags=[plain(tag) for tag in info.tags],
        notes=_text(info.notes),
        archived=row.is_archived,
        status=status,
        why=_why(info, status),
        failure=_failure(info),
        created=_moment(info.created),
        ended=_moment(info.ended),
        updated=facts.heard,
        host=_text(info.host),
        made_by=_made_by(info),
        command=[plain(word) for word in info.command or ()],
        python=_text(info.python),
        rollbook=_text(info.rollbook),
        git=_object(info.git),
        packages=_object(info.packages),
        total=_object(info.total),
        clocks=[plain(clock) for clock in clocks],
        x=axis_of(row, facts),
        parent=_text(info.parent) or None,
        forked_from=_origin(info.forked_from),
        parent_run=_other(context, _text(info.parent)),
        forked_run=_other(context, _where(info.forked_from)),
        config=_object(info.config),
        summary=_object(
            context.remembered("summary", row, lambda book: book.summary, lambda kept: 200 * len(kept) + 200)
        ),
        drops={plain(k): v for k, v in info.drops.items()},
        attempts=attempts,
        tables=context.remembered("table_rows", row, Book.table_rows, lambda counts: 100 * len(counts) + 100),
        problems=[plain(str(problem)) for problem in problems[:100]],
        remarks=[plain(line) for line in _remarks(info, problems)],
        resume_line=str(plain(resume_line(info))),
        resume_command=str(
            plain(next((line for line in how_to_resume(info) if "rollbook.init" not in line), ""), None)
        ),
        worked=manifest.worked(info, facts.heard if status == "running" else _moment(info.ended)),
    )


def _origin(origin: object) -> str | None:
    """The checkpoint of another run from which this one started, in words."""
    if not isinstance(origin, dict):
        return _text(origin) or None
    where = origin.get("path")
    return _text(f"{origin.get('checkpoint')}{f' ({where})' if where else ''}")


def _seed(seed: object) -> int | None:
    """A seed that a browser can count to."""
    return seed if type(seed) is int and abs(seed) < 2**53 else None


def _where(origin: object) -> str:
    return _text(origin.get("path")) if isinstance(origin, dict) else _text(origin)


def _other(context: ServerContext, where: str) -> OtherRun | None:
    """The run with this id or, wherever it was moved to, the one in whose folder this checkpoint was saved."""
    parts = PurePath(where.replace("\\", "/")).parts
    for row in context.catalogue.snapshot().rows.values() if parts else ():
        if row.about.get("id") == where or os.path.basename(row.folder) in parts:
            return OtherRun(run=row.key, name=_text(row.about.get("name")), seed=_seed(row.about.get("seed")))
    return None


def attempts_of(book: Book) -> list[Attempt]:
    """The attempts of a run, and what each changed in the configuration."""
    entries = [entry for entry in book.attempts if type(entry.get("n")) is int]
    by_number = {entry["n"]: entry for entry in entries}
    chain: set[int] = set()
    number: Any = max(by_number, default=0)
    while number in by_number and number not in chain:
        chain.add(number)
        number = by_number[number].get("parent")
    attempts = []
    last = max(by_number, default=0)
    for entry in entries:
        status = _text(entry.get("status"))
        if status == "running":  # what it said last itself
            status = book.status if entry["n"] == last else "crashed"
        before = by_number.get(entry.get("parent")) or by_number.get(entry["n"] - 1) or {}  # it started over
        attempts.append(
            Attempt(
                n=entry["n"],
                parent=entry.get("parent") if type(entry.get("parent")) is int else None,
                started=_moment(entry.get("started")),
                ended=_moment(entry.get("ended")),
                status=status,
                host=_text(entry.get("host")),
                checkpoint=_text(entry.get("checkpoint")) or None,
                effective=entry["n"] in chain,
                config_changes=changes(_mapping(before.get("config")), _mapping(entry.get("config")))
                if "config" in entry
                else [],
                git=_object(entry.get("git")) if isinstance(entry.get("git"), Mapping) else None,
            )
        )
    return attempts


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[Change]:
    """What differs between two configurations."""
    old, new = flat(before), flat(after)
    return [
        Change(path=plain(path), before=plain(old.get(path), 200), after=plain(new.get(path), 200))
        for path in sorted({*old, *new})
        if (path in old) != (path in new) or repr(old.get(path)) != repr(new.get(path))
    ]


def _summary(book: Book) -> dict[str, Any]:
    return book.summary


def _remarks(info: RunJson, problems: Sequence[Problem]) -> list[str]:
    return [*remarks_of(info.drops, info.remarks or {}, info.reports or {}, info.retention or {}, problems)]


def _why(info: RunJson, status: str) -> str | None:
    ended = why_ended(info, status)
    return None if ended is None else str(plain(ended[1]))


def _failure(info: RunJson) -> Failure | None:
    failure = manifest.failure(info)
    return None if failure is None else Failure(**{name: str(plain(text, None)) for name, text in failure.items()})


def _text(value: object) -> str:
    return "" if value is None else str(plain(str(value)))


def _made_by(info: RunJson) -> str:
    """For a run of another tool: the tool, and the folder of its files; else ""."""
    origin = (info.imported or {}).get("from")
    return _text(info.made_by) + (f", read from {_text(origin)}" if info.made_by and origin else "")


def _moment(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _object(value: object) -> dict[str, object]:
    fields: dict[str, object] = plain(_mapping(value))
    return fields


class Fields(Ask, kw_only=True):
    """What to set; what is left out stays.

    Attributes:
      tags: all tags; add_tags, remove_tags: some, beside those that each run has.
    """

    name: str | None = None
    notes: str | None = None
    tags: list[str] | None = None
    add_tags: list[str] = []
    remove_tags: list[str] = []
    group: str | None = None
    archived: bool | None = None


class EditAsk(Ask, kw_only=True):
    """Changes to the manifests of some runs."""

    runs: list[str]
    set: Fields


class LeftOut(msgspec.Struct, kw_only=True):
    """A run that was left out, and why."""

    run: str
    why: str


class EditAnswer(Answer, kw_only=True):
    """The runs as they are now."""

    runs: list[TableRow]
    refused: list[LeftOut]


ARCHIVED = "archived"
"""The tag of an archived run."""

_LONGEST = {"name": 200, "notes": 20_000, "group": 200}
_MOST_TAGS, _LONGEST_TAG = 100, 100


def edit(context: ServerContext, ask: EditAsk) -> EditAnswer:
    """Change the manifests of some runs. Those that cannot be changed are named; the others are changed."""
    _check(ask.set)
    rows = context.rows(ask.runs)
    refused: list[LeftOut] = []
    for row in rows:
        try:
            _edit_one(row, ask.set)
        except (RollbookError, OSError) as err:
            refused.append(LeftOut(run=row.key, why=str(err)))
    context.catalogue.refresh(full=True)
    known = context.catalogue.snapshot(60.0).rows
    return EditAnswer(
        runs=[
            table_row(known[row.key], [], context.facts.known(known[row.key]), own_words(context, known[row.key]))
            for row in rows
            if row.key in known
        ],
        refused=refused,
    )


def _edit_one(row: RunRow, edit: Fields) -> None:
    tags = [*manifest.read(row.folder).tags]
    changed = {name: value for name in ("name", "notes", "group") if (value := getattr(edit, name)) is not None}
    if changed.get("group") == "":
        changed["group"] = None
    if edit.tags is not None:
        tags = [*edit.tags, *([ARCHIVED] if ARCHIVED in tags and edit.archived is None else [])]
    tags = [tag for tag in tags if tag not in edit.remove_tags or tag == ARCHIVED]
    tags += [tag for tag in edit.add_tags if tag not in tags]
    if len(tags) > _MOST_TAGS + 1:
        raise Refused("too_large", f"{row.key} would have {len(tags)} tags; at most {_MOST_TAGS}")
    if edit.archived is not None:
        tags = [tag for tag in tags if tag != ARCHIVED] + ([ARCHIVED] if edit.archived else [])
    manifest.edit(row.folder, {**changed, "tags": list(dict.fromkeys(tags))})


def _check(edit: Fields) -> None:
    for tag in (*(edit.tags or ()), *edit.add_tags):
        if not tag.strip() or len(tag) > _LONGEST_TAG or not tag.isprintable():
            raise BadInput(f"the tag {tag!r:.60} cannot be a tag: a tag has 1 to {_LONGEST_TAG} printable characters")
    if max(len(edit.tags or ()), len(edit.add_tags)) > _MOST_TAGS:
        raise Refused("too_large", f"at most {_MOST_TAGS} tags a run")
    for name, most in _LONGEST.items():
        value = getattr(edit, name)
        if value is None:
            continue
        if len(value) > most:
            raise Refused("too_large", f"{name} has {len(value):,} characters; at most {most:,}")
        if name != "notes" and not value.isprintable():
            raise BadInput(f"{name}={value!r:.60} holds characters that cannot be shown")
        if name == "name" and not value.strip():
            raise BadInput("a run's name is not empty")


_PATIENCE = 1.0
"""Seconds spent on finding a run. Most runs cost one stat call; live runs, and those of a store, must be read."""


def newest(context: ServerContext, ask: NewestAsk) -> NewestAnswer:
    """The newest run that has rows in a table; the newest of all where none is asked for, or none found in time."""
    rows = [row for row in context.catalogue.snapshot().rows.values() if not row.is_archived]
    rows.sort(key=lambda row: row.about.get("created") or 0, reverse=True)
    began, looked = time.perf_counter(), 0
    for row in rows:
        if looked and time.perf_counter() - began > _PATIENCE:
            break
        looked += 1
        if not ask.table or _has(context, row, ask.table):
            return NewestAnswer(run=row.key, has=True, looked=looked, of=len(rows))
    return NewestAnswer(run=rows[0].key if rows else "", has=False, looked=looked, of=len(rows))


def _has(context: ServerContext, row: RunRow, table: str) -> bool:
    data = os.path.join(row.folder, "data")
    if not is_view(row.folder) and not os.path.isdir(os.path.join(data, table)) and not _writers(data):
        return False  # all of it is sealed, and nothing into this table
    try:
        return contents(context, row).tables.get(table, 0) > 0
    except (RollbookError, OSError):  # its page shows what is wrong with it
        return False


def _writers(data: str) -> list[str]:
    """The writers with rows that are not sealed yet."""
    try:
        return os.listdir(os.path.join(data, "journal"))
    except OSError:
        return []


ENDPOINTS = [
    Endpoint("GET", "/api/newest", NewestAsk, NewestAnswer, newest, "The newest run that has rows in a table"),
    Endpoint("GET", "/api/runs/{run}", RunAsk, RunAnswer, one_run, "Everything that a run says about itself"),
    Endpoint("POST", "/api/edit", EditAsk, EditAnswer, edit, "Change tags, notes, names; archive", edits=True),
]
