"""Where a Spinning Up experiment writes, and the colours of its messages."""

from __future__ import annotations

import os
import time

FORCE_DATESTAMP = False

color2num = {
    "gray": 30,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
    "white": 37,
    "crimson": 38,
}


def colorize(string: str, color: str, bold: bool = False, highlight: bool = False) -> str:
    """A text between the terminal codes of a colour.

    Args:
      string: the text.
      color: gray, red, green, yellow, blue, magenta, cyan, white or crimson.
      bold: also bold.
      highlight: colour the background instead of the letters.
    Raises:
      KeyError: there is no such colour.
    """
    number = color2num[color]
    # 38 is not a colour: it begins a longer code.
    codes = [f"{48 if highlight else 38};5;161"] if number == 38 else [str(number + 10 if highlight else number)]
    if bold:
        codes.append("1")
    return f"\x1b[{';'.join(codes)}m{string}\x1b[0m"


def setup_logger_kwargs(
    exp_name: str,
    seed: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    datestamp: bool = False,
    **more: object,
) -> dict[str, object]:
    """The arguments of a logger: `data/<exp_name>/<exp_name>_s<seed>`, and further arguments for it.

    Args:
      exp_name: name of the experiment; runs of one name are drawn as one curve.
      seed: gives each seed its folder.
      data_dir: default $SPINUP_DATA_DIR, or "data".
      datestamp: put date and time into the names.
      more: passed to the logger unchanged: neptune_experiment=…, trackers=[…], run=…, project=….
    """
    stamp = time.strftime("%Y-%m-%d_") if datestamp or FORCE_DATESTAMP else ""
    parts = [os.fspath(data_dir or os.environ.get("SPINUP_DATA_DIR") or "data"), f"{stamp}{exp_name}"]
    if seed is not None:
        hour = time.strftime("%Y-%m-%d_%H-%M-%S-") if stamp else ""
        parts.append(f"{hour}{exp_name}_s{seed}")
    return {"output_dir": os.path.join(*parts), "exp_name": exp_name, **more}
