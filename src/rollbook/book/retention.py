"""How much of the rollouts a run keeps: the oldest lose their token lists first, then their texts; rows and fates stay.

Retention(book).trim(20 * 10**9)      # what was trimmed, as in run.json

Never trimmed: evaluations; the best and the worst rollout of each update; the rollouts with the largest gaps; those of
an update at which an alert was raised; rollouts that have not ended.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rollbook.book.sql import Database
from rollbook.book.table_protocols import StoredTables
from rollbook.schema import manifest
from rollbook.schema.run_files import data_folder
from rollbook.storage import Trimming
from rollbook.system.texts import amount

TABLES = ("tasks", "rollouts", "turns", "tokens", "fates")

STEPS = {
    "tokens": ("tokens", ("ids", "sampler_logprobs", "trainer_logprobs", "entropy", "advantages", "mask")),
    "text": ("turns", ("text", "calls", "item_raw", "token_texts")),
    "answers": ("rollouts", ("item", "item_raw")),
}
"""What is trimmed, in this order: name -> (table, columns)."""

LARGEST_GAPS = 100
_SPARE = 0.1
"""Trimming goes this much below the limit, so that it is not due again with the next rows."""
_MOST_ROUNDS = 4

_ROLLOUTS = """n as (select rollout_id, mode, reward, gap_max, time, coalesce(gradient_step, policy_version) as x
      from {now}),
    ranked as (select rollout_id, row_number() over (partition by x order by reward desc, rollout_id) as best,
        row_number() over (partition by x order by reward, rollout_id) as worst
      from n where reward is not null and not isnan(reward)),
    kept as (select rollout_id from n where mode = 'eval'
      union select rollout_id from ranked where best = 1 or worst = 1
      union (select rollout_id from n where gap_max is not null order by gap_max desc limit {gaps})
      union select rollout_id from n where x in (select coalesce({alert}) from alerts)),
    old as (select rollout_id, min(time) as time from n anti join kept using (rollout_id) group by 1)"""


class Retention:
    """The rollouts that a run keeps.

    Args:
      book: of the run.
    """

    def __init__(self, book: StoredTables) -> None:
        self._book, self._cells = book, Trimming(str(book.path))

    def trim_if_due(self) -> dict[str, Any] | None:
        """Trim a run whose sealed rollouts take more than its limit (`run.rollouts.keep`); None if they do not.

        Raises:
          RunIsLive, OSError: see `trim`.
        """
        limit = (self._book.info.retention or {}).get("keep_bytes")
        before = (self._book.info.retention or {}).get("bytes", 0)
        if type(limit) is not int or limit < 1:
            return None
        # What the rules keep can be more than the limit: then look again only after a tenth more.
        if self._cells.sealed_bytes(TABLES) <= max(limit, before * (1 + _SPARE)):
            return None
        return self.trim(limit)

    def trim(self, keep_bytes: int) -> dict[str, Any]:
        """Trim the oldest rollouts until those of the run take at most `keep_bytes`. Safe to repeat and to interrupt.

        Args:
          keep_bytes: of the sealed tables of rollouts, and of their long texts.
        Returns:
          The entry `retention` of run.json: `keep_bytes`, `bytes` now, `tokens`, `text` and `answers` (how many
          rollouts lost them).
        Raises:
          RunIsLive: another process is sealing the run.
          OSError: a file cannot be written; what was trimmed before stays so.
        """
        for _ in range(_MOST_ROUNDS):
            excess = self._cells.sealed_bytes(TABLES) - keep_bytes
            if excess <= 0:
                break
            chosen = _chosen(self._book, self._cells, excess + _SPARE * keep_bytes)
            if not chosen:
                break
            self._cells.empty(chosen)
        entry = {"keep_bytes": keep_bytes, "bytes": self._cells.sealed_bytes(TABLES), **_trimmed(self._book)}
        manifest.keep_retention(self._book.path, entry)
        return entry

    @staticmethod
    def words(entry: dict[str, Any]) -> str:
        """What was trimmed from the rollouts of a run, in a sentence; "" if nothing was."""
        parts = [
            f"{amount(entry[name], 'rollout')} {words}"
            for name, words in (
                ("tokens", "without token lists"),
                ("text", "without texts"),
                ("answers", "without answers"),
            )
            if entry.get(name)
        ]
        if not parts:
            return ""
        limit, now = entry.get("keep_bytes") or 0, entry.get("bytes") or 0
        more = f"; what its rules keep takes {_size(now)}" if now > limit else ""
        return f"trimmed to keep {_size(limit)}: {', '.join(parts)}{more}"


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def _chosen(book: StoredTables, cells: Trimming, excess: float) -> dict[str, tuple[pa.Array, tuple[str, ...]]]:
    """The oldest rollouts, by table, whose cells take this many bytes: token lists; if that is too little, texts, …"""
    chosen = {}
    for table, columns in STEPS.values():
        size, rows = cells.cell_bytes(table, columns)
        if not rows:
            continue
        waiting = _oldest(book, table)
        if not waiting.num_rows:
            continue
        # Rows without cells of their own are nearly free: each is counted as an average row that has some.
        reached = pc.cumulative_sum(waiting["n"]).to_numpy() * (size / rows)
        n = min(waiting.num_rows, int((reached < excess).sum()) + 1)
        chosen[table] = (waiting["rollout_id"].slice(0, n).combine_chunks(), columns)
        excess -= float(reached[n - 1])
        if excess <= 0:
            break
    return chosen


def _oldest(book: StoredTables, table: str) -> pa.Table:
    """(rollout_id, n rows that are not trimmed yet) of the rollouts that may be trimmed, oldest first."""
    known = book.scan("alerts", 0, "all").columns
    clocks = [name for name in ("gradient_step", "policy_version") if name in known]
    ctes = _ROLLOUTS.format(now="rollouts_now", gaps=LARGEST_GAPS, alert=", ".join([*clocks, "null::bigint"]))
    query = f"""with {ctes},
      t as (select rollout_id, count(*) as n from {table} where trimmed is distinct from true group by 1)
      select rollout_id, n from t join old using (rollout_id) order by old.time, rollout_id"""
    return _database(book).arrow(query, (*TABLES, "alerts"))


def _trimmed(book: StoredTables) -> dict[str, int]:
    """How many rollouts lost what, counted in the rows themselves."""
    counts = ", ".join(
        f"(select count(distinct rollout_id) from {table} where trimmed) as {name}"
        for name, (table, _columns) in STEPS.items()
    )
    (row,) = _database(book).arrow(f"select {counts}", TABLES).to_pylist()
    return {name: int(n) for name, n in row.items()}


def _database(book: StoredTables) -> Database:
    """All rows, also those that a rewind abandoned."""
    folder = os.path.abspath(data_folder(str(book.path)))
    return Database(lambda name, tries: book.scan(name, tries, "all"), folder, book.files.leave_out)
