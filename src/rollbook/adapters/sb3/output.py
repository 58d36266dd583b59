"""The run as an additional output of Stable-Baselines3's logger.

model.set_logger(configure("logs/ppo", ["stdout", "csv"]))         # that library's own logger, and the run
model.logger.output_formats.append(RollbookOutputFormat(run))
"""

from __future__ import annotations

import os
import sys
from functools import partial

from rollbook.adapters import _versions
from rollbook.adapters._run import end_training, find_run, options_of
from rollbook.adapters.sb3 import SUPPORTED
from rollbook.system.bill import Bill

VERSION = _versions.require("stable-baselines3", SUPPORTED, extra="sb3", why="rollbook.adapters.sb3")

from stable_baselines3.common.logger import Figure, HParam, Image, KVWriter, SeqWriter, Video  # noqa: E402  # see above
from stable_baselines3.common.logger import configure as configure_theirs  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_RICH = (Figure, HParam, Image, Video)


class RollbookOutputFormat(KVWriter, SeqWriter):  # type: ignore[misc]
    """Each dump is a row under its native keys. `step` is the native step; `env_step` is the same, continued over
    resumes.

    Arguments as in `stable_baselines3.common.logger.KVWriter` and `SeqWriter`.

    Numbers become metrics, texts text, tensors and arrays of more than one element histograms. Figures, images, videos
    and hyper-parameters keep their kind. A key recorded with `exclude="rollbook"` is left out; exclusions of other
    formats have no effect. Values are read inside `write`; no reference to them is kept.

    Args:
      run: a run or a scope of a run. None uses the current run or opens one.
      project, run_options: of a run that is opened here.
      clocks: native step -> further clocks of a row; set by `RollbookCallback`.
      folder: a run that is opened here is named after it.
    Threads: as the logger. Raises only in a strict run.
    """

    name = "rollbook"
    is_callbacks = False
    """Whether `RollbookCallback` made it, for one `learn`."""

    def __init__(
        self,
        run: object = None,
        *,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
        clocks: Callable[[int], dict[str, Any]] | None = None,
        folder: str = "sb3",
    ) -> None:
        options = options_of(project, run_options)
        self.run, self.owned = find_run(
            run,
            project="stable-baselines3",
            name=os.path.basename(os.path.normpath(folder)),
            options=options,
            user=self,
            host="stable_baselines3",
        )
        self.clocks = clocks
        self._count = Bill(to=self.run)
        self._plain_kinds: set[type] = {float, int, bool}

    def write(self, key_values: Mapping[str, object], key_excluded: Mapping[str, Any], step: int = 0) -> None:
        """Append one row."""
        hidden = {key for key, formats in key_excluded.items() if formats and self.name in formats}
        values = {key: value for key, value in key_values.items() if key not in hidden} if hidden else key_values
        self._row(values, {"step": step, "env_step": step} if self.clocks is None else self.clocks(step))

    def write_sequence(self, sequence: list[str]) -> None:
        """Log a line of text under the key "log"."""
        if self.run is not None:
            self.run.log_text("log", " ".join(map(str, sequence)))

    def close(self) -> None:
        """Finish the run if this format opened it."""
        end_training(self.run, self)

    # -- parts

    def _row(self, values: Mapping[str, object], clocks: dict[str, Any]) -> None:
        run = self.run
        if run is None:
            return
        kinds = set(map(type, values.values()))
        if not kinds <= self._plain_kinds:
            values = self._keep_rich(values, kinds, clocks)
        if values:
            run.log(values, **clocks)

    def _keep_rich(
        self, values: Mapping[str, object], kinds: set[type], clocks: dict[str, object]
    ) -> dict[str, object]:
        """Log images, videos and the like; returns the other values."""
        self._plain_kinds |= {kind for kind in kinds if not issubclass(kind, _RICH)}
        plain = {}
        for key, value in values.items():
            if isinstance(value, _RICH):
                self._count.guard("rich_value", f"keeping {key!r}", partial(self._rich, key, value, clocks))
            else:
                plain[key] = value
        return plain

    def _rich(self, key: str, value: Any, clocks: dict[str, Any]) -> None:
        from rollbook.adapters._pixels import as_frames, as_picture, as_uint8

        run: Any = self.run
        if isinstance(value, Figure):
            run.log_figure(key, value.figure, **clocks)
            pyplot = sys.modules.get("matplotlib.pyplot")
            if value.close and pyplot is not None:  # closes it in pyplot only; others can still draw it
                pyplot.close(value.figure)
        elif isinstance(value, Image):
            run.log_image(key, as_uint8(as_picture(value.image, value.dataformats)), **clocks)
        elif isinstance(value, Video):
            run.log_video(key, as_uint8(as_frames(value.frames)), fps=value.fps, **clocks)
        else:
            whole = run.run
            whole.config["hparams"] = {**whole.config.get("hparams", {}), **value.hparam_dict}
            whole.summary.update({name: float(number) for name, number in value.metric_dict.items()})


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
      ValueError: Stable-Baselines3 has no such format.
    """
    if format_strings is None:
        format_strings = os.environ.get("SB3_LOG_FORMAT", "stdout,log,csv")
    names = format_strings.split(",") if isinstance(format_strings, str) else format_strings
    formats = [name.strip() for name in names if name.strip() not in ("", "rollbook")]
    logger = configure_theirs(None if folder is None else os.fspath(folder), formats)
    if run is not False:
        log_folder = logger.get_dir() or "sb3"
        output = RollbookOutputFormat(run, project=project, run_options=run_options, folder=log_folder)
        logger.output_formats.append(output)
    return logger
