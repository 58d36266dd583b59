"""The table of runs: filtered, searched, sorted, folded into groups, in windows."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from rollbook._version import __version__
from rollbook.aliases import canonical
from rollbook.errors import BadInput, did_you_mean
from rollbook.runs.conditions import holds
from rollbook.server.catalogue import RunRow, Snapshot
from rollbook.server.cells import plain
from rollbook.server.columns import (
    axis_of,
    cell_of,
    common,
    config_paths,
    flat,
    is_metric,
    metric_of,
    names_one_run,
    progress_of,
    sort_key,
    value_of,
)
from rollbook.server.endpoint import Endpoint
from rollbook.server.facts import Facts
from rollbook.server.group_numbers import centre_of, group_cell
from rollbook.server.keys import keys
from rollbook.server.refusals import Refused
from rollbook.server.schemas.runs import (
    ColumnsAnswer,
    ColumnsAsk,
    ConfigColumn,
    Drawn,
    Hello,
    HelloAsk,
    KeysAsk,
    Limits,
    MetricColumn,
    RunsAnswer,
    RunsAsk,
    TableRow,
)
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "auto_columns", "groups_of", "hello", "table_of_runs", "table_row"]

_PATIENCE = 0.15
"""Seconds that a window of the table waits for numbers that were not read yet."""
_PATIENCE_FOR_NEWER = 0.03
"""Seconds that it waits for newer numbers of live runs that it has numbers of."""
_MOST_COLUMNS = 60
_MOST_DRAWN = 64
"""Of more runs the keys are a question of their own: the table does not wait until all of them are opened."""
_METRIC_CALL = re.compile(r"\b(last|max|min)\(\s*(\"[^\"]*\"|'[^']*')\s*\)")
_FIELD = re.compile(r"\b(?:config|summary)(?:\.\w+)+")


def hello(hall: Hall, _: HelloAsk) -> Hello:
    """What the page has to know first."""
    shot = hall.catalogue.snapshot()
    limits = hall.limits
    return Hello(
        version=__version__,
        server=hall.identity,
        title=hall.title,
        roots=[plain(root) for root in hall.catalogue.roots],
        runs=len(shot.rows),
        live=shot.live,
        writable=hall.settings.writable,
        edit_token=hall.settings.edit_token if hall.settings.writable else "",
        notebook=hall.settings.notebook,
        only=hall.only,
        limits=Limits(points=limits.points, rows=limits.rows, runs=limits.runs, series=limits.series),
    )


Item = TypeVar("Item")


@dataclass(slots=True)
class _Group:
    """Runs of equal configuration."""

    id: str
    name: str
    section: str
    values: dict[str, object]
    members: list[RunRow]


@dataclass(slots=True)
class _Flat:
    """The table as one list: sections as (name, members), groups, and runs as (row, the group it is shown in)."""

    entries: list[tuple[str, list[RunRow]] | _Group | tuple[RunRow, str | None]] = field(default_factory=list)
    matched: int = 0
    archived: int = 0
    hint: str | None = None


def table_of_runs(hall: Hall, ask: RunsAsk) -> RunsAnswer:
    """A window of the table."""
    if not 0 <= ask.limit <= hall.limits.rows:
        raise Refused("too_large", f"limit={ask.limit}: a window has 0 to {hall.limits.rows:,} rows")
    if ask.offset < 0:
        raise BadInput(f"offset={ask.offset}: the first row is 0")
    if len(ask.columns) > _MOST_COLUMNS:
        raise Refused("too_large", f"{len(ask.columns)} columns; at most {_MOST_COLUMNS} at once")
    shot = hall.catalogue.snapshot()
    flattened, pending = _flattened(hall, shot, ask)
    window = flattened.entries[ask.offset : ask.offset + ask.limit]
    pending += _read_ahead(hall, window, ask.columns)
    rows = [_table_row(entry, ask, hall.facts.known) for entry in window]
    return RunsAnswer(
        total=len(shot.rows),
        matched=flattened.matched,
        archived=flattened.archived,
        live=shot.live,
        rows_total=len(flattened.entries),
        offset=ask.offset,
        rows=rows,
        version=f"{hall.identity}.{shot.version}.{hall.facts.version}",
        pending=pending,
        did_you_mean=flattened.hint,
        unreadable=[plain(why) for why in shot.unreadable[:20]],
        unreadable_total=len(shot.unreadable),
        drawn=_drawn(hall, shot, flattened, ask),
    )


def _drawn(hall: Hall, shot: Snapshot, flattened: _Flat, ask: RunsAsk) -> Drawn | None:
    """The keys of what will be drawn, so that its curves can be asked for as soon as the table is there."""
    if not ask.drawn and not ask.draw_first:
        return None
    chosen: Sequence[_Group | RunRow | None] = _first_of(flattened, ask.draw_first)
    if ask.drawn:
        groups = {entry.id: entry for entry in flattened.entries if isinstance(entry, _Group)}
        chosen = [groups.get(name) or shot.rows.get(name) for name in ask.drawn]
    runs: list[str] = []
    for head in chosen:
        if head is None:  # the page looks for it elsewhere
            return None
        runs += [row.key for row in head.members] if isinstance(head, _Group) else [head.key]
    if not 0 < len(runs) <= _MOST_DRAWN:
        return None
    return Drawn(runs=runs, keys=keys(hall, KeysAsk(runs=runs)))


def _first_of(flattened: _Flat, many: int) -> list[_Group | RunRow]:
    """The first groups and runs, not beyond their section and without the members of open groups."""
    first: list[_Group | RunRow] = []
    for entry in flattened.entries:
        if isinstance(entry, _Group):
            first.append(entry)
        elif isinstance(entry[0], str):
            if first:
                break
        elif entry[1] is None:
            first.append(entry[0])
        if len(first) == many:
            break
    return first


def _flattened(hall: Hall, shot: Snapshot, ask: RunsAsk) -> tuple[_Flat, int]:
    """The whole table as one list, kept until a run changes; and how many numbers it still waits for."""
    by_metric = [
        *(sort.column for sort in ask.sort),
        *(f"{w}:{k[1:-1]}" for w, k in _METRIC_CALL.findall(ask.filter or "")),
    ]
    metrics = [column for column in by_metric if is_metric(column) or column in ("updated", "duration", "progress")]
    same = msgspec.structs.replace(ask, offset=0, limit=0, columns=[], drawn=[], draw_first=0)
    key, stamp = ("table", msgspec.json.encode(same)), (shot.version, hall.facts.version if metrics else 0)
    flattened = hall.shelf.get(key, stamp)
    pending = 0
    if metrics:
        missing = [row for row in shot.rows.values() if not hall.facts.is_fresh(row)]
        extremes = {metric_of(column)[1] for column in metrics if is_metric(column) and metric_of(column)[0] != "last"}
        pending = hall.facts.fetch(missing, extremes) if missing else 0
    if flattened is None:
        flattened = _flatten(shot, ask, hall.facts.known)
        hall.shelf.put(key, stamp, flattened, 200 * len(flattened.entries) + 1_000)
    return flattened, pending


def _flatten(shot: Snapshot, ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> _Flat:
    result = _Flat()
    rows = list(shot.rows.values())
    result.archived = sum(row.is_archived for row in rows)
    if not ask.archived:
        rows = [row for row in rows if not row.is_archived]
    if ask.filter and ask.filter.strip():
        result.hint = _hint(rows, ask.filter)
        rows = _filtered(rows, ask.filter, known) if result.hint is None else []
    if ask.search and ask.search.strip():
        words = ask.search.casefold().split()
        rows = [row for row in rows if all(word in _searchable(row) for word in words)]
    result.matched = len(rows)
    order = _order(ask, known)
    rows.sort(key=lambda row: row.about.get("created") or 0, reverse=True)
    for column, descending in reversed(order):
        rows = _sorted(rows, lambda row, column=column: value_of(column, row, known(row)), descending)  # type: ignore[misc]
    with_sections = ask.sections if ask.sections is not None else len({row.about.get("project") for row in rows}) > 1
    sections: dict[str, list[RunRow]] = {}
    for row in rows:
        sections.setdefault(str(row.about.get("project") or "") if with_sections else "", []).append(row)
    open_groups = set(ask.open)
    for name, members in sections.items():
        if with_sections:
            result.entries.append((name, members))
        if ask.group_by is None:
            result.entries += [(row, None) for row in members]
            continue
        groups = groups_of(members, ask.group_by)
        for column, descending in reversed(order):
            groups = _sorted(groups, lambda group, column=column: _group_value(group, column, known), descending)  # type: ignore[misc]
        for group in groups:
            if len(group.members) == 1:
                result.entries.append((group.members[0], None))
                continue
            result.entries.append(group)
            if group.id in open_groups:
                result.entries += [(row, group.id) for row in group.members]
    return result


def _order(ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> list[tuple[str, bool]]:
    if len(ask.sort) > 5:
        raise Refused("too_large", f"{len(ask.sort)} columns to sort by; at most 5")
    return [(sort.column, sort.descending) for sort in ask.sort]


def _sorted(items: list[Item], value: Callable[[Item], object], descending: bool) -> list[Item]:
    """In order of a value; what has none stays last in either direction."""
    keyed = [(sort_key(value(item)), item) for item in items]
    there = sorted((pair for pair in keyed if pair[0][0] < 3), key=lambda pair: pair[0], reverse=descending)
    return [item for _, item in there] + [item for key, item in keyed if key[0] == 3]


def _filtered(rows: list[RunRow], text: str, known: Callable[[RunRow], Facts | None]) -> list[RunRow]:
    calls: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        name = f"metric_{len(calls)}"
        calls[name] = f"{match[1]}:{match[2][1:-1]}"
        return name

    plain_text = _METRIC_CALL.sub(named, text)

    def seen(row: RunRow) -> Mapping[str, object]:
        """What is known of a run, and its metrics where the condition asks for some."""
        if not calls:
            return row.about
        facts = known(row)
        return {**row.about, **{name: value_of(column, row, facts) for name, column in calls.items()}}

    try:
        chosen = holds(plain_text, [seen(row) for row in rows])
    except BadInput as err:
        hint = "Between two conditions stands and or or; texts stand in single quotes."
        raise Refused("bad_input", str(err), hint, _place(text, str(err))) from None
    return [row for row, wanted in zip(rows, chosen, strict=True) if wanted]


def _place(text: str, said: str) -> int | None:
    """Where a condition cannot be read, as far as the message names a word of it."""
    match = re.search(r'at or near "([^"]+)"', said)
    place = text.find(match[1]) if match else -1
    return place if place >= 0 else None


def _hint(rows: list[RunRow], text: str) -> str | None:
    """Where a filter names a field that no run has: the nearest that some have."""
    for name in dict.fromkeys(_FIELD.findall(text)):
        part, _, path = name.partition(".")
        have = Counter(path for row in rows for path in flat(row.about.get(part) or {}))
        if path in have or any(known.startswith(path + ".") for known in have):
            continue
        nearest = _nearest(path, have)
        said = f"No run has {name}."
        return f"{said} Did you mean {part}.{nearest} ({have[nearest]} runs)?" if nearest else said
    return None


def _nearest(path: str, have: Mapping[str, int]) -> str | None:
    """The field that somebody may have meant: spelled alike, of the same last part, or abbreviated (lr)."""
    alike = re.search(r"Did you mean '([^']*)'", did_you_mean(path, list(have)))
    if alike:
        return alike[1]
    last = path.rpartition(".")[2]
    short = "".join(word[:1] for word in last.split("_"))
    for known in have:
        own = known.rpartition(".")[2]
        if own in (last, short) or "".join(word[:1] for word in own.split("_")) == last:
            return known
    return None


def _searchable(row: RunRow) -> str:
    about = row.about
    words = [
        about.get("project"),
        about.get("name"),
        about.get("id"),
        about.get("notes"),
        about.get("group"),
        *about.get("tags", ()),
    ]
    return " ".join(str(word) for word in words if word).casefold()


def auto_columns(rows: Sequence[RunRow]) -> list[str]:
    """The configuration that differs between some runs, without seeds and names."""
    columns = []
    for path, values in config_paths(rows).items():
        if not names_one_run(path) and (len(values) > 1 or sum(count for _, count in values.values()) < len(rows)):
            columns.append(f"config.{path}")
    return columns


def groups_of(rows: Sequence[RunRow], columns: Sequence[str]) -> list[_Group]:
    """Runs of one project and name with equal values of some columns; in the order of their first member."""
    if not columns:
        raise BadInput("group_by=[]: name at least one column, or 'auto'; null for no groups")
    automatic = list(columns) == ["auto"]
    by_name: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        both = (str(row.about.get("project") or ""), str(row.about.get("name") or "") if automatic else "")
        by_name.setdefault(both, []).append(row)
    groups: dict[str, _Group] = {}
    for (project, name), members in by_name.items():
        chosen = auto_columns(members) if automatic else list(columns)
        mine: dict[str, _Group] = {}
        for row in members:
            values = {column: plain(value_of(column, row, None), 200) for column in chosen}
            identity = _identity(project, name, values)
            mine.setdefault(identity, _Group(identity, "", project, values, [])).members.append(row)
        distinguishing = telling_columns([group.values for group in mine.values()], chosen) if automatic else chosen
        for group in mine.values():
            words = [name, *(_word(column, group.values[column]) for column in distinguishing)]
            group.name = " ".join(filter(None, words)) or project
        groups |= mine
    return list(groups.values())


def _identity(project: str, name: str, values: dict[str, object]) -> str:
    """A short name of a group that stays when runs with further fields come: it stands in links."""
    encoded = msgspec.json.encode({column: v for column, v in values.items() if v is not None}, order="sorted")
    return f"{project}/{name}:{hashlib.blake2b(encoded, digest_size=5).hexdigest()}"


_KNOWN_BY = ("algo", "algorithm", "agent", "method", "env", "env_id", "task", "model", "lr", "learning_rate")
"""What people call a configuration by, where it tells as much as another field."""


def telling_columns(configurations: Sequence[Mapping[str, object]], columns: Sequence[str]) -> list[str]:
    """As few columns as tell some configurations apart: of those that tell most, one that all have, best known first.

    Args:
      configurations: column -> value of each; no two are equal.
      columns: those that may be named, in their order.
    """
    telling: list[str] = []
    split: list[tuple[bytes, ...]] = [()] * len(configurations)
    spelled = {
        column: [msgspec.json.encode(configuration.get(column)) for configuration in configurations]
        for column in columns
    }

    def worth(column: str) -> tuple[int, int, int, int]:
        last = column.rpartition(".")[2]
        apart = len({(*before, own) for before, own in zip(split, spelled[column], strict=True)})
        known = _KNOWN_BY.index(last) if last in _KNOWN_BY else len(_KNOWN_BY)
        return -apart, sum(own == b"null" for own in spelled[column]), known, len(last)

    while len(set(split)) < len(configurations) and len(telling) < len(columns):
        best = min((column for column in columns if column not in telling), key=worth)
        telling.append(best)
        split = [(*before, own) for before, own in zip(split, spelled[best], strict=True)]
    return telling


def _word(column: str, value: object) -> str:
    short = column.rpartition(".")[2]
    short = "lr" if short == "learning_rate" else short
    if isinstance(value, float):
        return f"{short} {value:g}"
    if isinstance(value, dict):
        return f"{short} {msgspec.json.encode(value).decode():.40}"
    return f"{short} {'none' if value is None else str(value).lower() if isinstance(value, bool) else value}"


def _group_value(group: _Group, column: str, known: Callable[[RunRow], Facts | None]) -> object:
    values = [value_of(column, row, known(row)) for row in group.members]
    if is_metric(column):
        return centre_of(values)
    there = [value for value in values if value is not None]
    if column in ("created", "updated", "ended"):
        return max(there, default=None)
    return min(there, key=sort_key, default=None)


def _read_ahead(hall: Hall, window: Sequence[Any], columns: Sequence[str]) -> int:
    """Read the numbers of a window for as long as one may wait; have the others read behind; how many are to come."""
    extremes = {metric_of(column)[1] for column in columns if is_metric(column) and metric_of(column)[0] != "last"}
    shown: list[RunRow] = []
    for entry in window:
        if isinstance(entry, _Group):
            shown += entry.members
        elif isinstance(entry[0], RunRow):
            shown.append(entry[0])
    began = time.perf_counter()
    late = []
    for row in shown:
        patience = _PATIENCE_FOR_NEWER if row.is_live and hall.facts.known(row) is not None else _PATIENCE
        if time.perf_counter() - began > patience:
            late.append(row)
            continue
        try:
            hall.facts.now(row, extremes)
        except Exception:  # one damaged run must not take the table away; its page says what is wrong
            continue
    late = [row for row in late if not hall.facts.is_fresh(row, extremes)]
    return hall.facts.fetch(late, extremes) if late else 0


def _table_row(entry: Any, ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> TableRow:
    if isinstance(entry, _Group):
        return _group_row(entry, ask, known)
    head, second = entry
    if isinstance(head, RunRow):
        return table_row(head, ask.columns, known(head), second, bool(second) or ask.group_by is not None)
    counts = Counter(row.status for row in second)
    totals = [row.about.get("total") or {} for row in second]
    same = totals[0] if totals and all(total == totals[0] for total in totals) else {}
    return TableRow(
        kind="section",
        id=f"section:{head}",
        name=plain(head),
        run_count=len(second),
        counts=dict(counts),
        values=plain(same),
    )


def table_row(
    row: RunRow, columns: Sequence[str], facts: Facts | None, member_of: str | None = None, grouped: bool = False
) -> TableRow:
    """One run as a row of the table."""
    about = row.about
    at, total = progress_of(row, facts)
    name = str(about.get("name") or "")
    seed = about.get("seed")
    return TableRow(
        kind="run",
        id=row.key,
        run=row.key,
        name=plain(name),
        project=plain(str(about.get("project") or "")),
        seed=plain(seed) if isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 2**53 else None,
        group=_text(about.get("group")),
        job_type=_text(about.get("job_type")),
        status=row.status,
        created=_number(about.get("created")),
        ended=_number(about.get("ended")),
        updated=facts.heard if facts is not None else _number(about.get("ended")),
        host=plain(str(about.get("host") or "")),
        tags=[plain(str(tag)) for tag in about.get("tags") or ()],
        notes=plain(str(about.get("notes") or "")),
        archived=row.is_archived,
        attempts=int(about.get("attempts") or 0),
        x=plain(axis_of(row, facts)),
        at=at if at is not None and abs(at) < 2**53 else None,
        total=total if total is not None and abs(total) < 2**53 else None,
        cells={column: cell_of(column, row, facts) for column in columns},
        pending=[column for column in columns if _is_awaited(column, facts)],
        section=plain(str(about.get("project") or "")),
        member_of=member_of,
        damaged=plain(_damage(facts)),
    )


def _damage(facts: Facts | None) -> str:
    """What of a run cannot be read, the first file as a sentence."""
    if facts is None or not facts.damage:
        return ""
    more = len(facts.damage) - 1
    return facts.damage[0] + (f"; and {more} more" if more else "")


def _done(rows: Sequence[RunRow], known: Callable[[RunRow], Facts | None]) -> float | None:
    """How far some runs have come together, 0 to 1; None where none says how far it is to go."""
    shares = []
    for row in rows:
        at, total = progress_of(row, known(row))
        if total:
            shares.append(1.0 if row.status == "finished" else min(1.0, max(0, at or 0) / total))
    return sum(shares) / len(shares) if shares else None


def _group_row(group: _Group, ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> TableRow:
    cells: dict[str, object] = {}
    for column in ask.columns:
        values = [value_of(column, row, known(row)) for row in group.members]
        cells[column] = group_cell(values, len(values)) if is_metric(column) else common(values)
    damaged = sum(bool(_damage(known(row))) for row in group.members)
    heard = [facts.heard for row in group.members if (facts := known(row)) is not None and facts.heard is not None]
    created = [float(row.about["created"]) for row in group.members if _number(row.about.get("created")) is not None]
    return TableRow(
        kind="group",
        id=group.id,
        name=plain(group.name),
        project=plain(group.section),
        section=plain(group.section),
        runs=[row.key for row in group.members],
        run_count=len(group.members),
        counts=dict(Counter(row.status for row in group.members)),
        values=plain(group.values),
        cells=cells,
        pending=[c for c in ask.columns if any(_is_awaited(c, known(row)) for row in group.members)],
        damaged=f"{damaged} of {len(group.members)} runs have parts that cannot be read" if damaged else "",
        open=group.id in ask.open,
        done=_done(group.members, known),
        created=max(created, default=None),
        updated=max(heard, default=None),
    )


def _is_awaited(column: str, facts: Facts | None) -> bool:
    """Whether a cell is empty only because nobody has read its number yet."""
    if not is_metric(column):
        return False
    which, key = metric_of(column)
    return facts is None or (which != "last" and key in facts.latest and key not in facts.extremes)


def _text(value: object) -> str | None:
    return None if value is None else str(plain(str(value)))


def _number(value: object) -> float | None:
    return (
        float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) < 1e15
        else None
    )


def columns(hall: Hall, ask: ColumnsAsk) -> ColumnsAnswer:
    """What can stand in the table: the fields of the configurations and summaries, and the keys of metrics."""
    shot = hall.catalogue.snapshot()
    rows = hall.rows(ask.runs) if ask.runs is not None else list(shot.rows.values())
    until = time.perf_counter() + _PATIENCE
    alike: Counter[tuple[str, ...]] = Counter()  # most runs log the same keys: each choice of them is looked at once
    for row in rows:
        facts = hall.facts.known(row)
        if facts is None and time.perf_counter() < until:
            try:
                facts = hall.facts.now(row)
            except Exception:  # a damaged run has no columns to offer
                continue
        if facts is not None:
            alike[tuple(facts.latest)] += 1
    have: Counter[str] = Counter()
    shared: Counter[str | None] = Counter()
    for logged, n in alike.items():
        have.update(dict.fromkeys(logged, n))
        shared.update(dict.fromkeys({canonical(key) for key in logged} - {None, *logged}, n))
    for name, n in shared.items():  # what runs of several frameworks call differently stands under the common name
        if name is not None and have[name]:
            have[name] += n
    unknown = [row for row in rows if hall.facts.known(row) is None]
    unknown.sort(key=lambda row: _number(row.about.get("created")) or 0.0, reverse=True)
    return ColumnsAnswer(
        pending=hall.facts.fetch(unknown, hurry=False) if unknown else 0,
        config=_config_columns_of(hall, rows, "config", None if ask.runs else shot.version),
        summary=_config_columns_of(hall, rows, "summary", None if ask.runs else shot.version),
        metrics=[MetricColumn(key=plain(key), runs=n) for key, n in sorted(have.items())],
    )


def _config_columns_of(hall: Hall, rows: Sequence[RunRow], part: str, version: int | None) -> list[ConfigColumn]:
    """Those of all runs are kept until a run changes (`version`): the page asks again while their numbers are read."""
    kept: list[ConfigColumn] | None = None if version is None else hall.shelf.get(("columns", part), version)
    if kept is None:
        kept = _config_columns(rows, part)
        if version is not None:
            hall.shelf.put(("columns", part), version, kept, 1_000 * len(kept) + 100)
    return kept


def _config_columns(rows: Sequence[RunRow], part: str) -> list[ConfigColumn]:
    columns_of_config = []
    for path, values in sorted(config_paths(rows, part).items()):
        runs = sum(count for _, count in values.values())
        examples = [plain(value, 60) for value, _ in sorted(values.values(), key=lambda pair: -pair[1])[:5]]
        columns_of_config.append(
            ConfigColumn(
                column=plain(f"{part}.{path}"),
                runs=runs,
                distinct=len(values),
                varies=len(values) > 1 or runs < len(rows),
                examples=examples,
            )
        )
    return columns_of_config


ENDPOINTS = [
    Endpoint("GET", "/api/hello", HelloAsk, Hello, hello, "What the page has to know first"),
    Endpoint("POST", "/api/runs", RunsAsk, RunsAnswer, table_of_runs, "A window of the table of runs"),
    Endpoint("POST", "/api/columns", ColumnsAsk, ColumnsAnswer, columns, "What can stand in the table of runs"),
]
