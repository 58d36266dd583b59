"""Lists that a trainer reported for a whole rollout, of another length than its tokens.

The process that recorded a rollout counts them when they come (`rollout_columns`); those of others only readers know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from rollbook.book.row_groups import RowGroups
from rollbook.book.table_protocols import RolloutTables
from rollbook.schema.problems import Problem
from rollbook.values.arrow import strings, without_dictionaries

_LISTS = ("trainer_logprobs", "entropy", "advantages", "mask")


def odd_lists(book: RolloutTables) -> list[Problem]:
    """A problem for each kind of list that has another length than the tokens of its rollout; [] if all fit.

    Reads token lists, and how many tokens each turn has, a row group at a time.
    """
    lengths: dict[tuple[str, str], int] = {}  # by rollout and kind; the newest report
    tokens: dict[str, int] = {}

    def of_trainer(rows: pa.Table) -> None:
        late = rows.filter(rows["turn"].is_null()) if "turn" in rows.column_names else rows
        for name in late.column_names:
            if name in _LISTS and not pa.types.is_string(late[name].type):
                for own, cell in zip(late["rollout_id"].to_pylist(), late[name], strict=True):
                    if cell.is_valid:
                        lengths[own, name] = len(cell)

    def of_turns(rows: pa.Table) -> None:
        import pyarrow.compute as pc

        if "tokens" in rows.column_names:
            own_rows = rows.filter(pc.is_in(rows["rollout_id"], value_set=strings(sorted(reported))))
            for own, n in zip(own_rows["rollout_id"].to_pylist(), own_rows["tokens"].to_pylist(), strict=True):
                tokens[own] = tokens.get(own, 0) + (n or 0)

    _each(book.row_groups("tokens", "all"), ["rollout_id", "turn", *_LISTS], of_trainer)
    reported = {own for own, _name in lengths}
    if reported:
        _each(book.row_groups("turns", "all"), ["rollout_id", "tokens"], of_turns)
    odd = {which: k for which, k in lengths.items() if tokens.get(which[0]) not in (None, 0, k)}
    problems = []
    for kind in _LISTS:
        owners = [own for own, name in odd if name == kind]
        if owners:
            k, n = odd[owners[0], kind], tokens[owners[0]]
            words = (
                f"rollouts: the trainer reported {kind} of another length than their tokens for {len(owners):,}, such "
                f"as {k:,} numbers for the {n:,} tokens of {owners[0]}; beside a turn they may belong to another one"
            )
            problems.append(Problem(words, "rollout_columns", n=len(owners)))
    return problems


def _each(groups: RowGroups, columns: Sequence[str], take: Callable[[pa.Table], None]) -> None:
    def start() -> Callable[..., None]:
        return lambda _row_group, rows, *_more: take(without_dictionaries(rows)) if rows.num_rows else None

    groups.scan(columns, start)
