"""One episode: its row, and the steps, rewards, media and alerts that belong to it.

episode = book.episode("best")                 # or its id
episode["return"], episode["length"]           # the row of `episodes`, as a mapping
episode.steps(); episode.rewards(); episode.video; episode.around()
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.book.media_files import media_file
from rollbook.book.one_row import OneRow
from rollbook.errors import UnknownKey
from rollbook.system.guard import tolerating
from rollbook.values.arrow import plain_rows, rows_equal, take_table, to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.table_protocols import EpisodeTables

CHOICES = ("best", "worst", "first", "last")
"""Words accepted instead of an id. Best and worst are by return, among complete episodes."""


class Episode(OneRow):
    """One episode of a run. As a mapping it is its row of `episodes`: column -> value, None if the row lacks it.

    Everything except the row is read on request, and only for this episode.

    Attributes:
      id: its id.
      row: the row as a dict.
    """

    def __init__(self, book: EpisodeTables, table: pa.Table) -> None:
        super().__init__(table, "episode_id")
        self._book, self._table = book, table

    def __repr__(self) -> str:
        end = [word for word in ("terminated", "truncated") if self.row.get(word)]
        facts = [f"return {_short(self.row.get('return'))}", f"{self.row.get('length')} steps", *(end or ["cut short"])]
        facts += [f"steps kept ({self.row['steps_kept']})"] if self.row.get("steps_kept") else []
        return f"<Episode {self.id}: {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid, spark

        steps = self.steps()
        drawn = ""
        if steps.num_rows and "reward" in steps.column_names:
            rewards = np.array([np.nan if r is None else float(r) for r in steps["reward"].to_pylist()])
            drawn = spark([(np.arange(len(rewards)), rewards)], width=420, height=80)
        cells = [{"column": name, "value": value} for name, value in self.row.items() if value is not None]
        return card(f"Episode {self.id}", "reward by step" if drawn else "", drawn, grid(cells, most=30))

    @property
    def table(self) -> pa.Table:
        """The row as a table of one row."""
        return self._table

    def steps(self, agent: str | None = None) -> pa.Table:
        """Its recorded steps in order, or those of one agent; no rows if its trajectory was not kept."""
        table = self._book.steps(self.id, "all")
        if agent is None or "agent" not in table.column_names:
            return table
        return take_table(table, rows_equal(table["agent"], agent))

    def rewards(self) -> pa.Table:
        """Its rewards by agent, component and stage; no rows if there was only one reward."""
        return self._book.table("rewards", "all", where=("episode_id", self.id))

    def media(self, kind: str | None = None) -> pa.Table:
        """Its pictures and videos; `path` is relative to the run's folder."""
        table = self._book.table("media", "all", where=("episode_id", self.id))
        return table if kind is None else take_table(table, rows_equal(table["kind"], kind))

    def files(self) -> dict[str, Path]:
        """The existing files of its media by key, without files that were evicted or are not encoded yet."""
        paths = {}
        for row in plain_rows(self.media()):
            path = media_file(self._book, str(row.get("path")))
            if path is not None:
                paths[str(row.get("key"))] = path
        return paths

    @property
    def video(self) -> Path | None:
        """Its video: the rendered one, else any other; None if there is none."""
        videos = {}
        for row in plain_rows(self.media("video")):
            path = media_file(self._book, str(row.get("path")))
            if path is not None:
                videos[str(row.get("key"))] = path
        rendered = [path for key, path in videos.items() if key.rpartition("/")[2] == "video"]
        return next(iter([*rendered, *videos.values()]), None)

    def alerts(self) -> pa.Table:
        """Alerts with its id in their evidence, from the auditor, the reward ledger and other rules."""
        table = self._book.alerts("all")
        rows = [i for i, text in enumerate(table["evidence"].to_pylist()) if _names(text, self.id)]
        return take_table(table, np.array(rows, dtype=np.int64))

    def checkpoint(self) -> dict[str, Any] | None:
        """The newest checkpoint that existed when the episode ended; None if there was none.

        Checkpoints that a rewind abandoned count only for episodes that it abandoned, too.
        """
        counts = self._book.table("episodes", where=("episode_id", self.id)).num_rows
        table = self._book.checkpoints("effective" if counts else "all", everything=True)
        times, mine = to_numpy(table["time"])[0], to_numpy(self._table["time"])[0][0]
        before = [i for i, moment in enumerate(times.tolist()) if moment <= mine]
        return plain_rows(table.slice(before[-1], 1))[0] if before else None

    def around(self, rows: int = 5) -> dict[str, pa.Table]:
        """The state of the run when the episode ended; see `Book.at`. Empty if its row knows no clock."""
        order = [self._book.info.x, *self._book.clocks]
        clock = next((name for name in order if self.row.get(name) is not None), None)
        return {} if clock is None else self._book.at(rows, **{clock: int(self.row[clock])})


def find_episode(book: EpisodeTables, which: str) -> Episode:
    """The episode with an id, or the one for "best", "worst", "first" or "last".

    Raises:
      UnknownKey: there is none; the message lists what there is.
    """
    if which in CHOICES:
        rows = book.episodes()
        index = _index_of(rows, which)
        if index is not None:
            return Episode(book, rows.slice(index, 1))
        raise UnknownKey(
            f"{book.path} holds no finished episode, so there is no {which!r} one.",
            "Record some with RecordEpisodes(env, scope), or read book.episodes() for those that were cut short",
        )
    same_id = book.table("episodes", "all", where=("episode_id", which))
    if not same_id.num_rows:
        raise UnknownKey(
            f"{book.path} has no episode {which!r}; book.episodes() lists them, and 'best', 'worst', 'first' and "
            "'last' may stand for an id"
        )
    return Episode(book, same_id.slice(same_id.num_rows - 1))


def _index_of(rows: pa.Table, which: str) -> int | None:
    names = [name for name in ("return", "complete") if name in rows.column_names]
    cells = rows.select(names).to_pylist()
    whole = [i for i, row in enumerate(cells) if row.get("complete") is not False]
    if which in ("first", "last"):
        return None if not whole else whole[0 if which == "first" else -1]
    returns = {i: cells[i].get("return") for i in whole}
    scored = [i for i, value in returns.items() if isinstance(value, (int, float)) and not math.isnan(value)]
    sign = 1 if which == "best" else -1
    return max(scored, key=lambda i: (sign * returns[i], -i), default=None)


def _names(evidence: object, episode_id: str) -> bool:
    if not isinstance(evidence, str) or episode_id not in evidence:
        return False
    with tolerating(ValueError) as missed:
        parsed = json.loads(evidence)
    if missed:
        return False
    return isinstance(parsed, dict) and parsed.get("episode_id") == episode_id


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and math.isfinite(value) else str(value)
