"""Stable-Baselines3 (and the older Stable-Baselines) with a rollbook run.

    from rollbook.adapters.sb3 import RollbookCallback

    model.learn(100_000, callback=RollbookCallback())

or, where only the logger is of interest:

    from rollbook.adapters.sb3 import configure        # was: from stable_baselines3.common.logger import configure

    model.set_logger(configure("logs", ["stdout", "csv", "tensorboard"]))

`rollbook.adapters.sb3.legacy` stands in for the older `stable_baselines.logger`; `rollbook.adapters.sb3.monitor` reads
and writes Monitor files.
"""

from __future__ import annotations

from rollbook.adapters.sb3._host import SUPPORTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.adapters.sb3._host import (
        DEBUG,
        DISABLED,
        ERROR,
        INFO,
        WARN,
        Figure,
        FormatUnsupportedError,
        HParam,
        Image,
        KVWriter,
        SeqWriter,
        Video,
    )
    from rollbook.adapters.sb3.callback import RollbookCallback
    from rollbook.adapters.sb3.events import TensorBoardOutputFormat
    from rollbook.adapters.sb3.files import CSVOutputFormat, JSONOutputFormat
    from rollbook.adapters.sb3.human import HumanOutputFormat
    from rollbook.adapters.sb3.logger import Logger, configure, filter_excluded_keys, make_output_format
    from rollbook.adapters.sb3.monitor import Monitor, ResultsWriter, load_results, read_monitor, write_monitor
    from rollbook.adapters.sb3.output import RollbookOutputFormat

_HOMES = {
    "_host": (
        *("DEBUG", "INFO", "WARN", "ERROR", "DISABLED"),
        *("Figure", "FormatUnsupportedError", "HParam", "Image", "KVWriter", "SeqWriter", "Video"),
    ),
    "callback": ("RollbookCallback",),
    "events": ("TensorBoardOutputFormat",),
    "files": ("CSVOutputFormat", "JSONOutputFormat"),
    "human": ("HumanOutputFormat",),
    "logger": ("Logger", "configure", "filter_excluded_keys", "make_output_format"),
    "monitor": ("Monitor", "ResultsWriter", "load_results", "read_monitor", "write_monitor"),
    "output": ("RollbookOutputFormat",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DEBUG",
    "DISABLED",
    "ERROR",
    "INFO",
    "SUPPORTED",
    "WARN",
    "CSVOutputFormat",
    "Figure",
    "FormatUnsupportedError",
    "HParam",
    "HumanOutputFormat",
    "Image",
    "JSONOutputFormat",
    "KVWriter",
    "Logger",
    "Monitor",
    "ResultsWriter",
    "RollbookCallback",
    "RollbookOutputFormat",
    "SeqWriter",
    "TensorBoardOutputFormat",
    "Video",
    "configure",
    "filter_excluded_keys",
    "load_results",
    "make_output_format",
    "read_monitor",
    "write_monitor",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'rollbook.adapters.sb3' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"rollbook.adapters.sb3.{home}"), name)
    globals()[name] = value
    return value
