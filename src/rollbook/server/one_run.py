"""All facts about one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollbook.book import Book
from rollbook.ground import manifest
from rollbook.server.cells import plain
from rollbook.server.columns import axis_of, flat
from rollbook.server.endpoint import Endpoint
from rollbook.server.keys import contents
from rollbook.server.schemas.runs import Attempt, Change, Failure, RunAnswer, RunAsk
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "attempts_of", "one_run", "resume_line"]


def one_run(hall: Hall, ask: RunAsk) -> RunAnswer:
    """The whole page of a run."""
    row = hall.row(ask.run)
    held = contents(hall, row)
    with hall.book(row) as book:
        info, attempts = book.info, attempts_of(book)
        problems, status, clocks = book.problems(deep=False), book.status, list(book.clocks)
    facts = hall.facts.now(row)
    return RunAnswer(
        run=row.key,
        id=plain(str(info.get("id"))),
        path=plain(row.folder),
        project=_text(info.get("project")),
        name=_text(info.get("name")),
        seed=seed if (seed := info.get("seed")) is not None and abs(seed) < 2**53 else None,
        group=_text(info.get("group")) or None,
        job_type=_text(info.get("job_type")) or None,
        tags=[plain(str(tag)) for tag in info.get("tags") or ()],
        notes=_text(info.get("notes")),
        archived=row.is_archived,
        status=status,
        why=_why(info, status),
        failure=_failure(info),
        created=_moment(info.get("created")),
        ended=_moment(info.get("ended")),
        updated=facts.heard,
        host=_text(info.get("host")),
        made_by=_made_by(info),
        command=[plain(str(word)) for word in info.get("command") or ()],
        python=_text(info.get("python")),
        rollbook=_text(info.get("rollbook")),
        git=_object(info.get("git")),
        packages=_object(info.get("packages")),
        total=_object(info.get("total")),
        clocks=[plain(clock) for clock in clocks],
        x=_text(info.get("x")) or axis_of(row, facts),
        parent=_text(info.get("parent")) or None,
        forked_from=_text(info.get("forked_from")) or None,
        config=_object(info.get("config")),
        summary=_object({**manifest.results(info), **_mapping(info.get("summary"))}),
        drops={plain(str(k)): v for k, v in _mapping(info.get("drops")).items() if type(v) is int},
        attempts=attempts,
        tables=held.tables,
        problems=[plain(problem) for problem in problems[:100]],
        resume_line=resume_line(info),
    )


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
    for entry in entries:
        before = by_number.get(entry.get("parent")) or {}
        attempts.append(
            Attempt(
                n=entry["n"],
                parent=entry.get("parent") if type(entry.get("parent")) is int else None,
                started=_moment(entry.get("started")),
                ended=_moment(entry.get("ended")),
                status=_text(entry.get("status")),
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


def resume_line(info: Mapping[str, object]) -> str:
    """Python that continues a run."""
    project, name, identity = (_text(info.get(word)) for word in ("project", "name", "id"))
    return f'rollbook.init({project!r}, {name!r}, run_id={identity!r}, resume="must")'


def _why(info: Mapping[str, object], status: str) -> str | None:
    failure = manifest.failure(info)
    if failure is not None:
        words = f"{failure['type']}: {failure['message']}" if failure["message"] else failure["type"]
        return str(plain(words.partition("\n")[0][:300]))
    if status == "crashed":
        return "no exception was seen; its process vanished"
    if status == "stale":
        return "its host cannot be asked from here, and nothing was heard of it for a minute"
    return None


def _failure(info: Mapping[str, object]) -> Failure | None:
    failure = manifest.failure(info)
    return None if failure is None else Failure(**{name: str(plain(text, None)) for name, text in failure.items()})


def _text(value: object) -> str:
    return "" if value is None else str(plain(str(value)))


def _made_by(info: Mapping[str, object]) -> str:
    """For a run of another tool: the tool, and the folder of its files; else ""."""
    place = _mapping(info.get("imported")).get("from")
    return _text(info.get("made_by")) + (f", read from {_text(place)}" if info.get("made_by") and place else "")


def _moment(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _object(value: object) -> dict[str, object]:
    fields: dict[str, object] = plain(_mapping(value))
    return fields


ENDPOINTS = [Endpoint("GET", "/api/runs/{run}", RunAsk, RunAnswer, one_run, "Everything that a run says about itself")]
