"""Updates that leave the parameters as they are."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._config import number_in, setting_in
from rollbook.health._keyed import KeyedRule, at_clock, in_order, meaning
from rollbook.health._memory import Last, Recent
from rollbook.health._returns import RETURNS, rise
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns


_NONE, _MOVED = 1e-9, 1e-7
"""What rounding leaves of 0 when a ratio of probabilities is computed in single precision, and what is surely more."""

_STEPS = frozenset({"update/step_norm", "update/policy_step_norm"})
_DIVERGENCES = frozenset({"update/approx_kl", "update/approx_kl_k2", "update/kl"})
_GRADIENT, _GRADIENT_ROWS = "update/gradient_norm", 20
"""A gradient that is 0 from the first update on. Later it may be: where all answers of a group have one reward."""
_REFERENCE, _REFERENCE_ROWS = "update/kl_to_reference", 20
"""The divergence from a reference model is 0 in the first update, and with rates that rise from 0 in some more."""
_WEIGHTS = ("beta", "kl_coef", "init_kl_coef", "kl_loss_coef")
"""How configurations call the weight of that divergence."""

_WITNESSES = ("update/entropy", "update/loss/entropy", "update/loss/value", "train/return", "train/reward")
"""What moves with the parameters, where the divergence does not show it."""

_ENTROPIES = ("update/entropy", "update/loss/entropy")
_EPOCHS = ("n_epochs", "num_epochs", "update_epochs", "ppo_epochs", "ppo_epoch", "num_sgd_iter", "k_epochs")
_WITNESSED, _CLEAR = 100, 2.0
"""A witness does not change if its first 100 values have no trend beyond two standard errors (Mann, Kendall)."""

_NO_ENTROPY = 0.01
"""Nats below which a policy chooses one action: then its divergence is 0, however it is updated."""


class _Zeros(Recent):
    """How many values in a row are 0, whether one was not before, and whether the witnesses decide on them."""

    zeros: int = 0
    moved: bool = False
    suspected: bool = False


class Frozen(KeyedRule[_Zeros]):
    """Updates that change nothing: the norm of their step, or the KL divergence they cause, is 0.

    "fail" after `rows` updates in a row. The norm of the step (`update/step_norm`) shows it everywhere. The divergence
    that PPO logs is measured before each step: with one epoch and one minibatch it is 0 in every healthy run. It shows
    a frozen policy if it was above 0 before, or if the settings say that there are several epochs (`n_epochs=4` or the
    like). The divergence from a reference model that is 0 in 20 rows shows it if the settings give it a weight (`beta`
    or the like; not with `sync_ref_model`). A gradient norm that is 0 in the first 20 updates shows it where no return
    or reward is logged: rewards that are all equal leave no gradient either. Else "fail" only if entropy, value loss
    and return or reward also stand still, over the first 100 values of each. A policy whose entropy is near 0 has no
    divergence left, and is not reported here.

    Args:
      rows: how many updates in a row.
      keys: further keys to check.
    """

    remembers = _Zeros
    name = "frozen"
    source = "parameters that an update leaves as they are were not updated"
    tables = frozenset({"metrics", "episodes"})
    meanings = _STEPS | _DIVERGENCES | {_REFERENCE, _GRADIENT}

    def __init__(self, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 1:
            raise BadInput(f"rule 'frozen': rows={rows!r} must be at least 1")
        self._rows = rows

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._witnesses: dict[str, list[float]] = {}
        self._is_decided = self._has_returns = False

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {
            **super().state(),
            "witnesses": self._witnesses,
            "decided": self._is_decided,
            "returns": self._has_returns,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._witnesses = {key: list(values) for key, values in state["witnesses"].items()}
        self._is_decided = bool(state.get("decided"))
        self._has_returns = bool(state.get("returns"))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        self._has_returns = self._has_returns or columns.of_episodes("return") is not None
        for key in columns.keys("metrics"):
            name = meaning(key)
            self._has_returns = self._has_returns or name in RETURNS
            if name in _WITNESSES:
                self._witness(key, name in _ENTROPIES, columns.column(key))
        found = [alert for key in self.watched(columns) for alert in self.take(key, columns.column(key))]
        suspected = [key for key, memory in self.memory.items() if memory.suspected]
        if not found and not suspected:
            return ()
        if self._is_decided:
            return ()
        for key in suspected if self._stands_still() else ():
            if self.memory[key].zeros >= _WITNESSED:
                self.memory[key].suspected = False
                found.append(self._alert(key, Last(self.memory[key], 1)))
        return in_order(found)

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, 1), column.values
        kind = meaning(key)
        if kind == _GRADIENT and (memory.moved or self._has_returns):
            return
        rows = max(self._rows, {_REFERENCE: _REFERENCE_ROWS, _GRADIENT: _GRADIENT_ROWS}.get(kind, 0))
        if min(values) > _NONE:
            memory.zeros, memory.moved, memory.suspected = 0, True, False
        else:
            for i, value in enumerate(values):
                if abs(value) > _NONE:
                    memory.zeros, memory.suspected = 0, False
                    memory.moved = memory.moved or abs(value) > _MOVED
                    continue
                memory.zeros += 1
                if memory.zeros == rows:
                    if self._shows_it(key):
                        yield self._alert(key, last.up_to(column, range(i + 1), i + 1))
                    else:
                        memory.suspected = True
        last.take_all(column, range(len(values)))

    def _shows_it(self, key: str) -> bool:
        """Whether a 0 alone says that nothing was updated."""
        if meaning(key) == _REFERENCE:
            follows = setting_in(self.run.config, "sync_ref_model") is True
            return not follows and number_in(self.run.config, *_WEIGHTS) is not None
        if meaning(key) not in _DIVERGENCES or self.memory[key].moved:
            return True
        return (number_in(self.run.config, *_EPOCHS) or 1) > 1

    def _witness(self, key: str, is_entropy: bool, column: Column) -> None:
        """Remember the first values of what moves with the parameters, and whether the policy chooses one action."""
        first = self._witnesses.setdefault(key, [])
        if len(first) < _WITNESSED:
            first += column.values[: _WITNESSED - len(first)]
        if is_entropy:
            self._is_decided = abs(column.values[-1]) < _NO_ENTROPY

    def _stands_still(self) -> bool:
        """Whether none of the other numbers had a trend when the run began. A trend shows that updates reach the
        parameters; then the divergence is 0 by construction, even if nothing moves later because the task is learned.
        """
        witnesses = list(self._witnesses.values())
        return all(len(values) == _WITNESSED and abs(rise(values)) <= _CLEAR for values in witnesses)

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        where, rows = last.where(), self.memory[key].zeros
        return where["time"], Alert(
            self.name,
            "fail",
            f"{key} has been 0 in {rows} updates in a row{at_clock(where['clocks'])}: updates do not change the "
            "parameters; usually the optimizer holds others, gradients are cut off, the learning rate is far too "
            "small, or the step is never called",
            last.evidence(rows=rows),
            self.source,
            key,
            where["clocks"],
        )
