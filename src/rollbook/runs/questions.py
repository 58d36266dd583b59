"""The questions about runs. A field is an option; each door is made from these (`schema/question.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from rollbook.schema.question import Question, words

At: TypeAlias = float | Literal["own end", "common end"]
"""Where on the axis scores end."""
Groups: TypeAlias = Mapping[str, Sequence[str]]
"""{label: ids, names or paths of runs}."""
Fields: TypeAlias = str | Sequence[str]
"""Columns that form groups: a text, several with commas between them; or a list. "auto": what differs."""


class Compare(Question, frozen=True):
    """Which group is better, how certain that is, and what would decide it."""

    metric: _Metric = ""
    by: Annotated[
        Fields | Groups,
        words(
            'the field that forms the groups, or several, such as "config.algo, config.lr"; "auto": what differs in '
            "the configuration; or the groups themselves, {label: ids, names or paths of runs}.",
            commas=True,
        ),
    ] = "auto"
    score: _Score = "mean of the last 10%"
    at: _End = "own end"
    x: _AxisOfScores = None
    task: Annotated[
        str | None,
        words(
            'the field with a run\'s task, such as "config.env"; seeds are matched across tasks. By default, '
            "environments are tasks where every seed of every group ran in all of them; other ones are judged each by "
            "itself."
        ),
    ] = None
    normalise: _Normalise = None
    statistic: Annotated[
        Literal["iqm", "mean", "median"] | None,
        words(
            '"iqm" (the default), "mean" or "median", for intervals, tables and pictures; verdicts do not depend on it.'
        ),
    ] = None
    against: Annotated[
        str | None,
        words(
            "one group, which each other one is compared with; by default each with each. Fewer pairs need fewer seeds."
        ),
    ] = None
    paired: Annotated[
        bool,
        words("compare equal seeds with each other, where they share something, such as the tasks that they draw."),
    ] = False
    plan: Annotated[
        str | None,
        words(
            "the name of a plan, stored with the runs: for a look after each seed up to an end that is fixed before. "
            "The first call creates it; the question and the seeds of each look are kept.",
            writes=True,
        ),
    ] = None
    seeds: Annotated[
        int | None,
        words("the seeds of each group at the end of a new plan; 22 if none are named.", writes=True),
    ] = None
    delta: Annotated[
        float | None,
        words("the largest difference of means that would not matter, in units of the score."),
    ] = None
    floor: Annotated[
        float | None,
        words(
            "the score of a run that did not finish. Without it such runs are not in intervals, and in verdicts they "
            "count as worse than all that finished."
        ),
    ] = None
    direction: Annotated[
        Literal["higher", "lower"] | None,
        words(
            'whether "higher" or "lower" is better. By default the metric\'s name decides: lower for losses, errors, '
            "regret, costs and durations, else higher."
        ),
    ] = None
    seed: Annotated[int, words("seed of resampling and splits.")] = 0


_Metric = Annotated[
    str, words('a key; canonical names are accepted. "": the score that the runs have, that of tests before training.')
]
_Score = Annotated[
    str | Callable[..., float],
    words('how a run\'s metric becomes one number: "last", "best", "area", "steps to 475" …, see `table`.'),
]
_End = Annotated[
    At,
    words(
        'where on the axis scores end: "own end": each run at its own; "common end": all at the first end of a '
        "finished run; or a position of the axis."
    ),
]
_AxisOfScores = Annotated[str | None, words('the axis that defines "last"; default: the run\'s own.')]
_Normalise = Annotated[
    str | Mapping[str, tuple[float, float]] | None,
    words(
        'for several tasks: {task: (random, human)}, as text in JSON, {"Hopper": [0, 3000]}; or the name of a '
        'published table ("atari", "d4rl").'
    ),
]
"""Options that several questions share."""


class SeriesQuestion(Question, frozen=True):
    """Keys of runs along an axis, each run for itself: rows as they were logged, or points that keep extremes."""

    keys: Annotated[
        str | Sequence[str],
        words("the keys to read; canonical names are accepted. A run that lacks a key has no entry for it."),
    ]
    x: Annotated[
        str | None,
        words(
            'a clock, a key, "time" (unix seconds) or "relative" (seconds since the run began); default: the run\'s '
            "own."
        ),
    ] = None
    points: Annotated[
        int | None,
        words(
            "how many points of each series, each with mean, min and max of its rows; None: every row. Up to four rows "
            "a point come as they were logged: means of so few would show waves that do not exist.",
            amount=True,
        ),
    ] = None
    start: Annotated[float | None, words("only rows with x at or after it.")] = None
    stop: Annotated[float | None, words("only rows with x before it.")] = None
    attempts: Annotated[
        Literal["effective", "all"] | Sequence[int],
        words('"effective": without what rewinds abandoned; "all"; or numbers of attempts.'),
    ] = "effective"


class Diff(Question, frozen=True):
    """What differs between runs, or groups of them: configuration, code, packages, machine."""

    metric: Annotated[str | None, words("a key; the answer then shows which difference goes with which score.")] = None
    score: _Score = "mean of the last 10%"
    by: Annotated[
        Fields | Groups | None,
        words(
            'what is compared: the groups of a field, or of several, such as "config.algo, config.lr"; '
            '"auto"; the groups themselves, {label: ids, names or paths of runs}; or None: each run.',
            commas=True,
        ),
    ] = None
    kinds: Annotated[
        Sequence[Literal["config", "attempt", "code", "packages", "machine"]] | None,
        words('what to look at; None: all. "attempt": settings that differed in earlier attempts of a run.'),
    ] = None


class Curves(Question, frozen=True):
    """A key of groups of runs along an axis: centre, interval and the number of runs at each point."""

    key: _Metric = ""
    by: Annotated[
        Fields | Groups | None,
        words(
            'the field that forms the groups, or several, such as "config.algo, config.lr"; "auto": what differs in '
            "the configuration; the groups themselves, {label: ids, names or paths of runs}; or None: one group.",
            commas=True,
        ),
    ] = "auto"
    x: Annotated[
        str | None,
        words(
            'a clock, a key, "time" (unix seconds) or "relative" (seconds since the run began); default: the axis of '
            "the first run."
        ),
    ] = None
    start: Annotated[float | None, words("where on the axis curves begin.")] = None
    stop: Annotated[float | None, words("where on the axis curves end.")] = None
    points: Annotated[int, words("number of points of the common grid.")] = 200
    statistic: Annotated[
        Literal["iqm", "mean", "median"],
        words("the centre of the runs at each point: their interquartile mean, mean or median."),
    ] = "iqm"
    level: Annotated[float, words("of the intervals, from 0.5 to below 1.")] = 0.95
    whole_curve: Annotated[
        bool,
        words(
            "a simultaneous band, which covers the whole curve of the mean, not each point separately. It is 1.6 to 4 "
            "times as wide."
        ),
    ] = False
    task: Annotated[
        str | None,
        words(
            'the field with a run\'s task, such as "config.env". The band is then over seeds x tasks, and whole seeds '
            "are resampled."
        ),
    ] = None
    normalise: _Normalise = None
    span: Annotated[
        Literal["any", "all"],
        words('"any": from the first to the last x of any run; "all": only where all runs have begun and none ended.'),
    ] = "any"
    spacing: Annotated[Literal["linear", "log"], words('of the points; "log" needs x above 0.')] = "linear"
    interpolation: Annotated[
        Literal["previous", "linear", "none"],
        words(
            'a run\'s value between its rows: "previous": the last one; "linear": on the line between two rows; '
            '"none": only where it has a row.'
        ),
    ] = "previous"
    window: Annotated[
        float | None,
        words("in units of x: the value at x is `reduce` of the run's rows in (x - window, x]."),
    ] = None
    reduce: Annotated[Literal["mean", "median", "max", "min"], words("how the rows of a window become one value.")] = (
        "mean"
    )
    max_gap: Annotated[
        float | None, words("in units of x: no value farther than this from the rows that it comes from.")
    ] = None
    crashed_as: Annotated[
        Literal["count", "floor", "hold", "drop"],
        words(
            'a crashed run after its last row: "count": no value; "floor": the value of `floor`; "hold": its last '
            'value; "drop": the whole run is left out.'
        ),
    ] = "count"
    floor: Annotated[float | None, words('the value of a crashed run with crashed_as="floor".')] = None
    nan: Annotated[
        Literal["keep", "drop", "floor", "refuse"],
        words(
            'values that are NaN or infinite: "keep": no value there; "drop": as if not logged; "floor": the value of '
            '`floor`; "refuse": an error.'
        ),
    ] = "keep"
    backwards: Annotated[
        Literal["restart", "sort", "refuse"],
        words('where x goes back: "restart": the rows beyond were abandoned; "sort" the rows; "refuse": an error.'),
    ] = "restart"
    ties: Annotated[Literal["last", "mean"], words("rows with the same x: the last one counts, or their mean.")] = (
        "last"
    )
    draws: Annotated[int, words("number of resamples of the intervals.")] = 1999
    seed: Annotated[int, words("seed of the resampling; the same seed gives the same numbers.")] = 0


_SINCE = words("only what was reported at this time or later, in unix seconds.")


class Findings(Question, frozen=True):
    """What is wrong with runs, by health rules and how they ended: each thing once for all that have it."""

    since: Annotated[float | None, _SINCE] = None


class Alerts(Question, frozen=True):
    """The alerts of runs, oldest first: what health rules found, one by one."""

    since: Annotated[float | None, _SINCE] = None


class Verify(Question, frozen=True):
    """What is wrong with the files of runs: what cannot be read or sealed, what is missing, what cannot be right."""

    quick: Annotated[
        bool, words("only what opening the files shows, instead of reading all of every file, from remotes too.")
    ] = False


class Plans(Question, frozen=True):
    """The plans stored with runs, with their looks and verdicts."""


class Seeds(Question, frozen=True):
    """How many seeds each group needs, and which difference a number of seeds can find."""

    metric: _Metric = ""
    by: Annotated[
        Fields | Groups,
        words("the field whose values are compared, or several, such as config.algo; see `compare`.", commas=True),
    ] = "auto"
    score: _Score = "mean of the last 10%"
    against: Annotated[str | None, words("one group, which each other one is compared with.")] = None
    difference: Annotated[float | None, words("the difference to find, in units of the score.")] = None
    power: Annotated[float, words("the probability with which `compare` is to name the better one.")] = 0.8


class SharedPrompts(Question, frozen=True):
    """Two runs on the prompts that both have: on which the other one is better, by what both measure alike."""

    run: Annotated[str, words("a run: its id or name.")]
    other: Annotated[str, words("the run that it is compared with.")]
    part: Annotated[
        str | None,
        words("a part of the reward that both have; default: the reward, if its parts are the same in both."),
    ] = None
    above: Annotated[
        float | None,
        words(
            "a rollout above this solved its prompt; default: midway between the low and the high ones of both runs."
        ),
    ] = None
    limit: Annotated[
        int,
        words(
            "the largest number of prompts: half where the other run loses most, half where it gains most.", amount=True
        ),
    ] = 200


class Sweep(Question, frozen=True):
    """Which setting of a sweep goes along with a score, which configuration may be the best, and what to run next."""

    metric: Annotated[
        str, words('a key; canonical names are accepted. "": the most informative one, such as a test return.')
    ] = ""
    project: Annotated[str, words('of which project; "": the one with most configurations.')] = ""
    score: _Score = "mean of the last 10%"
    at: _End = "own end"
    x: _AxisOfScores = None
    direction: Annotated[
        Literal["higher", "lower"] | None,
        words('whether "higher" or "lower" is better. By default the metric\'s name decides, see `compare`.'),
    ] = None
    seed: Annotated[int, words("seed of the permutations that estimate chance.")] = 0


QUESTIONS: tuple[type[Question], ...] = (
    SeriesQuestion,
    Compare,
    Curves,
    Sweep,
    Seeds,
    SharedPrompts,
    Diff,
    Findings,
    Alerts,
    Verify,
    Plans,
)
"""All of them. `RunSet`, the command line, the server and the agents' tools have a door for each, with its name."""
