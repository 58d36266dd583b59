"""The table of runs, one run, and the keys of a choice of runs."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rollbook.server.schemas.common import Answer, Ask, Cell, OfRun, Sort

__all__ = [
    "Attempt",
    "Axis",
    "Change",
    "ColorsAnswer",
    "ColorsAsk",
    "ColumnsAnswer",
    "ColumnsAsk",
    "ConfigColumn",
    "Drawn",
    "Failure",
    "Hello",
    "HelloAsk",
    "Key",
    "KeysAnswer",
    "KeysAsk",
    "Limits",
    "MetricColumn",
    "RunAnswer",
    "RunAsk",
    "RunsAnswer",
    "RunsAsk",
    "TableRow",
]


class HelloAsk(Ask, kw_only=True):
    """Nothing to say."""


class Limits(msgspec.Struct, kw_only=True):
    """How much may be asked for at once."""

    points: int
    rows: int
    runs: int
    series: int


class Hello(Answer, kw_only=True):
    """What the page has to know first.

    Attributes:
      title: where the runs lie, short.
      roots: where they lie.
      runs, live: how many there are, and how many are running.
      writable: whether tags, notes and boards can be changed.
      edit_token: to be sent as X-Rollbook-Edit with every change.
      only: the run that the server was started for, if it was for one.
      colors: the kept colours of runs: [alone, in a group], from 1; 0: none yet.
    """

    version: str
    server: str
    title: str
    roots: list[str]
    runs: int
    live: int
    writable: bool
    edit_token: str
    notebook: bool
    only: str | None
    limits: Limits
    colors: dict[str, list[int]]


class ColorsAsk(Ask, kw_only=True):
    """Colours to keep, from 1 to 12. One that is kept already stays, unless a hand chose another.

    Attributes:
      alone: run -> its colour where it is drawn alone.
      grouped: run -> the colour of the group that it is drawn in.
      chosen: whether a hand chose them.
    """

    alone: dict[str, int] = {}
    grouped: dict[str, int] = {}
    chosen: bool = False


class ColorsAnswer(Answer, kw_only=True):
    """The colours of these runs as they are kept now: [alone, in a group]; 0: none yet."""

    colors: dict[str, list[int]]


class RunsAsk(Ask, kw_only=True):
    """Which rows of the table of runs.

    Attributes:
      filter: a condition, such as "config.lr < 3e-4 and status == 'running'".
      search: words that must all occur in name, project, id, tags, notes or group.
      sort: columns; newest first without.
      group_by: columns whose equal values make a group; ["auto"]: all configuration that varies, but for seeds.
      sections: a row per project before its runs.
      open: groups whose members are listed.
      columns: the cells that are wanted.
      archived: also archived runs.
      offset, limit: a window of the flat rows.
      drawn: runs and groups whose keys are wanted in the same answer; draw_first: where none is named, of so many
        of the first, not beyond their project.
    """

    filter: str | None = None
    search: str | None = None
    sort: list[Sort] = []
    group_by: list[str] | None = None
    sections: bool | None = None
    open: list[str] = []
    columns: list[str] = []
    archived: bool = False
    offset: int = 0
    limit: int = 200
    drawn: list[str] = []
    draw_first: int = 0


class TableRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A row of the table: a section (a project), a group, or a run.

    Attributes:
      kind: which of them; id: its name among the rows.
      run, x, at, total: of a run: its id, its usual axis, the last reading there, and how far it is to go.
      runs: of a group: its members. run_count: of a section or group.
      values: of a group: what its members have in common.
      status: of a run: its status; counts: of a section or group: how many have which status.
      done: of a group: how far its runs have come together, 0 to 1.
      cells: column -> cell; in a group a metric is {centre, low, high, n, method, sentence}, a configuration that
        differs is {distinct, values}.
      pending: columns whose cells are still being read.
      damaged: what of a run cannot be read, or how many members of a group have such parts; "" where all is well.
    """

    kind: Literal["section", "group", "run"]
    id: str
    name: str
    run: str | None = None
    project: str = ""
    seed: int | None = None
    group: str | None = None
    job_type: str | None = None
    status: str = ""
    counts: dict[str, int] = {}
    created: float | None = None
    ended: float | None = None
    updated: float | None = None
    host: str = ""
    tags: list[str] = []
    notes: str = ""
    archived: bool = False
    attempts: int = 0
    x: str = ""
    at: int | None = None
    total: int | None = None
    runs: list[str] = []
    run_count: int = 0
    values: dict[str, Cell] = {}
    cells: dict[str, Cell] = {}
    pending: list[str] = []
    damaged: str = ""
    open: bool = False
    done: float | None = None
    section: str = ""
    member_of: str | None = None
    alerts: int = 0


class RunsAnswer(Answer, kw_only=True):
    """A window of the table of runs.

    Attributes:
      total, matched, archived, live: runs known; that fit; that are archived; that are running.
      rows_total: flat rows with this choice of groups.
      version: changes when any of this may have changed.
      pending: metric cells that are still being read.
      did_you_mean: where a filter names a field that no run has.
      unreadable: why folders with a run.json are not among the runs, 20 at most; unreadable_total: how many there are.
      drawn: what the runs hold that are drawn; None where nobody asked, or they are too many to keep the table waiting.
    """

    total: int
    matched: int
    archived: int
    live: int
    rows_total: int
    offset: int
    rows: list[TableRow]
    version: str
    pending: int
    did_you_mean: str | None = None
    unreadable: list[str] = []
    unreadable_total: int = 0
    drawn: Drawn | None = None


class ColumnsAsk(Ask, kw_only=True):
    """Of which runs; all without."""

    runs: list[str] | None = None


class ConfigColumn(msgspec.Struct, kw_only=True):
    """A field of the configurations.

    Attributes:
      runs: how many have it; distinct: how many values there are; varies: whether it differs between runs.
    """

    column: str
    runs: int
    distinct: int
    varies: bool
    examples: list[Cell]


class MetricColumn(msgspec.Struct, kw_only=True):
    """A key of metrics, and how many of the runs that were looked at have it."""

    key: str
    runs: int


class ColumnsAnswer(Answer, kw_only=True):
    """What can stand in the table; pending: runs whose keys are still being read."""

    pending: int
    config: list[ConfigColumn]
    summary: list[ConfigColumn]
    metrics: list[MetricColumn]


class RunAsk(OfRun, kw_only=True):
    """Which run."""


class Change(msgspec.Struct, kw_only=True):
    """A value of the configuration that an attempt changed."""

    path: str
    before: Cell
    after: Cell


class Attempt(msgspec.Struct, kw_only=True):
    """One life of a run.

    Attributes:
      effective: whether (a part of) it counts.
      config_changes: beside its parent.
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


class RunAnswer(Answer, kw_only=True):
    """Everything that a run says about itself.

    Attributes:
      made_by: what another tool's run is, and where its files lie; "" for a run of rollbook.
      why: in a line, why it has the status that it has. failure: the whole of it; None where nothing was noted.
      tables: rows of each table.
      problems: what cannot be read, and why.
      resume_line: Python that continues it.
    """

    run: str
    id: str
    path: str
    project: str
    name: str
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
    config: dict[str, Any]
    summary: dict[str, Any]
    drops: dict[str, int]
    attempts: list[Attempt]
    tables: dict[str, int]
    problems: list[str]
    resume_line: str


class KeysAsk(Ask, kw_only=True):
    """Of which runs."""

    runs: list[str]


class Key(msgspec.Struct, kw_only=True):
    """A key of metrics.

    Attributes:
      scope, name: its parts; runs: how many have it; canonical: the name that means the same in every framework.
    """

    key: str
    scope: str
    name: str
    runs: int
    canonical: str | None


class Axis(msgspec.Struct, kw_only=True):
    """What may be the x-axis."""

    x: str
    label: str
    kind: Literal["clock", "time", "relative"]
    runs: int


class KeysAnswer(Answer, kw_only=True):
    """What the chosen runs hold.

    Attributes:
      tables: table -> how many of the runs have rows in it.
    """

    keys: list[Key]
    axes: list[Axis]
    default_x: str
    tables: dict[str, int]


class Drawn(msgspec.Struct, kw_only=True):
    """The runs that are drawn, in the order of the table, and what they hold; of very many runs, what some hold."""

    runs: list[str]
    keys: KeysAnswer
    is_part: bool = False
