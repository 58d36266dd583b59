"""TRL's GRPO and RLOO trainers with a rollbook run: scalars, and every completion as a rollout with its fate.

    from rollbook.adapters.trl import RollbookCallback, completions, record_rewards

    trainer = GRPOTrainer(
        model, reward_funcs=record_rewards([accuracy, format_reward]), callbacks=[RollbookCallback()], ...
    )
    trainer.train()
    completions(run.book)        # prompt, completion, rewards/accuracy, advantage, group, stop_reason, ...

The callback works with every trainer of transformers; after `register()` also as `report_to="rollbook"`.
"""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.adapters.trl.callback import RollbookCallback, register
    from rollbook.adapters.trl.reading import completions
    from rollbook.adapters.trl.rewards import record_rewards

__getattr__, __dir__ = attach(
    __name__,
    {
        f"{__name__}.callback": ("RollbookCallback", "register"),
        f"{__name__}.reading": ("completions",),
        f"{__name__}.rewards": ("record_rewards",),
    },
)

__all__ = ["SUPPORTED", "RollbookCallback", "completions", "record_rewards", "register"]

SUPPORTED = ">=1.0,<2"
"""The versions of TRL that this adapter supports."""
