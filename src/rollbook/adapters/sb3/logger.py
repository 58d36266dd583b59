"""`configure`: Stable-Baselines3's own logger, with a rollbook run among its outputs.

from rollbook.adapters.sb3 import configure        # was: from stable_baselines3.common.logger import configure

model.set_logger(configure("logs/ppo", ["stdout", "csv", "tensorboard"]))
"""

from __future__ import annotations

import os

from rollbook.adapters.sb3 import _host
from rollbook.adapters.sb3.output import RollbookOutputFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def configure(
    folder: str | os.PathLike[str] | None = None,
    format_strings: Sequence[str] | str | None = None,
    *,
    run: object = None,
    project: str | None = None,
    run_options: Mapping[str, object] | None = None,
) -> Any:
    """A logger of Stable-Baselines3 for `model.set_logger`, with the run as an additional output.

    Args:
      folder: where its files go, as in `stable_baselines3.common.logger.configure`; default $SB3_LOGDIR, else a new
        temporary folder.
      format_strings: names of its formats (stdout, log, json, csv, tensorboard), as a list or with commas between
        them; default $SB3_LOG_FORMAT, else stdout, log, csv. "rollbook" may be one of them.
      run: the run. None uses the current one or opens one named after the folder; False records nothing.
      project, run_options: of a run that is opened here.
    Raises:
      MissingExtra: Stable-Baselines3 is not installed.
      ValueError: Stable-Baselines3 has no such format.
    """
    _host.require("configure")
    from stable_baselines3.common import logger as theirs

    if format_strings is None:
        format_strings = os.environ.get("SB3_LOG_FORMAT", "stdout,log,csv")
    names = format_strings.split(",") if isinstance(format_strings, str) else format_strings
    formats = [name.strip() for name in names if name.strip() not in ("", "rollbook")]
    logger = theirs.configure(None if folder is None else os.fspath(folder), formats)
    if run is not False:
        log_folder = logger.get_dir() or "sb3"
        output = RollbookOutputFormat(run, project=project, run_options=run_options, folder=log_folder)
        logger.output_formats.append(output)
    return logger
