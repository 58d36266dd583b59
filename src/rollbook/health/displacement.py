"""A preference training that makes the chosen answers less probable, too."""

from __future__ import annotations

import math
from typing import Any

from rollbook.errors import BadInput
from rollbook.health._keyed import at_clock
from rollbook.health._memory import Memory, wholly_remembered
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns

_PAIRS = (
    ("rewards/chosen", "rewards/rejected"),  # TRL, LLaMA-Factory, Axolotl, torchtune
    ("rewards_train/chosen", "rewards_train/rejected"),  # the authors' own code of DPO
    ("rewards_chosen_mean", "rewards_rejected_mean"),  # NeMo
    ("chosen_reward", "reject_reward"),  # OpenRLHF
    ("logps/chosen", "logps/rejected"),
    ("log_probs/chosen", "log_probs/rejected"),
)
_PREFIXES = ("", "train/", "train_", "train-")
_CLEAR = 4.0
"""Standard errors between the first block and the newest."""


class _Block(Memory):
    """Mean and variance of a block of values."""

    mean: float = 0.0
    variance: float = 0.0


class _Pair(Memory):
    """The pair that is checked.

    Attributes:
      chosen, rejected: its keys; "" while none was logged.
      rest: values that fill no block yet: [chosen, rejected] each.
      first: the first block of chosen, rejected and margin.
      reported: whether it was reported.
    """

    chosen: str = ""
    rejected: str = ""
    rest: list[list[float]] = []
    first: list[_Block] = []
    reported: bool = False


class Displacement:
    """The log-probabilities of chosen and rejected answers both fall while the margin between them grows: "note", once.

    Likelihood displacement (Razin et al. 2024, "Unintentional unalignment: likelihood displacement in direct preference
    optimization"): the probability goes to answers that are neither; these may be the opposite of the chosen ones. It
    is usual where the model was fine-tuned on the chosen answers before, and the authors of DPO call it no sign of a
    fault by itself, so it is a note and no alarm.

    Compared are the first block of `rows` rows and the newest; each difference has to be beyond four standard errors.
    Implicit rewards (the log-probability relative to the reference, times beta) are preferred to log-probabilities,
    which differ from batch to batch. Evaluations are not checked.

    Args:
      rows: how many rows a block has.
    """

    name = "displacement"
    source = "Razin et al. 2024, likelihood displacement; four standard errors are rollbook's own"
    tables = frozenset({"metrics"})
    needs_start = True
    """Compares with the first rows of the run; a keeper that cannot have them does not ask it."""

    def __init__(self, rows: int = 20) -> None:
        if rows < 5:
            raise BadInput(f"rule 'displacement': rows={rows!r} must be at least 5")
        self._rows = rows
        self._memory = _Pair()

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self._memory = _Pair()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return self._memory.plain()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._memory = wholly_remembered(_Pair, state)

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        memory = self._memory
        if memory.reported or not len(columns):
            return ()
        keys = columns.keys("metrics")
        if not memory.chosen:
            memory.chosen, memory.rejected = _pair_among(keys)
        if not memory.chosen or memory.chosen not in keys or memory.rejected not in keys:
            return ()
        chosen, rejected = columns.column(memory.chosen), columns.column(memory.rejected)
        of_rejected = dict(zip(rejected.times(), rejected.values, strict=True))
        pairs = [
            (i, [value, of_rejected[time]])
            for i, (time, value) in enumerate(zip(chosen.times(), chosen.values, strict=True))
            if time in of_rejected and math.isfinite(value + of_rejected[time])
        ]
        alerts: list[Alert] = []
        for i, pair in pairs:
            memory.rest = [*memory.rest, pair]
            if len(memory.rest) == self._rows:
                alerts += self._judge(chosen, i)
                memory.rest = []
        return alerts

    def _judge(self, column: Column, i: int) -> list[Alert]:
        memory = self._memory
        margins = [chosen - rejected for chosen, rejected in memory.rest]
        newest = [_block([pair[0] for pair in memory.rest]), _block([pair[1] for pair in memory.rest]), _block(margins)]
        if not memory.first:
            memory.first = newest
            return []
        changes = [after.mean - before.mean for before, after in zip(memory.first, newest, strict=True)]
        errors = [
            math.sqrt((before.variance + after.variance) / self._rows)
            for before, after in zip(memory.first, newest, strict=True)
        ]
        signs = (-1, -1, 1)
        if memory.reported or not all(
            sign * change > _CLEAR * error for sign, change, error in zip(signs, changes, errors, strict=True)
        ):
            return []
        memory.reported = True
        where = column.where(i)
        fall, rejected, margin = changes
        return [
            Alert(
                self.name,
                "note",
                f"{memory.chosen} has fallen by {-fall:.3g}{at_clock(where['clocks'])} and {memory.rejected} by "
                f"{-rejected:.3g}, while the margin grew by {margin:.3g}: the chosen answers become less probable, "
                "too, and what gains is neither; usual after fine-tuning on the chosen ones, else look at answers of "
                "the model and at pairs that are nearly alike",
                {"chosen": fall, "rejected": rejected, "margin": margin, "rows": self._rows, **where},
                self.source,
                memory.chosen,
                where["clocks"],
            )
        ]


def _pair_among(keys: Sequence[str]) -> tuple[str, str]:
    """The first pair of `_PAIRS` among these keys, with what Trainers put before it; ("", "") for none."""
    known = set(keys)
    for chosen, rejected in _PAIRS:
        for prefix in _PREFIXES:
            if prefix + chosen in known and prefix + rejected in known:
                return prefix + chosen, prefix + rejected
    return "", ""


def _block(values: Sequence[float]) -> _Block:
    mean = sum(values) / len(values)
    return _Block(mean, sum((value - mean) ** 2 for value in values) / (len(values) - 1))
