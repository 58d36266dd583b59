"""A `SummaryWriter` that also (or only) writes a rollbook run.

    from rollbook.adapters.tensorboard import SummaryWriter     # was: from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter("runs/CartPole-v1__ppo__1")
    writer.add_scalar("charts/episodic_return", 21.0, global_step)
    writer.close()

Needs neither torch nor tensorboardX; where the program uses one of them, it writes the event files as before.
"""

from __future__ import annotations

from rollbook.adapters.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
