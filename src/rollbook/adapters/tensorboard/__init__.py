"""A `SummaryWriter` that also (or only) writes a rollbook run.

    from rollbook.adapters.tensorboard import SummaryWriter     # was: from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter("runs/CartPole-v1__ppo__1")
    writer.add_scalar("charts/episodic_return", 21.0, global_step)
    writer.close()

Needs neither torch nor tensorboardX; where the program has loaded one of their writers, it writes the event files.
`FileWriter` and `RecordWriter` are here for programs that import them from the same place: files of one's own messages.
"""

from __future__ import annotations

from rollbook.adapters.tensorboard.writer import SummaryWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorboard.summary.writer.record_writer import RecordWriter

    from rollbook.adapters.tensorboard.events import FileWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]


def __getattr__(name: str) -> Any:
    if name == "FileWriter":
        from rollbook.adapters.tensorboard.events import FileWriter

        return FileWriter
    if name == "RecordWriter":
        from rollbook._optional import need

        why = "RecordWriter"
        return need("tensorboard.summary.writer.record_writer", extra="tensorboard", why=why).RecordWriter
    raise AttributeError(f"module 'rollbook.adapters.tensorboard' has no attribute {name!r}")
