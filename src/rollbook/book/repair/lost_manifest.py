"""Rebuilds a lost run.json from the writers' info files and the marks in the journal."""

from __future__ import annotations

import ast
import json
import os
import time

from rollbook.book.book import Book
from rollbook.errors import Damaged
from rollbook.journal import WriterInfo, list_writers
from rollbook.schema import manifest
from rollbook.schema.finished import former_writers
from rollbook.schema.run_files import table_names
from rollbook.storage import Pieces
from rollbook.system.files import open_inside
from rollbook.system.texts import amount
from rollbook.values.arrow import to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from rollbook.schema.manifest import RunJson

    _Kind = TypeVar("_Kind")


def rebuilt(folder: str, writers: list[WriterInfo]) -> RunJson:
    """The manifest of a run from its writers' info files; `recall` adds the data of the marks after sealing."""
    name, _, identity = os.path.basename(os.path.normpath(folder)).rpartition("-")
    known = {info.id: dict(info.about) for info in writers}
    known = {**former_writers(folder), **known}
    pages = [about for about in known.values() if about and not about.get("keeper")] or [{}]
    # An attempt has one main writer, and possibly others of its own: where both are known, the main one counts.
    numbers = sorted({_attempt(about) for about in pages})
    mains = {_attempt(about): about for about in sorted(pages, key=lambda about: about.get("main") is True)}
    started = {n: _began(mains[n]) for n in numbers}
    return manifest.RunJson(
        format=manifest.FORMAT,
        id=identity or name,
        project=os.path.basename(os.path.dirname(os.path.abspath(folder))),
        name=name or identity,
        nonce=next((str(about["nonce"]) for about in pages if about.get("nonce")), ""),
        status="running",
        created=min(started.values()),
        ended=None,
        seed=_newest(mains, "seed", int),
        group=None,
        tags=["repaired"],
        notes="run.json was lost; this page was made by rollbook repair",
        config=_newest(mains, "config", dict) or _config_of_file(folder),
        summary={},
        clocks=list(dict.fromkeys(str(clock) for about in pages for clock in about.get("clocks") or ())),
        host=next((str(about["host"]) for about in pages if about.get("host")), ""),
        boot_id=next((str(about["boot_id"]) for about in pages if about.get("boot_id")), ""),
        attempts=[
            manifest.Attempt(
                n=n,
                # Without the marks of rewinds it is unknown what an attempt went on from: the one before, whole.
                parent=numbers[i - 1] if i else None,
                cut=manifest.Cut(time=2**62) if i else None,
                started=started[n],
                ended=None,
                status="running",
                writer=str(mains[n].get("writer") or ""),
                host=str(mains[n].get("host") or ""),
                offsets={},
            )
            for i, n in enumerate(numbers)
        ],
    )


def recall(folder: str) -> list[str]:
    """Write what the rows tell into a rebuilt manifest: rewinds, the summary, when and how each attempt ended."""
    about = manifest.read(folder)
    entries = {entry.n: entry for entry in about.attempts}
    rewinds = 0
    book = Book(folder)
    for n, (first, last) in _spans(book).items():
        if n in entries:
            began = entries[n].started or first
            # A writer's name has only the second in which it began.
            entries[n].set(started=first if began <= first < began + 1.0 else began, ended=max(last, began))
    for mark in book.marks():
        entry = entries.get(mark["attempt"])
        payload = mark["payload"]
        if entry is None:
            continue
        if mark["mark"] == "rewind" and (payload.get("parent") is None or payload["parent"] in entries):
            read = manifest.Attempt.of({name: payload.get(name) for name in ("parent", "cut", "checkpoint")})
            entry.set(parent=read.parent, cut=read.cut, checkpoint=read.checkpoint)
            rewinds += 1
        elif mark["mark"] == "summary":
            manifest.follow_summary(about.summary, payload)
        elif mark["mark"] == "final" and mark["writer"] == entry.writer and isinstance(payload.get("status"), str):
            entry.status = payload["status"]
            if isinstance(payload.get("failure"), dict):
                entry.failure = payload["failure"]
            if mark["attempt"] == max(entries):
                about.status = payload["status"]
    newest = entries[max(entries)]
    if newest.status == "running":
        newest.status = "crashed"
    about.status, about.ended = newest.status, newest.ended
    about.created = min((entry.started for entry in entries.values() if entry.started), default=0.0)
    manifest.write(folder, about, durable=True)
    done = [f"{amount(rewinds, 'rewind')} {'was' if rewinds == 1 else 'were'} found again"] if rewinds else []
    return [*done, f"by its rows the run is {about.status}"]


def _spans(book: Book) -> dict[int, tuple[float, float]]:
    """{attempt: unix seconds of its first and its last row}, without what keepers wrote."""
    folder = str(book.path)
    infos = {info.id: info.about for info in list_writers(folder)}
    infos |= former_writers(folder)
    keepers = {writer for writer, about in infos.items() if about.get("keeper")}
    spans: dict[int, tuple[float, float]] = {}

    def add(attempt: object, first: int, last: int) -> None:
        if type(attempt) is int and first > 0:
            known = spans.get(attempt, (first / 1e9, last / 1e9))
            spans[attempt] = min(known[0], first / 1e9), max(known[1], last / 1e9)

    def work(tables: dict[str, Pieces]) -> None:
        spans.clear()
        for piece in (piece for pieces in tables.values() for piece in pieces):
            meta = piece.meta
            if meta.get("writer") is not None and meta.get("attempt") is not None:
                if meta["writer"] not in keepers:
                    add(meta["attempt"], meta["first_time"], meta["last_time"])
                continue
            rows = piece.read(["time", "attempt", "writer"])
            times, known = to_numpy(rows["time"])
            cells = zip(rows["attempt"].to_pylist(), rows["writer"].to_pylist(), times.tolist(), strict=True)
            for attempt, writer, time_ns in cells if known is None else ():
                if writer not in keepers:
                    add(attempt, time_ns, time_ns)

    book.files.read([*table_names(folder), "marks"], work)
    return spans


def _attempt(about: dict[str, object]) -> int:
    number = about.get("attempt")
    return number if type(number) is int and number > 0 else 1


def _began(about: dict[str, object]) -> float:
    try:
        return float(int(str(about.get("writer"))[:8], 16))  # a writer's id begins with its unix time
    except ValueError:
        return time.time()


def _newest(mains: dict[int, dict[str, object]], name: str, kind: type[_Kind]) -> _Kind | None:
    """What the main writer of the newest attempt wrote down, of those that know it; None if none does."""
    known = [mains[n].get(name) for n in sorted(mains, reverse=True)]
    return next((value for value in known if isinstance(value, kind) and not isinstance(value, bool)), None)


def _config_of_file(folder: str) -> dict[str, object]:
    """The assignments of total_config.py, which every run had once, read as literals; {} for anything else."""
    try:
        with open(open_inside(folder, "total_config.py"), encoding="utf-8") as file:
            (statement,) = ast.parse(file.read()).body
        config = ast.literal_eval(statement.value) if isinstance(statement, ast.Assign) else {}
        plain = json.loads(json.dumps(config, default=repr))
    except (OSError, Damaged, ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return {}
    return plain if isinstance(plain, dict) else {}
