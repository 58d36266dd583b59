"""A copy of the page with its data as files: works from any file server and does not need rollbook."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from rollbook.errors import BadInput, RollbookError
from rollbook.runs.questions import SeriesQuestion
from rollbook.runs.usual_score import telling_first
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.server.answering import content_policy, plain_json
from rollbook.server.app import BuiltPage, opening_with
from rollbook.server.asking import NamedRuns
from rollbook.server.curves import findings, series, sweeps, verdicts
from rollbook.server.curves import groups as curves
from rollbook.server.curves.findings import FindingsAsk
from rollbook.server.curves.groups import CurvesAsk
from rollbook.server.curves.memory import rows_of_runs
from rollbook.server.curves.series import SeriesAsk
from rollbook.server.curves.sweeps import SweepAsk
from rollbook.server.curves.verdicts import CompareAsk, DiffAsk
from rollbook.server.runs import one_run
from rollbook.server.runs.columns import ColumnsAsk, columns, own_columns
from rollbook.server.runs.page_state import BoardsAsk, HelloAsk, boards, first_view, hello
from rollbook.server.runs.table import MOST_COLUMNS, RunsAsk, TableRow, table_of_runs
from rollbook.server.settings import Limits, ServerSettings
from rollbook.server.shared import rows as held_rows
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Streamed
from rollbook.server.shared.rows import KeysAsk
from rollbook.server.shared.shapes import RunAsk
from rollbook.server.shared.state import ServerContext, Stamps
from rollbook.server.tables import episodes, fates, files, health, histograms, logs, rollouts, samples, timings
from rollbook.server.tables.episodes import EpisodeAsk, EpisodesAsk, ScatterAsk, TracesAsk
from rollbook.server.tables.fates import FatesAsk, PromptsAsk
from rollbook.server.tables.files import MediaAsk, TextAsk
from rollbook.server.tables.health import MarksAsk
from rollbook.server.tables.histograms import HistogramsAsk
from rollbook.server.tables.logs import LogAsk
from rollbook.server.tables.rollouts import OneRolloutAsk, RolloutsAsk
from rollbook.server.tables.samples import SamplesAsk
from rollbook.server.tables.timings import TimelineAsk, TimingsAsk

POINTS = 2_000
"""Points of a curve in a copy."""

_RETURNS = ("test/return", "train/return", "train/reward")
"""What the page's column `return` is made of, whether a run has them or not."""
_MOST_SETTINGS = 12
_MOST_CELLS = 20_000  # last values in the table of runs
_MOST_EPISODES = 100
_MOST_ROLLOUTS = 200
"""Each of the newest rollouts is a conversation in a copy; each costs a pass over the tables."""
_MOST_ROWS = 1_000
_NEWEST = 'time desc, writer desc, lane desc, seq desc, "index" desc'
_NEWEST_ROLLOUTS = 'time desc, seq desc, "index" desc'  # all that a server keeps of their order
_MOST_COMPARED, _FEW_COMPARED = 5, 8
"""The page draws the first rows of a project if none are chosen; all if they are few. FIRST and FEW in its table.ts."""
_MOST_KEYS = 5
_MOST_LOGS = 20
_MOST_HISTOGRAMS = 50
_PLAIN = re.compile(r"[A-Za-z0-9._~-]{1,150}")
_OPENED_BY = ("", "episodes", "rollouts", "samples", "timings")
"""The tables by which a page chooses the run it opens on; "": any run."""
_NOTE = (
    "A copy answers what it has recorded: charts of {points:,} points a curve, tables, videos, comparisons with the "
    "usual score. It has no conditions, no SQL and no causes. For those open the run folders (rollbook ui), or have a "
    "report made (rollbook report)."
)

Report = Callable[[str], None]
Given = TypeVar("Given")


def export(
    roots: Iterable[str],
    folder: str | os.PathLike[str],
    report: Report = lambda text: None,
    page: Path | None = None,
    title: str = "",
) -> Path:
    """Write a copy of the page and of what it shows.

    Args:
      roots: folders of runs, or runs.
      folder: the destination; a new or empty folder, or an earlier copy, which is replaced.
      report: called after each run.
      page: the built page; None: the one inside the package.
      title: the displayed location of the runs; "": their first root.
    Returns:
      The file to open, through a file server.
    Raises:
      BadInput: the folder holds something else, or is in a run. RollbookError: the page is not built.
    """
    target = Path(folder)
    built = BuiltPage(page)
    if not built.is_built:
        raise RollbookError(
            f"the page is not built ({built.folder} holds none), so it cannot be copied.", "Try: make page"
        )
    _check(target)
    context = ServerContext(
        ServerSettings(
            tuple(map(str, roots)),
            writable=False,
            waits=True,
            limits=Limits(points=POINTS, seconds=3_600.0),
            title=title,
        )
    )
    context.catalogue.refresh(full=True)
    data = target / "data"
    if data.exists():
        shutil.rmtree(data)
    _copy_page(built, target, first_view(context, _OPENS_WITH))
    rows = [row for row in context.catalogue.snapshot(60.0).rows.values() if not row.is_archived]
    _Copy(context, data, report).write(rows)
    return target / "index.html"


def _check(target: Path) -> None:
    for above in (target.resolve(), *target.resolve().parents):
        if (above / MANIFEST_FILE).is_file():
            raise BadInput(
                f"--export {target}: {above} is a run, and a run's folder is not written into.", "Choose another"
            )
    if target.exists() and not target.is_dir():
        raise BadInput(f"--export {target}: that is a file")
    if target.is_dir() and any(target.iterdir()) and not (target / "data" / "hello.json").is_file():
        raise BadInput(f"--export {target}: the folder holds something else than an earlier copy.", "Choose a new one")


_OPENS_WITH = ("pin", "s", "sb", "own", "ylog", "xlog", "all", "shut")
"""Of the board that the page opens with: how charts look. Its filter and groups a copy may not be able to answer."""

_FROM_A_DISK = (
    "<p>This copy of a rollbook page needs a file server, because browsers load no scripts from a disk. In its folder, "
    "run <code>python -m http.server</code> and open <code>http://localhost:8000</code>.</p>"
)
"""What a browser shows until the page's script has run, and for ever where it may not run (file://)."""


def _copy_page(built: BuiltPage, target: Path, opens_with: str) -> None:
    """The page's own files; index.html states that it is a copy, and what it may load."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(built.folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            copy = target / path.relative_to(built.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    index = (built.folder / "index.html").read_text(encoding="utf-8")
    live = re.search(r'<meta name="rollbook" content="live" ?/?>', index)
    if live is None:
        raise RollbookError(f"{built.folder / 'index.html'} does not say that it is live, so no copy can be made of it")
    rules = "; ".join(part for part in content_policy(False).split("; ") if not part.startswith("frame-ancestors"))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
    marked = index.replace(live.group(0), f'{policy}\n<meta name="rollbook" content="static">')
    marked = marked.replace('<div id="page"></div>', f'<div id="page">{_FROM_A_DISK}</div>')  # the page replaces it
    (target / "index.html").write_text(opening_with(marked, opens_with) if opens_with else marked, encoding="utf-8")


def _as_group(row: TableRow) -> NamedRuns:
    """A row of the folded table in the form the page compares: a group, or a single run."""
    if row.kind == "group":
        return NamedRuns(name=row.name, runs=row.runs)
    name = f"{row.name} {row.own}" if row.own else row.name
    return NamedRuns(name=name if row.seed is None else f"{name}, seed {row.seed}", runs=[row.run or row.id])


class _Copy:
    """The data of a copy while it is written."""

    def __init__(self, context: ServerContext, data: Path, report: Report) -> None:
        self._context, self._data, self._report = context, data, report
        self._listed: set[str] = set()

    def write(self, rows: list[RunRow]) -> None:
        """Everything, run by run."""
        context, names = self._context, [row.key for row in rows]
        for row in rows:
            self._try(lambda row=row: context.facts.now(row))  # type: ignore[misc]
        config = sorted(columns(context, ColumnsAsk()).config, key=lambda one: (-one.runs, len(one.column)))
        own = [column for column in own_columns() if column not in ("status", "progress")]  # each row has these
        shown = [*own, *[entry.column for entry in config if entry.varies][:_MOST_SETTINGS]]
        many = min(MOST_COLUMNS - len(shown), max(6, _MOST_CELLS // max(1, len(rows))))
        shown += [f"last:{key}" for key in dict.fromkeys([*_RETURNS, *self._common_keys(rows)])][:many]
        whole = RunsAsk(columns=shown, limit=context.limits.rows, sections=None)
        self._json("runs.json", lambda: self._table(whole, rows))
        groups = self._groups(whole, rows)
        self._json("columns.json", lambda: columns(context, ColumnsAsk()))
        every = held_rows.keys(context, KeysAsk(runs=names))
        self._listed = {key.key for key in every.keys}
        self._json("keys.json", lambda: every)
        self._json("boards.json", self._boards)
        self._json("findings.json", lambda: findings.findings(context, FindingsAsk(runs=names)))
        axes = {row.key: held_rows.default_axis(context, row) for row in rows}
        marks = self._try(lambda: health.marks(context, MarksAsk(runs=names)))
        if marks is not None:
            self._write("marks.json", plain_json({**msgspec.to_builtins(marks), "axes": axes}))
        for number, row in enumerate(rows):
            self._run(row)
            self._report(f"{number + 1} of {len(rows)}: {row.about.get('project')}/{row.about.get('name')} {row.key}")
        self._curves(groups)
        self._compared(groups)
        self._json("newest.json", self._newest)
        self._json("hello.json", self._hello)  # last: an unfinished copy is not valid

    def _newest(self) -> dict[str, str]:
        return {table: one_run.newest(self._context, one_run.NewestAsk(table=table)).run for table in _OPENED_BY}

    def _hello(self) -> dict[str, object]:
        greeting: dict[str, object] = msgspec.to_builtins(hello(self._context, HelloAsk()))
        note = _NOTE.format(points=POINTS)
        title = os.path.basename(str(greeting["title"])) or "runs"
        return {
            **greeting,
            "title": title,
            "roots": [title],
            "edit_token": "",
            "static": {"made": time.time(), "points": POINTS, "note": note},
        }

    def _boards(self) -> object:
        """The boards, each with what a copy can answer of it."""
        answer = boards(self._context, BoardsAsk())
        for board in answer.boards:
            board.state = {word: said for word, said in board.state.items() if word in _OPENS_WITH}
        answer.boards = [board for board in answer.boards if board.state]
        return answer

    def _common_keys(self, rows: list[RunRow]) -> list[str]:
        facts = [known for row in rows if (known := self._context.facts.known(row)) is not None]
        return telling_first(Counter(key for known in facts for key in known.latest))

    def _table(self, ask: RunsAsk, rows: list[RunRow]) -> dict[str, object]:
        """The table of runs with what choosing some of them takes: which columns have cells, where runs are to end."""
        answer: dict[str, object] = msgspec.to_builtins(table_of_runs(self._context, ask))
        return {**answer, "cells": ask.columns, "planned": {row.key: row.about.get("total") or {} for row in rows}}

    def _groups(self, whole: RunsAsk, rows: list[RunRow]) -> list[TableRow]:
        """The table with its groups, all open; and its rows while they are folded."""
        ask = msgspec.structs.replace(whole, group_by=["auto"])
        folded = table_of_runs(self._context, ask)
        groups = [row for row in folded.rows if row.kind != "section"]
        opened = msgspec.structs.replace(ask, open=[row.id for row in groups if row.kind == "group"])
        self._json("groups.json", lambda: self._table(opened, rows))
        return groups

    def _run(self, row: RunRow) -> None:
        context, run = self._context, row.key
        folder = f"runs/{run}"
        ask = RunAsk(run=run)
        self._json(f"keys/{run}.json", lambda: held_rows.keys(context, KeysAsk(runs=[run])))
        self._json(f"{folder}/run.json", lambda: one_run.one_run(context, ask))
        self._json(f"{folder}/health.json", lambda: health.health(context, ask))
        self._json(f"{folder}/patch.json", lambda: files.patch(context, ask))
        self._json(f"{folder}/config.json", lambda: files.config(context, ask))
        self._json(f"{folder}/files.json", lambda: files.files(context, ask))
        self._json(f"{folder}/timings.json", lambda: timings.timings(context, TimingsAsk(run=run)))
        self._json(f"{folder}/cost.json", lambda: timings.cost(context, ask))
        self._logs(row)
        self._histograms(row)
        self._json(f"{folder}/timeline.json", lambda: timings.timeline(context, TimelineAsk(run=run, pixels=2_000)))
        self._json(
            f"{folder}/episodes.json",
            lambda: episodes.episodes(context, EpisodesAsk(run=run, limit=_MOST_ROWS, order_by=_NEWEST)),
        )
        self._json(
            f"{folder}/samples.json",
            lambda: samples.samples(context, SamplesAsk(run=run, limit=_MOST_ROWS, order_by=_NEWEST)),
        )
        self._json(
            f"{folder}/text.json", lambda: files.text(context, TextAsk(run=run, limit=_MOST_ROWS, order_by=_NEWEST))
        )
        self._json(
            f"{folder}/media.json", lambda: files.media(context, MediaAsk(run=run, limit=_MOST_ROWS, order_by=_NEWEST))
        )
        self._series(row)
        self._episodes(row)
        self._rollouts(row)
        self._media(row)

    def _logs(self, row: RunRow) -> None:
        """The names of the logs, and the end of each."""
        answer = self._try(lambda: logs.logs(self._context, RunAsk(run=row.key)))
        if answer is None:
            return
        self._write(f"runs/{row.key}/logs.json", plain_json(answer))
        for number, entry in enumerate(answer.logs[:_MOST_LOGS]):
            ask = LogAsk(run=row.key, name=entry.name, lines=self._context.limits.rows)
            self._json(f"runs/{row.key}/logs/{number}.json", lambda ask=ask: logs.log(self._context, ask))  # type: ignore[misc]

    def _histograms(self, row: RunRow) -> None:
        """Those of the first keys, by the index of the key; of a run without any, an answer that says so."""
        first = self._try(lambda: histograms.histograms(self._context, HistogramsAsk(run=row.key)))
        if first is None:
            return
        self._write(f"runs/{row.key}/histograms/0.json", plain_json(first))
        for number, key in enumerate(first.keys[1:_MOST_HISTOGRAMS], 1):
            ask = HistogramsAsk(run=row.key, key=key)
            path = f"runs/{row.key}/histograms/{number}.json"
            self._json(path, lambda ask=ask: histograms.histograms(self._context, ask))  # type: ignore[misc]

    def _series(self, row: RunRow) -> None:
        keys = self._keys_of(row.key)
        index: dict[str, dict[str, str]] = {key: {} for key in keys}
        for word, x in (("default", None), ("time", "time")):
            self._read_ahead(row, SeriesQuestion(keys=keys, x=x, points=POINTS))
            for number, key in enumerate(keys):
                name = f"{number}{'t' if x else ''}.bin"
                ask = SeriesAsk(runs=[row.key], keys=[key], x=x, points=POINTS, ghosts=True)
                if self._frames(f"series/{row.key}/{name}", lambda ask=ask: series.many_series(self._context, ask)):  # type: ignore[misc]
                    index[key][word] = name
        self._json(f"series/{row.key}/index.json", lambda: index)

    def _read_ahead(self, row: RunRow, ask: SeriesQuestion) -> None:
        """Read and keep the rows of many keys together; one by one, each would read all rows of its stream again."""
        self._try(lambda: series.read_series(self._context, row, ask.keys, ask))

    def _episodes(self, row: RunRow) -> None:
        """The episodes with a video or traces."""
        rows = self._try(lambda: episodes.shown_ids(self._context, row).to_pylist())
        if not rows:
            return
        chosen = [str(cells["episode_id"]) for cells in rows if cells["video"] or cells["traces"]][-_MOST_EPISODES:]
        ids = [str(cells["episode_id"] or "") for cells in rows]
        videos, traced = (sum(bool(cells[name]) for cells in rows) for name in ("video", "traces"))
        self._json(f"runs/{row.key}/ids.json", lambda: {"ids": ids, "videos": videos, "traced": traced})
        scatter = ScatterAsk(run=row.key, y="return")
        self._frames(f"runs/{row.key}/scatter.bin", lambda: episodes.scatter(self._context, scatter))
        for identity in dict.fromkeys(chosen):
            if not _PLAIN.fullmatch(identity) or identity.strip(".") == "":
                continue
            ask = EpisodeAsk(run=row.key, episode=identity)
            path = f"runs/{row.key}/episodes/{identity}"
            self._json(f"{path}.json", lambda ask=ask: episodes.episode(self._context, ask))  # type: ignore[misc]
            traces = TracesAsk(run=row.key, episode=identity)
            self._frames(f"{path}/traces.bin", lambda traces=traces: episodes.traces(self._context, traces))  # type: ignore[misc]

    def _rollouts(self, row: RunRow) -> None:
        """The newest rollouts, each as a conversation, the prompts, and the fates of all."""
        run = row.key
        ask = RolloutsAsk(run=run, limit=_MOST_ROLLOUTS, order_by=_NEWEST_ROLLOUTS)
        found = self._try(lambda: rollouts.rollouts(self._context, ask))
        if found is None:
            return
        self._write(f"runs/{run}/rollouts.json", plain_json(found))
        if not found.rows:
            return
        grouped = RolloutsAsk(run=run, limit=_MOST_ROLLOUTS, order_by=_NEWEST_ROLLOUTS, by_group=True)
        self._json(f"runs/{run}/groups.json", lambda: rollouts.rollouts(self._context, grouped))
        self._json(
            f"runs/{run}/prompts.json", lambda: fates.prompts(self._context, PromptsAsk(run=run, limit=_MOST_ROWS))
        )
        self._json(f"runs/{run}/fates.json", lambda: fates.fates(self._context, FatesAsk(run=run)))
        for one in found.rows:
            name = str(one.id)
            if _PLAIN.fullmatch(name) and name.strip("."):
                ask = OneRolloutAsk(run=run, id=name)
                self._json(f"runs/{run}/rollouts/{name}.json", lambda ask=ask: rollouts.one_rollout(self._context, ask))  # type: ignore[misc]

    def _media(self, row: RunRow) -> None:
        """Pictures and videos; only the types that a browser shows."""
        answer = self._try(
            lambda: files.media(self._context, MediaAsk(run=row.key, limit=_MOST_ROWS, order_by=_NEWEST))
        )
        root = os.path.realpath(row.folder)
        for entry in answer.media if answer is not None else ():
            path = health.there(root, entry.path)
            if path is None or not files.is_shown(os.path.join(root, path)):
                continue
            copy = self._data.parent / "media" / row.key / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(os.path.join(root, path), copy)

    def _curves(self, rows: list[TableRow]) -> None:
        """Every key of each group; the pages find a group by its runs."""
        index: dict[str, dict[str, str]] = {}
        number = 0
        for row in rows:
            if row.kind != "group":
                continue
            group = NamedRuns(name=row.id, runs=row.runs)
            names = sorted({key for run in group.runs for key in self._keys_of(run)})
            members = [self._context.row(run) for run in group.runs]
            stamps = Stamps()
            for nth, key in enumerate(names):
                rows_of_runs(self._context, members, key, None, stamps, names[nth + 1 :])  # read together, and kept
                ask = CurvesAsk(by=[group], keys=[key])
                name = f"{number}.bin"
                if self._frames(f"curves/{name}", lambda ask=ask: curves.group_curves(self._context, ask)):  # type: ignore[misc]
                    index.setdefault(" ".join(sorted(group.runs)), {})[key] = name
                    number += 1
        self._json("curves/index.json", lambda: index)

    def _compared(self, rows: list[TableRow]) -> None:
        """The default comparison of the page: the first groups of a project, by the keys that they share."""
        index: list[dict[str, object]] = []
        for project in dict.fromkeys(row.section for row in rows):
            groups = [_as_group(row) for row in rows if row.section == project]
            groups = groups if len(groups) <= _FEW_COMPARED else groups[:_MOST_COMPARED]
            have = Counter(key for group in groups for run in group.runs for key in self._keys_of(run))
            common = telling_first(have)
            for key in common[:_MOST_KEYS]:
                name = f"{len(index)}.json"
                ask = CompareAsk(metric=key, by=groups)
                answer = self._try(lambda ask=ask: verdicts.comparison(self._context, ask))  # type: ignore[misc]
                if answer is not None:
                    self._write(f"compare/{name}", plain_json(answer))
                    index.append({"key": key, "runs": [group.runs for group in groups], "file": name})
            different = DiffAsk(by=groups, kinds=["config"])
            name = f"diff{len(index)}.json"
            self._json(f"compare/{name}", lambda ask=different: verdicts.difference(self._context, ask))  # type: ignore[misc]
            index.append({"key": None, "runs": [group.runs for group in groups], "file": name})
        self._json("compare/index.json", lambda: index)
        self._sweeps()

    def _sweeps(self) -> None:
        """The sweep of each project by its first keys."""
        index: list[dict[str, object]] = []
        first = self._try(lambda: sweeps.sweep(self._context, SweepAsk()))
        for project in first.projects[:_MOST_COMPARED] if first is not None else ():
            names = [""]
            for key in names:
                ask = SweepAsk(project=project.project, metric=key)
                answer = self._try(lambda ask=ask: sweeps.sweep(self._context, ask))  # type: ignore[misc]
                if answer is None:
                    continue
                if not key:
                    names += [name for name in answer.keys if name != answer.key][: _MOST_KEYS - 1]
                name = f"{len(index)}.json"
                self._write(f"sweep/{name}", plain_json(answer))
                index.append({"project": answer.project, "key": answer.key, "file": name})
        self._json("sweep/index.json", lambda: index)

    def _keys_of(self, run: str) -> list[str]:
        """The keys of a run, and the page's names for keys that other runs call differently."""
        held = self._try(lambda: held_rows.contents(self._context, self._context.row(run)))
        if held is None:
            return []
        return [*held.keys, *(name for name in held.canonical.values() if name in self._listed - {*held.keys})]

    def _try(self, work: Callable[[], Given]) -> Given | None:
        """The result of work; None if a run cannot be read, which must not spoil the copy of the others."""
        try:
            return work()
        except (RollbookError, OSError):
            return None

    def _json(self, name: str, make: Callable[[], object]) -> None:
        answer = self._try(make)
        if answer is not None:
            self._write(name, plain_json(answer))

    def _frames(self, name: str, make: Callable[[], Streamed]) -> bool:
        body = self._try(lambda: b"".join(make().pieces))
        if body is None:
            return False
        self._write(name, body)
        return True

    def _write(self, name: str, body: bytes) -> None:
        path = self._data.joinpath(*name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
