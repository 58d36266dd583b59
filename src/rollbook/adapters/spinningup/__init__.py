"""Spinning Up's logger, writing to a rollbook run.

    from rollbook.adapters.spinningup import EpochLogger, setup_logger_kwargs

or, for unchanged algorithms of Spinning Up, before any of them is imported:

    import rollbook.adapters.spinningup
    rollbook.adapters.spinningup.install()       # spinup.utils.logx is now this module

Importing this needs neither TensorFlow nor torch nor mpi4py; each is imported only when the program uses it.
"""

from __future__ import annotations

import sys

from rollbook.adapters.spinningup.logger import DummyLogger, EpochLogger, Logger
from rollbook.adapters.spinningup.naming import FORCE_DATESTAMP, color2num, colorize, setup_logger_kwargs
from rollbook.adapters.spinningup.saving import restore_tf_graph
from rollbook.adapters.spinningup.serialization import convert_json, is_json_serializable
from rollbook.adapters.spinningup.statistics import mpi_statistics_scalar, num_procs, proc_id, sample_statistics

__all__ = [
    "FORCE_DATESTAMP",
    "DummyLogger",
    "EpochLogger",
    "Logger",
    "color2num",
    "colorize",
    "convert_json",
    "install",
    "is_json_serializable",
    "mpi_statistics_scalar",
    "num_procs",
    "proc_id",
    "restore_tf_graph",
    "sample_statistics",
    "setup_logger_kwargs",
]


def install() -> None:
    """Replace `spinup.utils.logx`: algorithms imported afterwards log through rollbook.

    Algorithms that were imported before keep their logger.
    """
    import rollbook.adapters.spinningup as here

    sys.modules["spinup.utils.logx"] = here
    utils, package = sys.modules.get("spinup.utils"), sys.modules.get("spinup")
    if utils is not None:
        utils.logx = here  # type: ignore[attr-defined]
    if package is not None:
        package.Logger, package.EpochLogger = Logger, EpochLogger  # type: ignore[attr-defined]
