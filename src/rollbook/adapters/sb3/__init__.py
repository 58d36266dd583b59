"""Stable-Baselines3 (and the older Stable-Baselines) with a rollbook run.

    from rollbook.adapters.sb3 import RollbookCallback

    model.learn(100_000, callback=RollbookCallback())

or, for the logger only:

    from rollbook.adapters.sb3 import configure        # was: from stable_baselines3.common.logger import configure

    model.set_logger(configure("logs", ["stdout", "csv", "tensorboard"]))

`rollbook.adapters.sb3.legacy` has the names of the older `stable_baselines.logger`; `rollbook.adapters.sb3.monitor`
reads and writes Monitor files.
"""

from __future__ import annotations

from rollbook.adapters.sb3._host import SUPPORTED
from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.adapters.sb3._host import (
        DEBUG,
        DISABLED,
        ERROR,
        INFO,
        WARN,
        Figure,
        HParam,
        Image,
        KVWriter,
        SeqWriter,
        Video,
    )
    from rollbook.adapters.sb3.callback import RollbookCallback
    from rollbook.adapters.sb3.logger import configure
    from rollbook.adapters.sb3.monitor import Monitor, ResultsWriter, load_results, read_monitor, write_monitor
    from rollbook.adapters.sb3.output import RollbookOutputFormat

_NAMES = {
    f"{__name__}._host": (
        *("DEBUG", "INFO", "WARN", "ERROR", "DISABLED"),
        *("Figure", "HParam", "Image", "KVWriter", "SeqWriter", "Video"),
    ),
    f"{__name__}.callback": ("RollbookCallback",),
    f"{__name__}.logger": ("configure",),
    f"{__name__}.monitor": ("Monitor", "ResultsWriter", "load_results", "read_monitor", "write_monitor"),
    f"{__name__}.output": ("RollbookOutputFormat",),
}
__getattr__, __dir__ = attach(__name__, _NAMES)

__all__ = [
    "DEBUG",
    "DISABLED",
    "ERROR",
    "INFO",
    "SUPPORTED",
    "WARN",
    "Figure",
    "HParam",
    "Image",
    "KVWriter",
    "Monitor",
    "ResultsWriter",
    "RollbookCallback",
    "RollbookOutputFormat",
    "SeqWriter",
    "Video",
    "configure",
    "load_results",
    "read_monitor",
    "write_monitor",
]
