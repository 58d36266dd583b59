"""Health, logs, files, configuration, media and texts of a run; boards, edits, SQL; the verdict about groups."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rollbook.server.schemas.causes import LogLine, TextLine
from rollbook.server.schemas.common import Alert, Answer, Ask, Cell, Column, Media, Num, OfRun, Row
from rollbook.server.schemas.curves import Group
from rollbook.server.schemas.runs import Change, TableRow

__all__ = [
    "AlertsAnswer",
    "AlertsAsk",
    "Board",
    "BoardAsk",
    "BoardName",
    "BoardsAnswer",
    "BoardsAsk",
    "CompareAnswer",
    "CompareAsk",
    "CompareGroup",
    "ComparePair",
    "ConfigAnswer",
    "ConfigAttempt",
    "Deleted",
    "DiffAnswer",
    "DiffAsk",
    "DiffRow",
    "EditAnswer",
    "EditAsk",
    "Fields",
    "FileAsk",
    "FileEntry",
    "FilesAnswer",
    "HealthAnswer",
    "LeftOut",
    "LogAnswer",
    "LogAsk",
    "LogFile",
    "LogsAnswer",
    "MediaAnswer",
    "MediaAsk",
    "PlanRow",
    "Profile",
    "QuietRule",
    "RunTableAsk",
    "SeedValue",
    "SqlAnswer",
    "SqlAsk",
    "TextAnswer",
    "TextAsk",
]


class QuietRule(msgspec.Struct, kw_only=True):
    """A rule that looked and found nothing."""

    rule: str
    label: str
    checked: str


class HealthAnswer(Answer, kw_only=True):
    """What is wrong, what was looked at and is quiet.

    Attributes:
      promise: how often the rules raise a false alarm, where that was measured.
      host_keys: keys of metrics about the machine; their curves are asked for with x = "time".
    """

    alerts: list[Alert]
    quiet: list[QuietRule]
    rules: int
    promise: str | None
    host_keys: list[str]


class AlertsAsk(Ask, kw_only=True):
    """Of which runs; all without."""

    runs: list[str] | None = None


class AlertsAnswer(Answer, kw_only=True):
    """How many alerts there are.

    Attributes:
      by_run: run -> level -> how many.
    """

    total: int
    by_run: dict[str, dict[str, int]]
    newest: list[Alert]


class LogFile(msgspec.Struct, kw_only=True):
    """A log that can be read."""

    name: str
    label: str
    bytes: int
    kind: Literal["file", "text"]


class LogsAnswer(Answer, kw_only=True):
    """The logs of a run."""

    logs: list[LogFile]


class LogAsk(OfRun, kw_only=True):
    """A part of a log; its end without a place.

    Attributes:
      start: lines from this byte on; before: the lines that end there; near: those around a moment (unix seconds).
      search: only lines with these words.
    """

    name: str
    start: int | None = msgspec.field(name="from", default=None)
    before: int | None = None
    near: float | None = None
    lines: int = 200
    search: str | None = None


class LogAnswer(Answer, kw_only=True):
    """Lines of a log.

    Attributes:
      start, end: the bytes that were looked at; size: of the file.
    """

    name: str
    lines: list[LogLine]
    start: int
    end: int
    size: int


class FileEntry(msgspec.Struct, kw_only=True):
    """A file of a run."""

    path: str
    bytes: int
    modified: float
    kind: Literal["checkpoint", "config", "log", "media", "data", "other"]


class FilesAnswer(Answer, kw_only=True):
    """The files of a run and its checkpoints.

    Attributes:
      bytes: of all files; truncated: more files than are listed.
    """

    files: list[FileEntry]
    checkpoints: list[Row]
    bytes: int
    truncated: bool


class FileAsk(OfRun, kw_only=True):
    """A file by its path inside the run."""

    path: str


class MediaAsk(OfRun, kw_only=True):
    """Which pictures and films."""

    kind: str | None = None
    key: str | None = None
    x: str | None = None
    offset: int = 0
    limit: int = 100


class MediaAnswer(Answer, kw_only=True):
    """A window of the pictures and films, newest first."""

    total: int
    keys: list[str]
    media: list[Media]


class TextAsk(OfRun, kw_only=True):
    """Which texts."""

    key: str | None = None
    search: str | None = None
    x: str | None = None
    offset: int = 0
    limit: int = 200


class TextAnswer(Answer, kw_only=True):
    """A window of the texts, newest first."""

    total: int
    keys: list[str]
    rows: list[TextLine]


class RunTableAsk(OfRun, kw_only=True):
    """A window of any table."""

    table: str
    offset: int = 0
    limit: int = 100
    attempts: Literal["effective", "all"] = "effective"


class ConfigAttempt(msgspec.Struct, kw_only=True):
    """What one life of a run was started with, and what that changed."""

    n: int
    started: float | None
    config: dict[str, Any]
    changes: list[Change]
    git: dict[str, Any] | None
    packages: dict[str, Any] | None


class ConfigAnswer(Answer, kw_only=True):
    """The configuration of each attempt, oldest first."""

    attempts: list[ConfigAttempt]


class BoardsAsk(Ask, kw_only=True):
    """Nothing to say."""


class Board(msgspec.Struct, kw_only=True):
    """A saved view.

    Attributes:
      state: whatever the page wants to find again.
    """

    name: str
    state: dict[str, Any]
    modified: float = 0.0


class BoardsAnswer(Answer, kw_only=True):
    """All saved views, by name."""

    boards: list[Board]


class BoardAsk(Ask, kw_only=True):
    """A view to save under a name."""

    board: str
    state: dict[str, Any]


class BoardName(Ask, kw_only=True):
    """A saved view."""

    board: str


class Deleted(Answer, kw_only=True):
    """It is gone."""

    name: str


class Fields(Ask, kw_only=True):
    """What to set; what is left out stays."""

    name: str | None = None
    notes: str | None = None
    tags: list[str] | None = None
    group: str | None = None
    archived: bool | None = None


class EditAsk(Ask, kw_only=True):
    """Changes to the manifests of some runs."""

    runs: list[str]
    set: Fields | None = None
    add_tags: list[str] = []
    remove_tags: list[str] = []


class LeftOut(msgspec.Struct, kw_only=True):
    """A run that was left out, and why."""

    run: str
    why: str


class EditAnswer(Answer, kw_only=True):
    """The runs as they are now."""

    runs: list[TableRow]
    refused: list[LeftOut]


class SqlAsk(Ask, kw_only=True):
    """A question in SQL about one run (its tables) or several (the same, with a column run)."""

    runs: list[str]
    query: str
    limit: int = 1_000


class SqlAnswer(Answer, kw_only=True):
    """Rows; more: whether there are more than were asked for."""

    columns: list[Column]
    rows: list[list[Cell]]
    more: bool


class CompareAsk(Ask, kw_only=True):
    """Which group is better.

    Attributes:
      at: up to where on the axis; null: what every finished run has reached.
      score: how a run's values up to there become one number: "mean of the last 10%", "last", "max" …
      floor: what a run that crashed is worth; null: it is left out, and said.
    """

    groups: list[Group]
    key: str
    x: str | None = None
    at: float | None = None
    score: str = "mean of the last 10%"
    statistic: Literal["iqm", "mean", "median"] = "iqm"
    floor: float | None = None


class SeedValue(msgspec.Struct, kw_only=True):
    """What one run scores; counted: whether that is among the scores (runs that go on or crashed are not)."""

    run: str
    seed: int | None
    value: Num
    counted: bool


class CompareGroup(msgspec.Struct, kw_only=True):
    """What a group scores."""

    name: str
    runs: list[str]
    n: int
    missing: list[LeftOut]
    centre: Num
    low: Num
    high: Num
    method: str
    claim: float | None
    sentence: str
    seeds: list[SeedValue]


class ComparePair(msgspec.Struct, kw_only=True):
    """One group beside another.

    Attributes:
      verdict: of a against b.
      difference: of the means, a - b; low, high: its repeated interval where there is a plan.
      better: the probability that a run of a scores more than one of b.
      evidence: against "both are alike"; may be looked at any time; `decides` is how much decides.
    """

    a: str
    b: str
    verdict: Literal["better", "worse", "same", "undecided", "cannot say"]
    sentence: str
    difference: Num
    low: Num
    high: Num
    better: Num
    evidence: Num
    decides: float


class Profile(msgspec.Struct, kw_only=True):
    """The share of runs above a score, by group."""

    tau: list[float]
    groups: dict[str, list[Num]]


class PlanRow(msgspec.Struct, kw_only=True):
    """Whether a group has enough seeds."""

    group: str
    n: int
    sd: Num
    todo: str


class PartedPair(msgspec.Struct, kw_only=True):
    """From where on two groups stay apart at each point; x: null where they do not."""

    a: str
    b: str
    ahead: str | None
    x: Num
    last: Num
    sentence: str


class PlanLook(msgspec.Struct, kw_only=True):
    """One look of a plan at a pair; difference: of the means, a - b, with its repeated interval."""

    a: str
    b: str
    n: int
    level: float
    difference: Num
    low: Num
    high: Num
    outcome: str


class PlanVerdict(msgspec.Struct, kw_only=True):
    """What a plan says of a pair now; chance: that its end decides, if things go on as they are."""

    a: str
    b: str
    outcome: str
    better: str | None
    chance: Num
    sentence: str


class StoredPlan(msgspec.Struct, kw_only=True):
    """A comparison that was planned beforehand and is kept beside the runs."""

    name: str
    metric: str
    by: str
    score: str
    arms: list[str]
    n_min: int
    n_max: int
    alpha: float
    looks: list[PlanLook]
    verdicts: list[PlanVerdict]


class CompareAnswer(Answer, kw_only=True):
    """The comparison of groups: a sentence first, then what it rests on.

    Attributes:
      parted: of each pair of groups, along the axis.
      plans: those kept beside the runs, of this metric first.
    """

    key: str
    x: str
    at: Num
    at_why: str
    score: str
    statistic: str
    level: float
    sentence: str
    notes: list[str]
    groups: list[CompareGroup]
    pairs: list[ComparePair]
    profile: Profile | None
    plan: list[PlanRow]
    parted: list[PartedPair] = []
    plans: list[StoredPlan] = []


class DiffAsk(Ask, kw_only=True):
    """Of which groups."""

    groups: list[Group]


class DiffRow(msgspec.Struct, kw_only=True):
    """A field of the configuration in each group; {distinct, values} where it differs inside."""

    path: str
    values: list[Cell]
    differs: bool


class DiffAnswer(Answer, kw_only=True):
    """What differs between the groups, differences first."""

    groups: list[str]
    rows: list[DiffRow]
    equal: int
