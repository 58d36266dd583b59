"""What cannot be right about rollouts: rewards that are no numbers, and some fates.

That is fates of rollouts that do not exist, two of one use, and of an older version than the rollout's. The process
that reports one counts it if it can know (`run.bill()`); over several processes only readers know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from rollbook.book.row_groups import RowGroups
from rollbook.book.table_protocols import RolloutTables
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.problems import Problem
from rollbook.storage import IDENTITY
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import empty_table, join_tables, plain_rows, take_table, to_numpy, without_dictionaries

_WORDS = {
    "unknown_rollout": (
        "rollouts: fates of rollouts that the run does not have: {n:,}, such as of {one:.80}; pass trained() and "
        "dropped() the ids that begin() and log_many() gave"
    ),
    "rollout_fates": (
        "rollouts: uses with more than one fate: {n:,}, such as of {one:.80}; the newest counts. Report a use once; if "
        "it was used twice in one update, pass epoch="
    ),
    "rollout_version": (
        "rollouts: trained by an older version than the one that generated them: {n:,}, such as {one:.80} (staleness "
        "{age}); take trained_version= and policy_version= from one counter"
    ),
}
"""Kind, as the writer counts it -> the sentence."""
_NOT_FINITE = (
    "rollouts: rewards that are NaN or infinite: {n:,}, such as of {one:.80}; means, curves and what counts as "
    "solved are without them. Look at the reward function, or pass None for a reward that is unknown"
)
_OF_USE = ("gradient_step", "epoch")


def odd_fates(book: RolloutTables) -> list[Problem]:
    """A problem for each kind that there is, with what to do; [] if all are right. Reads no texts."""
    import pyarrow.compute as pc

    fates = _rows(book.row_groups("fates", "effective"), ["rollout_id", *_OF_USE, "trained_version", "staleness"])
    rollouts = _rows(book.row_groups("rollouts", "effective"), ["rollout_id", "policy_version"])
    indices = pc.index_in(fates["rollout_id"], value_set=rollouts["rollout_id"].combine_chunks())
    begun = pc.take(rollouts["policy_version"].combine_chunks(), indices)
    age = pc.coalesce(fates["staleness"], pc.subtract(fates["trained_version"], begun))
    uses = fates.filter(pc.is_valid(fates["gradient_step"]))
    owner = pa.chunked_array([uses["rollout_id"].combine_chunks().dictionary_encode().indices])
    which = np.stack([_known(column, UNKNOWN) for column in (owner, *(uses[name] for name in _OF_USE))])
    _, first, times = np.unique(which, axis=1, return_index=True, return_counts=True)
    found = (
        fates.filter(pc.is_null(indices)),
        take_table(uses, first[times > 1]),
        take_table(fates.append_column("age", age), np.flatnonzero(_known(age, 0) < 0)),
    )
    problems = []
    for (kind, words), rows in zip(_WORDS.items(), found, strict=True):
        if rows.num_rows:
            one = plain_rows(rows.slice(0, 1))[0]
            sentence = words.format(n=rows.num_rows, one=str(one["rollout_id"]), age=one.get("age"))
            problems.append(Problem(sentence, kind, n=rows.num_rows))
    return problems


def odd_rewards(ask: Callable[[str], pa.Table]) -> list[Problem]:
    """A problem if some rewards are not finite; [] if all are.

    Args:
      ask: the answer to a query over the table rollouts.
    """
    (row,) = ask(
        "select count(*) as n, min(rollout_id) as one from rollouts where not isfinite(reward::double)"
    ).to_pylist()
    if not row["n"]:
        return []
    return [Problem(_NOT_FINITE.format(n=row["n"], one=str(row["one"])), "rollout_rewards", n=row["n"])]


def _known(column: pa.ChunkedArray, otherwise: int) -> NDArray:
    """Its values; pyarrow's own function would load pandas."""
    values, valid = to_numpy(column)
    return values if valid is None else np.where(valid, values, otherwise)


def _rows(groups: RowGroups, columns: Sequence[str]) -> pa.Table:
    """Columns of all chosen rows: ids as text, all others as whole numbers, null where a row lacks one."""
    schema = pa.schema([pa.field(name, pa.string() if name == "rollout_id" else pa.int64()) for name in columns])
    found: list[pa.Table] = []

    def start() -> Callable[..., None]:
        found[:] = [empty_table(schema)]

        def take(_row_group: object, rows: pa.Table, chosen: NDArray | None, *_more: object) -> None:
            own = without_dictionaries(rows if chosen is None else take_table(rows, np.flatnonzero(chosen)))
            own = own.select([name for name in columns if name in own.column_names])
            found.append(join_tables([found[0], own]).select(columns).cast(schema, safe=False))

        return take

    groups.scan(["time", *IDENTITY, *columns], start)
    return pa.concat_tables(found)
