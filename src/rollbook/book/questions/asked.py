"""The questions about one run. A field is an option; each door is made from these (`schema/question.py`)."""

from __future__ import annotations

from typing import Annotated

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


ONE_RUN: tuple[type[Question], ...] = (Cause,)
"""All of them. `Book`, the command line, the server and the agents' tools have a door for each, with its name."""
