"""The questions about one run. A field is an option; each door is made from these (`schema/question.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from rollbook.errors import BadInput
from rollbook.schema.manifest import Attempts
from rollbook.schema.question import Question, words


class Cause(Question, frozen=True):
    """What went on near a point of a run: the keys that left their usual range there, and what every table has."""

    at: Annotated[float, words("the place on the axis.")]
    key: Annotated[str | None, words("the key whose value stands there; canonical names are accepted.")] = None
    x: Annotated[str | None, words('the axis: a clock, a key, "time" or "relative"; default: the run\'s own.')] = None
    rows: Annotated[int, words("the most rows of each table.")] = 6
    window: Annotated[
        float | None,
        words("how far around is near, on the axis; by default told from how often the key was logged."),
    ] = None
    everything: Annotated[
        bool,
        words(
            "also the newest value of each key at or before the point, and the nearest rows of the other tables that "
            "know the clock."
        ),
    ] = False


class Window(Question, frozen=True):
    """Which rows of a table, in which order."""

    where: Annotated[str | None, words('a condition in SQL, such as "reward > 1".')] = None
    order_by: Annotated[
        str | None,
        words('columns in SQL, such as "reward desc"; rows that are equal then, and all without it, by time.'),
    ] = None
    limit: Annotated[int | None, words("the most rows.", amount=True)] = None
    attempts: Annotated[Attempts, words('"effective", "all", or attempt numbers.')] = "effective"
    search: Annotated[str | None, words("words that must all occur in the texts of the row, in any case.")] = None
    offset: Annotated[int, words("how many of the rows that fit are passed over.")] = 0

    def __post_init__(self) -> None:
        for name, number in (("limit", self.limit), ("offset", self.offset)):
            if number is not None and number < 0:
                raise BadInput(f"{name}={number}: a number of rows is not below 0.", "Give 0 or more")


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


class Media(Window, frozen=True):
    """The pictures, videos and figures of a run."""

    kind: Annotated[
        Literal["image", "video", "figure"] | None, words('"image", "video" or "figure"; default: all.')
    ] = None
    key: Annotated[str | None, words("only this one, in full.")] = None


ONE_RUN: tuple[type[Question], ...] = (Cause, Rows, Samples, Episodes, Text, Media)
"""All of them. `Book`, the command line, the server and the agents' tools have a door for each, with its name."""
