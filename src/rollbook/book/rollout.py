"""One rollout: its row with its newest fate, and the data that belongs to it.

rollout = book.rollout(book.rollouts(order_by="reward desc", limit=1)["rollout_id"][0].as_py())
rollout["reward"], rollout["reason"]           # the row, as a mapping
rollout.turns(); rollout.tokens(); rollout.group(); rollout.history(); rollout.fates()
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rollbook.book.one_row import OneRow
from rollbook.errors import UnknownKey
from rollbook.schema.manifest import Attempts
from rollbook.values.arrow import plain_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.questions import Rollouts
    from rollbook.book.table_protocols import RolloutTables


class Rollout(OneRow):
    """One rollout of a run. As a mapping it is its row: column -> value, None if the row lacks it.

    Everything except the row is read on request.

    Attributes:
      id: its id.
      row: the row as a dict, with the columns of its newest fate (`used`, `reason`, `advantage`, `staleness`, …).
    """

    def __init__(self, book: RolloutTables, table: pa.Table, attempts: Attempts = "effective") -> None:
        super().__init__(table, "rollout_id")
        self._book, self._attempts = book, attempts

    def __repr__(self) -> str:
        fate = {None: "no fate yet", True: "used", False: f"dropped ({self.row.get('reason')})"}[self.row.get("used")]
        return f"<Rollout {self.id}: {self.row.get('status')}, reward {self.row.get('reward')}, {fate}>"

    def turns(self) -> pa.Table:
        """Its turns, in order. What comes before the first turn is the task."""
        return self._of("turns", "turn")

    def tokens(self) -> pa.Table:
        """Its token lists: one row per turn, and rows without a turn for lists reported later for the whole rollout."""
        return self._of("tokens", "turn")

    @property
    def trimmed(self) -> list[str]:
        """What retention has removed of it (`run.rollouts.keep`): "tokens", "text", "answer"."""
        rows = {"tokens": self.tokens(), "text": self.turns()}
        gone = [name for name, table in rows.items() if any(table["trimmed"].to_pylist())]
        return [*gone, *(["answer"] if self.row.get("trimmed") else [])]

    def fates(self) -> pa.Table:
        """All reports of its use, oldest first: one row for each update that it was part of."""
        return self._book.table("fates", "all", where=("rollout_id", self.id))

    def task(self) -> dict[str, Any] | None:
        """Its task: `prompt`, `messages` (JSON), `tools` (JSON), `env`; None if not logged."""
        if self.row.get("task_id") is None:
            return None
        rows = self._book.table("tasks", "all", where=("task_id", str(self.row["task_id"])))
        return plain_rows(rows.slice(0, 1))[0] if rows.num_rows else None

    def group(self) -> pa.Table:
        """All rollouts of its group, including itself: those with the same group, task and batch."""
        from rollbook.book.questions import Rollouts

        return self._asked(Rollouts(group=self.id, attempts=self._attempts))

    def history(self) -> pa.Table:
        """All rollouts of its task, by the version that generated them."""
        from rollbook.book.questions import Rollouts

        return self._asked(Rollouts(task=self.id, order_by="policy_version nulls first", attempts=self._attempts))

    def _asked(self, question: Rollouts) -> pa.Table:
        from rollbook.book.questions import Files, chosen_rollouts

        return chosen_rollouts(question, Files(self._book)).table

    def _of(self, table: str, order: str) -> pa.Table:
        rows = self._book.table(table, "all", where=("rollout_id", self.id))
        return rows.sort_by([(order, "ascending"), ("seq", "ascending")])


_EFFECTIVE_FIRST: tuple[Attempts, ...] = ("effective", "all")


def find_rollout(book: RolloutTables, rollout_id: str) -> Rollout:
    """The rollout with an id.

    Raises:
      UnknownKey: there is none.
    """
    own = pa.table({"rollout_id": [rollout_id]})
    for attempts in _EFFECTIVE_FIRST:
        table = book.chosen("rollouts_now", None, None, 1, attempts, of=own)
        if table.num_rows:
            return Rollout(book, table, attempts)
    raise UnknownKey(f"{book.path} has no rollout {rollout_id!r}; book.rollouts() lists them")
