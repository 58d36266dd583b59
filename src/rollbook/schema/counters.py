"""Which columns of a foreign row are clocks: those named like a clock, and the counters of known frameworks."""

# ruff: noqa: SIM905  (lists of words are read as words)

from __future__ import annotations

from numbers import Real

from rollbook.schema import aliases
from rollbook.schema.clocks import STANDARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import SupportsInt, TypeGuard

_CANONICAL = {
    "time/env_steps": "env_step",
    "time/iterations": "epoch",
    "time/episodes": "episode",
    "update/count": "gradient_step",
}
"""Canonical counters and their clocks; see `schema.aliases`."""

SPELLINGS = {
    **{name: name for name in STANDARD},
    "global_step": "env_step",
    "timestep": "env_step",
    "timesteps": "env_step",
    "num_timesteps": "env_step",
    "total_steps": "env_step",
    "total_env_steps": "env_step",
    "num_env_steps": "env_step",
    "env_steps": "env_step",
    "TotalEnvSteps": "env_step",
    "frames": "env_step",
    "total_timesteps": "env_step",
    "timesteps_total": "env_step",
    "current_steps": "gradient_step",
    "training_iteration": "epoch",
    "Step": "step",
    "_step": "step",
}
"""Columns that are only clocks, by their own names."""

_AXES = {
    **dict.fromkeys(
        "step steps actor_steps time_step time_steps num_steps n_steps total_num_steps environment_steps "
        "env_interactions interactions samples total_samples frame".split(),
        "env_step",
    ),
    **dict.fromkeys("t global_step_count index x training_step train_step".split(), "step"),
    **dict.fromkeys("learner_steps update updates n_updates num_updates gradient_steps".split(), "gradient_step"),
    **dict.fromkeys("epoch epochs iteration iterations iter itr generation round cycle".split(), "epoch"),
    **dict.fromkeys(
        "episode episodes ep episode_number global_episode num_episodes n_episodes game".split(), "episode"
    ),
}
"""Names of columns, in lower case and with "_" between words, by which the rows of a table of any kind are ordered."""

_SPELLED = {name.lower(): clock for name, clock in SPELLINGS.items()}

_BOUND = 2**63

_found: dict[str, str] = {}


def clock_name(column: str) -> str:
    """The clock of a column with clock readings, "" for other columns."""
    known = _found.get(column)
    if known is None:
        known = SPELLINGS.get(column) or _CANONICAL.get(aliases.canonical(column) or column, "")
        if len(_found) < 100_000:
            _found[column] = known
    return known


def x_clock(column: str) -> str:
    """The clock that a column of any table counts, by a looser reading of its name than `clock_name`; "" for none."""
    known = clock_name(column)
    if known:
        return known
    words = column.rpartition("/")[2].strip().lower().replace(" ", "_").replace("-", "_").lstrip("#_")
    clock = _AXES.get(words) or _SPELLED.get(words, "")
    return "step" if words in ("step", "steps") else clock


def axis_order(column: str) -> int:
    """The order in which columns are taken as x-axis: environment steps first, the number of a row last."""
    order = ("env_step", "step", "gradient_step", "epoch", "episode")
    clock = x_clock(column)
    return order.index(clock) if clock in order and column not in ("index", "x", "t") else len(order)


def standing(rows: Sequence[Mapping[str, object]]) -> frozenset[str]:
    """The columns called like a clock that have one reading in all of some rows: they say where a training shall end.

    LLaMA-Factory's `total_steps` is next to `current_steps`. Fewer than three rows show nothing.

    Args:
      rows: the first ones of a file.
    """
    names = {name for row in rows for name in row if clock_name(name)} if len(rows) > 2 else ()
    return frozenset(name for name in names if len({str(row.get(name)) for row in rows}) == 1)


def is_reading(value: object) -> TypeGuard[SupportsInt]:
    """Whether this is a valid reading: an integer within 64 bits, numpy's too, or a float with such a value."""
    return isinstance(value, Real) and -_BOUND < value < _BOUND and float(value).is_integer()  # type: ignore[operator]


def clock_columns(columns: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(column, clock) of the columns that have clock readings, in their order."""
    return tuple((column, clock) for column in columns if (clock := clock_name(column)))


def clocks_of(values: Mapping[str, object], columns: tuple[tuple[str, str], ...] | None = None) -> dict[str, int]:
    """The clocks of a row from its values, which also stay values. The first column of a clock wins.

    Args:
      values: the row.
      columns: `clock_columns` of the row, where they are known already.
    """
    clocks: dict[str, int] = {}
    for name, clock in clock_columns(values) if columns is None else columns:
        value = values[name]
        if clock in clocks:
            continue
        if type(value) is int and -_BOUND < value < _BOUND:
            clocks[clock] = value
        elif is_reading(value) and not isinstance(value, bool):
            clocks[clock] = int(value)
    return clocks
