"""NeMo-RL with a rollbook run: a back end for the list of its `Logger`, and its training batches as rollouts.

    from rollbook.adapters.nemo_rl import join

    (policy, ..., logger, checkpointer, grpo_state, master_config) = setup(config, ...)
    join(logger)
    grpo_train(..., logger, ...)

Written against NVIDIA-NeMo/RL 0275e75 (nemo_rl/utils/logger.py: `LoggerInterface`, `Logger`; the columns of the batches
as at 7ea279a, nemo_rl/algorithms/grpo.py).
"""

from __future__ import annotations

import functools
import re

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.errors import BadInput
from rollbook.values import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["RollbookLogger", "join"]

_FILE = re.compile(r"(?:.*/)?(train|val)_data_step(\d+)\.jsonl")


class RollbookLogger:
    """The methods of NeMo-RL's `LoggerInterface`; writes to a run.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      project, name: of a run that is opened here.
      run_options: further arguments of `rollbook.init`.
    """

    def __init__(
        self, run: object = None, *, project: str = "nemo-rl", name: str = "train", **run_options: object
    ) -> None:
        self._joined = JoinedRun("RollbookLogger", run, project, name, run_options, host="nemo_rl")
        self.run = self._joined.run

    @harmless
    def log_metrics(
        self,
        metrics: dict[str, Any],
        step: int,
        prefix: str | None = "",
        step_metric: str | None = None,
        step_finished: bool = False,
    ) -> None:
        """Log one row under `<prefix>/<key>`. With `step_metric`, that number counts instead of the step.

        Args:
          metrics: native key -> number; nested dicts are joined with "/".
          step: NeMo-RL's step; the clocks `step` and `gradient_step`.
          prefix: put before each key except `step_metric`. "" or None: the keys as they are.
          step_metric: key in `metrics` of the number that counts. None: `step` counts.
          step_finished: not used; every row is safe at once.
        """
        row = {f"{prefix}/{name}" if prefix and name != step_metric else name: cell for name, cell in flatten(metrics)}
        if step_metric is not None and step_metric in metrics:
            self._joined.log(row)
        else:
            self._joined.log(row, step=int(step), gradient_step=int(step))

    @harmless
    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Add to the configuration of the run.

        Args:
          params: setting -> value. Existing entries stay.
        """
        self._joined.settings(params)

    def log_histogram(self, histogram: list[Any], step: int, name: str) -> None:
        """Log the values, raw.

        Args:
          histogram: the raw values.
          step: NeMo-RL's step; the clocks `step` and `gradient_step`.
          name: the key.
        """
        self._joined.keep("nemo_histogram", "keeping a histogram", self._histogram, histogram, step, name)

    def _histogram(self, histogram: list[Any], step: int, name: str) -> None:
        self._joined.run.log_histogram(name, histogram, step=int(step), gradient_step=int(step))

    def log_plot(self, figure: Any, step: int, name: str) -> None:
        """Keep a figure of matplotlib as an image.

        Args:
          figure: a matplotlib figure. It stays open.
          step: NeMo-RL's step; the clocks `step` and `gradient_step`.
          name: the key.
        """
        self._joined.keep("nemo_plot", "keeping a plot", self._plot, figure, step, name)

    def _plot(self, figure: Any, step: int, name: str) -> None:
        import numpy as np

        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
        self._joined.run.log_image(name, pixels, step=int(step), gradient_step=int(step))

    @harmless
    def log_batch(self, batch: Mapping[str, Any], filename: str) -> None:
        """Log a training or validation batch, whose step and kind the name of its file has, as rollouts.

        Args:
          batch: column -> a list, an array or a tensor, one cell per sample; texts in `content`.
          filename: `train_data_step<N>.jsonl` or `val_data_step<N>.jsonl`, in any folder. Other names are ignored.
        """
        match = _FILE.fullmatch(filename)
        if match is not None:
            mode = "train" if match[1] == "train" else "eval"
            self._joined.keep("nemo_rollouts", "keeping rollouts", self._rollouts, batch, mode, int(match[2]))

    def _rollouts(self, batch: Mapping[str, Any], mode: str, step: int) -> None:
        import numpy as np

        columns = {name: _rows(cells) for name, cells in batch.items()}
        texts = columns.get("content")
        if not texts:
            return
        n = len(texts)
        lists: dict[str, list[Any]] = {}
        lengths = [int(np.asarray(own).reshape(-1)[0]) for own in columns.get("input_lengths") or [-1] * n]
        for name, column, kind in (
            ("token_ids", "tokens", np.int32),
            ("generation_logprobs", "logprobs", np.float32),
            ("token_loss_mask", "mask", np.int8),
        ):
            if columns.get(name):
                pairs = zip(columns[name], lengths, strict=True)
                lists[column] = [np.asarray(own).astype(kind)[: None if k < 0 else k] for own, k in pairs]
        ids = self._joined.run.run.rollouts.log_many(
            completions=["\n".join(map(str, own)) if isinstance(own, (list, tuple)) else str(own) for own in texts],
            reward=_numbers(columns.get("rewards")),
            mode=mode,
            batch=str(step),
            gradient_step=step,
            step=step,
            **lists,
        )
        if mode != "train" or "sample_loss_mask" not in columns:
            return
        used = [bool(cell) for cell in _numbers(columns["sample_loss_mask"]) or []]
        advantages = self._advantages(columns, lists.get("mask"), n)
        for is_used, report in (
            (True, self._joined.run.run.rollouts.trained),
            (False, self._joined.run.run.rollouts.dropped),
        ):
            chosen = [i for i in range(n) if used[i] is is_used]
            if chosen:
                own = [ids[i] for i in chosen]
                more: dict[str, Any] = {} if is_used else {"reason": "masked"}
                report(own, advantage=[advantages[i] for i in chosen], gradient_step=step, **more)

    def _advantages(self, columns: Mapping[str, list[Any]], masks: Sequence[Any] | None, n: int) -> list[Any]:
        """The advantage of each: that of its first trained token."""
        import numpy as np

        found: list[Any] = [None] * n
        for i, cells in enumerate(columns.get("advantages") or []):
            row = np.asarray(cells, dtype=float).reshape(-1)
            at = np.flatnonzero(masks[i]) if masks is not None and row.size > 1 else np.array([0])
            found[i] = float(row[at[0]]) if row.size and at.size and at[0] < row.size else None
        return found

    def finish(self) -> None:
        """Finish the run if it was opened here."""
        self._joined.finish()


def join(logger: Any, run: object = None, **options: Any) -> RollbookLogger:
    """Add a rollbook run to NeMo-RL's `Logger`: one more in its list of back ends, and its batches as rollouts.

    The batches are read from the arguments of `log_batched_dict_as_jsonl`, for which there is no list; that method of
    this object is wrapped, and writes its file as before.

    Args:
      logger: NeMo-RL's `Logger`.
      run, options: see `RollbookLogger`.
    Raises:
      BadInput: `logger` has no list of back ends.
    """
    if not isinstance(getattr(logger, "loggers", None), list):
        raise BadInput(
            f"join({type(logger).__name__}): it has no list `loggers`. Pass NeMo-RL's Logger, as setup() made it"
        )
    own = RollbookLogger(run, **options)
    logger.loggers.append(own)
    write = logger.log_batched_dict_as_jsonl

    @functools.wraps(write)
    def log_batched_dict_as_jsonl(to_log: Any, filename: str) -> Any:
        own.log_batch(to_log, filename)
        return write(to_log, filename)

    logger.log_batched_dict_as_jsonl = log_batched_dict_as_jsonl
    return own


def _rows(cells: Any) -> list[Any]:
    """The rows of a list, an array or a tensor."""
    detach = getattr(cells, "detach", None)
    if detach is not None:
        return list(detach().cpu().float().numpy() if str(cells.dtype) == "torch.bfloat16" else detach().cpu().numpy())
    return list(cells)


def _numbers(cells: Sequence[Any] | None) -> list[float] | None:
    import numpy as np

    return None if cells is None else [float(np.asarray(cell, dtype=float).reshape(-1)[0]) for cell in cells]
