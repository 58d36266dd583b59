"""The questions about one run. A field is an option; each door is made from these (`schema/question.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from rollbook.errors import BadInput
from rollbook.schema.manifest import Attempts
from rollbook.schema.question import Question, words


class Cause(Question, frozen=True):
    """What went on near a point of a run: the keys that left their usual range there, and what every table has."""

    at: Annotated[float, words("the position on the axis.")]
    key: Annotated[str | None, words("the key that the point is on; canonical names are accepted.")] = None
    x: Annotated[str | None, words('the axis: a clock, a key, "time" or "relative"; default: the run\'s own.')] = None
    rows: Annotated[int, words("the largest number of rows of each table.")] = 6
    window: Annotated[
        float | None,
        words("the distance on the axis that counts as near; by default it follows from how often the key was logged."),
    ] = None
    everything: Annotated[
        bool,
        words(
            "also the newest value of each key at or before the point, and the nearest rows of the other tables that "
            "know the clock."
        ),
    ] = False


def _check_amounts(**amounts: int | None) -> None:
    """Raises: BadInput: a number of rows is below 0."""
    for name, number in amounts.items():
        if number is not None and number < 0:
            raise BadInput(f"{name}={number}: a number of rows is not below 0.", "Give 0 or more")


class Window(Question, frozen=True):
    """Which rows of a table, in which order."""

    where: Annotated[str | None, words('a condition in SQL, such as "reward > 1".')] = None
    order_by: Annotated[
        str | None,
        words('columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.'),
    ] = None
    limit: Annotated[int | None, words("the largest number of rows.", amount=True)] = None
    attempts: Annotated[Attempts, words('"effective", "all", or attempt numbers.')] = "effective"
    search: Annotated[str | None, words("words that must all occur in the texts of a row; case is ignored.")] = None
    offset: Annotated[int, words("how many matching rows to skip.")] = 0

    def __post_init__(self) -> None:
        _check_amounts(limit=self.limit, offset=self.offset)


class Rows(Window, frozen=True, kw_only=True):
    """Rows of any table of a run, with the columns that identify each row."""

    table: Annotated[str, words("the table, such as checkpoints, or one that `record` made.")]


class Samples(Window, frozen=True):
    """The logged samples: what a model generated or was trained on."""

    unique: Annotated[
        bool,
        words(
            "one row for each different item: its newest, with `times_seen`, `first_seen` and `last_seen` (batches) "
            "and `first_time`. `time` is then when it was last seen, and `where` applies to these rows."
        ),
    ] = False


class Episodes(Window, frozen=True):
    """The episodes of a run, one row each."""

    outcome: Annotated[Sequence[Literal["terminated", "truncated", "cut"]], words("only those that ended so.")] = ()
    video: Annotated[bool, words("only those with a video.")] = False
    traces: Annotated[bool, words("only those whose steps were kept.")] = False


class Text(Window, frozen=True):
    """The logged texts of a run; notes have the key "note"."""

    key: Annotated[str | None, words("only this one, in full.")] = None


class MediaQuestion(Window, frozen=True):
    """The pictures, videos and figures of a run."""

    kind: Annotated[
        Literal["image", "video", "figure"] | None, words('"image", "video" or "figure"; default: all.')
    ] = None
    key: Annotated[str | None, words("only this one, in full.")] = None


class Checkpoints(Window, frozen=True):
    """The checkpoints of a run, one row each; those whose files are there."""

    everything: Annotated[
        bool, words("also those that were deleted or whose file is gone; the column `status` says which.")
    ] = False


_SOLVED = (
    "the reward above which a rollout solved its task, or a condition in SQL such as 'reward >= 1'; default: midway "
    "between the low and the high rewards of the run."
)


class Rollouts(Window, frozen=True):
    """The rollouts of a run, one row each, with their prompt and their newest fate."""

    group: Annotated[str | None, words("the id of a rollout: only those of its group.")] = None
    task: Annotated[str | None, words("the id of a rollout: only those of its task.")] = None
    by_group: Annotated[
        bool,
        words(
            "one row for each group of these rollouts: its newest one, with columns about the group, `group_n` and so "
            "on. Groups are ordered by the means of numbers."
        ),
    ] = False
    solved: Annotated[str | float | None, words(_SOLVED)] = None


_AxisOfRollouts = Annotated[
    Literal["gradient_step", "policy_version"] | None,
    words(
        "the axis: the first update of a rollout, or the policy version that began it; default: the update if at least "
        "half of the rollouts have one, or none has a version."
    ),
]
_OfMode = Annotated[str | None, words("only rollouts of this mode; default: all but evaluations.")]


class Prompts(Window, frozen=True):
    """The prompts of the rollouts, one row each: how often each was tried and solved; the least solved come first."""

    where: Annotated[str | None, words('a condition in SQL, such as "rate < 0.2 and rollouts > 8".')] = None
    order_by: Annotated[
        str | None,
        words('columns in SQL, such as "rollouts desc"; ties, and rows without an order, are sorted by rate.'),
    ] = None
    x: _AxisOfRollouts = None
    mode: _OfMode = None
    solved: Annotated[str | float | None, words(_SOLVED)] = None
    only: Annotated[
        Literal["never", "sometimes", "always"] | None, words("only prompts that are solved this often.")
    ] = None
    stretches: Annotated[
        int, words("into how many equal parts training is divided, at most, for `strip`; 0: without it.", amount=True)
    ] = 0


class RolloutCurves(Question, frozen=True):
    """The rollouts of each update: reward and its parts, length, failures, groups, staleness, waste."""

    x: _AxisOfRollouts = None
    mode: _OfMode = None
    solved: Annotated[str | float | None, words(_SOLVED)] = None


AboutRollouts = Literal[
    "fates", "curves", "history", "prompts", "groups", "staleness", "gaps", "tokens", "tools", "time", "words", "lost"
]


class RolloutAnswer(Question, frozen=True):
    """One of the questions about the rollouts of a run; the most important row of its answer comes first."""

    question: Annotated[
        AboutRollouts,
        words(
            '"fates", "curves" (over training), "history" (of one prompt), "prompts", "groups" (that taught nothing), '
            '"staleness", "gaps" (between sampler and trainer), "tokens" (of the 20 rollouts with the largest gaps), '
            '"tools", "time", "words" (in rewarded answers), "lost".'
        ),
    ]
    rollout_id: Annotated[str | None, words('for "history": one rollout of the prompt.')] = None
    limit: Annotated[int | None, words("the largest number of rows.", amount=True)] = None
    solved: Annotated[str | float | None, words('for "prompts" and "history": ' + _SOLVED)] = None

    def __post_init__(self) -> None:
        _check_amounts(limit=self.limit)


class Stages(Question, frozen=True):
    """Where the time of a run went: each stage that it timed, the one that took longest itself first."""

    x: Annotated[
        str | None,
        words('the axis of `start`, `stop` and `stretches`: a clock, "time" or "relative"; default: the run\'s own.'),
    ] = None
    start: Annotated[float | None, words("only what was timed from this position on.")] = None
    stop: Annotated[float | None, words("only what was timed before this position.")] = None
    attempts: Annotated[Attempts, words('"effective", "all", or attempt numbers.')] = "effective"
    stretches: Annotated[
        int, words("into how many equal parts the axis is divided, for `strip`; 0: without it.", amount=True)
    ] = 0

    def __post_init__(self) -> None:
        _check_amounts(stretches=self.stretches)


class Novelty(Question, frozen=True):
    """How many samples of a run were new, and how many had been seen before, over training."""

    x: Annotated[
        str | None,
        words('the axis: a clock, a column of the samples, "time" or "relative"; default: the run\'s own.'),
    ] = None
    points: Annotated[int, words("into how many equal parts the axis is divided, at most.", amount=True)] = 60

    def __post_init__(self) -> None:
        if self.points < 1:
            raise BadInput(f"points={self.points}: ask for at least 1")


class Unused(Question, frozen=True):
    """What a run was not trained on: the groups of samples of one batch, by what became of them, and why."""

    at: Annotated[float | None, words("the position of the batch: the nearest one is taken; default: the last.")] = None
    x: Annotated[
        str | None,
        words('the axis: a clock, a column of the samples, "time" or "relative"; default: the run\'s own.'),
    ] = None


class Log(Question, frozen=True):
    """Lines of a log of a run: what its program printed, stdout and stderr, or another log."""

    name: Annotated[
        str, words('which log, by its name or label; "" is the first, so what the program printed if that was kept.')
    ] = ""
    lines: Annotated[int, words("how many; the last ones.", amount=True)] = 200
    search: Annotated[str, words("only lines with all these words.")] = ""
    near: Annotated[
        float | None, words("the lines around a moment (unix seconds) instead; all of them, whatever `search` says.")
    ] = None

    def __post_init__(self) -> None:
        _check_amounts(lines=self.lines)


ONE_RUN: tuple[type[Question], ...] = (
    Cause,
    Rows,
    Samples,
    Episodes,
    Text,
    MediaQuestion,
    Checkpoints,
    Rollouts,
    Prompts,
    RolloutCurves,
    RolloutAnswer,
    Stages,
    Novelty,
    Unused,
    Log,
)
"""All of them. `Book`, the command line, the server and the agents' tools have a door for each, with its name."""
