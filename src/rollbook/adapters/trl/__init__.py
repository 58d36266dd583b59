"""TRL's GRPO and RLOO trainers with a rollbook run: scalars, and every completion with its rewards and advantage.

    from rollbook.adapters.trl import RollbookCallback, completions, record_rewards

    trainer = GRPOTrainer(
        model, reward_funcs=record_rewards([accuracy, format_reward]), callbacks=[RollbookCallback()], ...
    )
    trainer.train()
    completions(run.book)        # prompt, completion, rewards/accuracy, advantage, group, finish_reason, ...

The callback works with every trainer of transformers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.adapters.trl.advantages import attach_advantages
    from rollbook.adapters.trl.callback import RollbookCallback
    from rollbook.adapters.trl.reading import completions
    from rollbook.adapters.trl.rewards import record_rewards

_HOME = {
    "RollbookCallback": "callback",
    "attach_advantages": "advantages",
    "completions": "reading",
    "record_rewards": "rewards",
}

__all__ = ["SUPPORTED", "RollbookCallback", "attach_advantages", "completions", "record_rewards"]

SUPPORTED = ">=1.0,<2"
"""The versions of TRL this adapter was written for."""


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'rollbook.adapters.trl' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"rollbook.adapters.trl.{home}"), name)
    globals()[name] = value
    return value
