"""A `SummaryWriter` that writes a rollbook run, with or without event files.

    from rollbook.adapters.tensorboard import SummaryWriter     # was: from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter("runs/CartPole-v1__ppo__1")
    writer.add_scalar("charts/episodic_return", 21.0, global_step)
    writer.close()

Needs neither torch nor tensorboardX. If the program has loaded one of their writers, that writer writes the event
files. For programs and libraries that cannot be changed, `install()` replaces the SummaryWriter that they import.
"""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.adapters.tensorboard.patching import install, uninstall
    from rollbook.adapters.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter", "install", "uninstall"]

__getattr__, __dir__ = attach(
    __name__,
    {
        f"{__name__}.patching": ("install", "uninstall"),
        f"{__name__}.writer": ("SummaryWriter",),
    },
)
