"""Curves and prompts are the same however the rollouts and their fates are joined."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from cases import some_of
from rollbook.book import RolloutQueries
from rollbook.book.late_facts import columns_of

duckdb = pytest.importorskip("duckdb")

_SEEDS = some_of(range(60), 1)


def _tables(seed: int) -> dict[str, pa.Table]:
    """Rollouts with no, one or several fates; any cell may be missing, and some columns have none."""
    rng = random.Random(seed)

    def maybe(cell: object, missing: float = 0.15) -> Any:
        return None if rng.random() < missing else cell

    reason_missing, kl_missing = (1.0 if seed % 2 else 0.8), (1.0 if seed % 4 == 1 else 0.2)
    rollouts: list[dict[str, Any]] = []
    fates: list[dict[str, Any]] = []
    for n in range(200):
        rollouts.append(
            {
                "time": n // 16,
                "writer": "w",
                "seq": n // 16,
                "index": n % 16,
                "rollout_id": f"w-{n}",
                "policy_version": maybe(n // 20),
                "gradient_step": maybe(n // 25, 0.6),
                "mode": maybe(rng.choice(["train", "eval"])),
                "group": maybe(f"g{n // 8}"),
                "task_id": maybe(f"t{n // 8 % 5}"),
                "batch": None,
                "reward": maybe(rng.choice([0.0, 0.5, 1.0])),
                "status": rng.choice(["completed", "truncated", "failed"]),
                "sampled_tokens": maybe(rng.randrange(100)),
                "turns": 1,
                "tool_calls": 2,
                "tool_errors": rng.randrange(2),
                "rewards/a": maybe(rng.random()),
                "seconds/model": 1.0,
                "seconds/tools": None,
                "seconds/reward": None,
                "seconds/queue": None,
            }
        )
        several = rng.random() < (0.0, 0.2, 1.0)[seed % 3]
        for _ in range(0 if rng.random() < 0.15 else rng.choice([2, 3]) if several else 1):
            numbers = {
                name: maybe(rng.random()) for name in ("advantage", "clipped", "gap_mean", "gap_max", "ratio_max")
            }
            fates.append(
                {
                    **numbers,
                    "time": rng.randrange(20),
                    "writer": "w",
                    "seq": len(fates),
                    "index": 0,
                    "rollout_id": f"w-{n}",
                    "gradient_step": maybe(n // 25 + rng.randrange(3)),
                    "epoch": maybe(rng.randrange(2)),
                    "used": rng.random() < 0.7,
                    "reason": maybe("zero_std", reason_missing),
                    "kl": maybe(rng.random(), kl_missing),
                    "trained_version": maybe(n // 20 + rng.randrange(3)),
                    "staleness": maybe(rng.randrange(4), 0.7),
                    "ratio_mean": None,
                    "in_queue": None,
                    "weight": None,
                }
            )
    fates.append({**fates[0], "rollout_id": "nobody"})
    return {"rollouts": pa.Table.from_pylist(rollouts), "fates": pa.Table.from_pylist(fates)}


def _rounded(rows: list[tuple[Any, ...]]) -> list[str]:
    """Sorted; the last digits of sums depend on their order."""
    return sorted(
        repr([float(f"{x:.9g}") if isinstance(x, float) and math.isfinite(x) else x for x in row]) for row in rows
    )


@pytest.mark.parametrize("seed", _SEEDS)
def test_curves_and_prompts_are_the_same_however_rollouts_and_fates_are_joined(seed: int) -> None:
    tables, db = _tables(seed), duckdb.connect()
    for name, table in tables.items():
        db.register(f"given {name}", table)
        db.execute(f'create table {name} as select * from "given {name}"')
    columns = {name: table.column_names for name, table in tables.items()}
    empty = {
        name: [cell for cell in table.column_names if table[cell].null_count == table.num_rows]
        for name, table in tables.items()
    }
    query, shown, names = RolloutQueries(columns, empty=empty).slim()
    db.execute(f"create table filled as {query}")
    db.execute(f"create view slim as select {shown} from filled")
    every, _, names_of_every = RolloutQueries(columns).slim()

    def described(query: str) -> list[str]:
        return [each[0] for each in db.execute(f"describe {query}").fetchall()]

    assert described("select * from slim") == names
    assert described(every) == names_of_every
    assert described(RolloutQueries(columns).now()) == columns_of("rollouts_now", columns)
    listed = ", ".join(f'"{name}"' for name in names_of_every)
    assert _rounded(db.execute(f"select {listed} from slim").fetchall()) == _rounded(db.execute(every).fetchall())
    ways = (
        RolloutQueries(columns, True),
        RolloutQueries(columns),
        RolloutQueries(columns, empty=empty),
        RolloutQueries(columns, now="slim"),
    )
    for x in ("gradient_step", "policy_version"):
        for mode in (None, "eval"):
            for asked in ("curves", "prompts"):
                first, *others = (_rounded(db.execute(getattr(way, asked)(x, mode)).fetchall()) for way in ways)
                assert all(other == first for other in others), (x, mode, asked)


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("newest", [10, 20_000])
def test_words_are_the_same_whether_all_or_the_newest_rollouts_are_joined(newest: int, seed: int) -> None:
    tables, db, rng = _tables(seed), duckdb.connect(), random.Random(seed)
    for name, table in tables.items():
        db.register(f"given {name}", table)
        db.execute(f'create table {name} as select * replace (make_timestamp("time") as "time") from "given {name}"')
    words = [f"word{n}" for n in range(6)]
    items = {name: " ".join(rng.sample(words, 3)) for name in tables["rollouts"]["rollout_id"].to_pylist()}
    db.register("items", pa.table({"rollout_id": list(items), "item": list(items.values())}))
    db.execute("create table own as select * from rollouts join items using (rollout_id)")
    db.execute("drop table rollouts; alter table own rename to rollouts")
    now = RolloutQueries(
        {name: [*table.column_names, "item"][: None if name == "rollouts" else -1] for name, table in tables.items()}
    ).now()
    joined: list[str] = []

    def ask(query: str, which: str = "true") -> pa.Table:
        joined.append(which)
        db.execute(f"create or replace temp view rollouts_now as select * from ({now}) where {which}")
        return db.sql(query).to_arrow_table()

    def among(query: str, which: str) -> pa.Table:
        return db.sql(f"with rollouts as (select * from main.rollouts where {which}), {query[5:]}").to_arrow_table()

    whole = RolloutQueries.words(ask, among, newest=newest).to_pylist()
    joined.clear()
    assert RolloutQueries.words(ask, among, of=ask, newest=newest).to_pylist() == whole
    assert joined.count("true") == 2 or newest == 10  # too few newer ones: all are asked
    assert any(which != "true" for which in joined) == (newest == 10)
