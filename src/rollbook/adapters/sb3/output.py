"""`RollbookOutputFormat`: the run as an additional output of a Stable-Baselines logger.

model.logger.output_formats.append(RollbookOutputFormat(run))         # Stable-Baselines3
logger.Logger.CURRENT.output_formats.append(RollbookOutputFormat(run))  # the older Stable-Baselines
"""

from __future__ import annotations

import os
import sys
from functools import partial

from rollbook.adapters._run import end_training, find_run, options_of
from rollbook.adapters.sb3._host import Figure, HParam, Image, KVWriter, SeqWriter, Video, excluded_from
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

_RICH = (Figure, HParam, Image, Video)
_NOWHERE = ("",)
"""What the logger stores for a key without exclusion."""
_OLD_STEPS = ("total_timesteps", "total timesteps", "steps")
"""Where algorithms of the older library put the step counter: its logger has no step."""


class RollbookOutputFormat(KVWriter, SeqWriter):
    """Each dump is a row under its native keys. `step` is the native step; `env_step` is the same, continued over
    resumes.

    Arguments as in `stable_baselines3.common.logger.KVWriter` and `SeqWriter`, and as in the older
    `stable_baselines.logger`.

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

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """An instance that the older library also accepts as one of its own, if that library is in use."""
        old = sys.modules.get("stable_baselines.logger")
        if old is not None and not issubclass(cls, old.KVWriter):
            cls = type(cls.__name__, (cls, old.KVWriter, old.SeqWriter), {"__module__": cls.__module__})
        return super().__new__(cls)

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

    def write(self, key_values: Mapping[str, object], key_excluded: Mapping[str, object], step: int = 0) -> None:
        """Append one row."""
        values = key_values
        name = self.name
        excluded = key_excluded.items()
        hidden = {key for key, where in excluded if where != _NOWHERE and excluded_from(where, name)}
        if hidden:
            values = {key: value for key, value in key_values.items() if key not in hidden}
        self._row(values, {"step": step, "env_step": step} if self.clocks is None else self.clocks(step))

    def write_sequence(self, sequence: list[str]) -> None:
        """Log a line of text under the key "log"."""
        if self.run is not None:
            self.run.log_text("log", " ".join(map(str, sequence)))

    def close(self) -> None:
        """Finish the run if this format opened it."""
        end_training(self.run, self)

    # -- the older names

    def writekvs(self, kvs: Mapping[str, object]) -> None:
        """Append one row; the step is the algorithm's own total, if the row contains it."""
        step = next((kvs[key] for key in _OLD_STEPS if key in kvs), None)
        clocks = {} if step is None else {"step": step, "env_step": step}
        self._row(kvs, clocks)

    def writeseq(self, seq: list[str]) -> None:
        """Log a line of text under the key "log"."""
        self.write_sequence(seq)

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
