"""The libraries whose SummaryWriter is replaced by ours."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PACKAGES = {"torch": "torch.utils.tensorboard", "tensorboardX": "tensorboardX"}
"""Where each library's SummaryWriter is imported from. The class itself is in the module `writer` of that package."""

TENSORFLOWS = (
    "tensorflow.python.ops.gen_summary_ops",
    "tensorflow.python.summary.writer.event_file_writer",
)
"""Where Python calls the writer of `tf.summary`, whoever made it; the writer of `tf.compat.v1.summary.FileWriter`."""


def original(choice: str) -> Any:
    """The library's own SummaryWriter, even if ours has replaced its name; None if it is not loaded."""
    package = PACKAGES[choice]
    for module in (package, f"{package}.writer"):
        theirs = getattr(sys.modules.get(module), "SummaryWriter", None)
        if theirs is not None and not getattr(theirs, "writes_a_run", False):
            return theirs
    return None
