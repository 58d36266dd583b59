"""`RollbookCallback`: records a training of a transformers trainer in a run.

GRPOTrainer(..., callbacks=[RollbookCallback()])
"""

from __future__ import annotations

import os

from rollbook.adapters import _versions
from rollbook.adapters._run import (
    end_training,
    find_run,
    go_on,
    go_on_at,
    is_recorded_already,
    keep_config,
    lies_beside,
    needed,
    options_of,
    takes_native_keys,
)
from rollbook.adapters.trl import SUPPORTED
from rollbook.adapters.trl.batches import link_of
from rollbook.adapters.trl.fates import Fates
from rollbook.system.bill import Bill, warn_caller
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from transformers import TrainerState, TrainingArguments

    class _Base:
        pass
else:
    _Base = need("transformers", extra="trl", why="RollbookCallback").TrainerCallback
    if _versions.installed("trl") is not None:
        _versions.require("trl", SUPPORTED, extra="trl", why="RollbookCallback")


def register() -> None:
    """Make `TrainingArguments(report_to="rollbook")` add a `RollbookCallback()`. Calling it again changes nothing.

    transformers keeps its integrations in a dict without a function to extend it, so this adds an entry in this
    process. With that name and your own callback, the first of them records.
    """
    from transformers.integrations import integration_utils

    integration_utils.INTEGRATION_TO_CALLBACK["rollbook"] = RollbookCallback


class RollbookCallback(_Base):
    """Records a training in a run.

    Its hooks are called by transformers. Arguments as in `transformers.TrainerCallback`.

    - Each `on_log` is a row under the native keys, with `gradient_step` and `step` at `state.global_step` (and
      `train_iter`, if the run declares it). `epoch` is a fraction, so it is a value, not a clock.
    - The arguments, the model's configuration and the versions are the run's config.
    - Each checkpoint folder is registered without moving it.
    - Each completion that went through `record_rewards` gets its fate after its update.
    - A training that resumes from a checkpoint continues in a resumed run: rows after that checkpoint are hidden. One
      that begins at 0 in a resumed run hides all earlier rows, and says so.

    With several processes, the first logs scalars and checkpoints; completions come from all of them.

    Args:
      run: a run or a scope of a run. None uses the current run if it is not about another training, or opens one that
        ends with `train` (or with `evaluate` outside of it; a later one of this trainer continues it). Its project is
        then the name of `output_dir`'s folder, and its name comes from the trainer's arguments (`GRPOConfig` gives
        "grpo").
      project, run_options: of a run that is opened here.
    Raises:
      BadInput: run=False.
    """

    def __init__(
        self,
        run: object = None,
        *,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self.run: Any = None
        if run is not None:
            self.run = needed(find_run(run, project="", name="")[0], "RollbookCallback", "callback")
        self._given = self.run
        self._trainer: Any = None  # what identifies the trainer: its control
        self._is_training = self._was_trained = self._is_second = False
        self._options = options_of(project, run_options)
        self._count = Bill(to=self.run)
        self._fates: Fates | None = None

    # -- called by transformers

    def on_train_begin(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """Open the run if there is none, and record the configuration."""
        self._is_training = True
        if self._was_trained and not state.global_step:  # train() again: another training of this trainer
            self._trainer = None
        if not self.join(args, state, control):
            return
        guard = self._count.guard
        guard("config", "keeping the configuration", lambda: self._keep_config(args, kwargs.get("model")))
        guard("trl", "reading the trainer's arguments", lambda: self._link(args, kwargs))
        guard("rewind", "going back to the checkpoint", lambda: self._go_on_at(state))

    def on_log(
        self,
        args: object,
        state: TrainerState,
        control: object,
        logs: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Log one row under the native keys."""
        if self.join(args, state, control):  # evaluate() without train() logs too
            self._count.guard("row", "keeping a row", self._log, state, logs)

    def _log(self, state: TrainerState, logs: Mapping[str, object] | None) -> None:
        if state.is_world_process_zero and logs:
            self.run.log(logs, **self._clocks(state))

    def on_substep_end(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """After the backward pass of a micro-batch: note its completions."""
        self._with_fates(lambda fates: fates.used())

    def on_step_end(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """After an optimizer step: write the fates of its completions."""

        def work(fates: Fates) -> None:
            fates.used()
            fates.updated(int(state.global_step))

        self._with_fates(work)

    def on_prediction_step(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """Write the advantages of an evaluated batch."""
        self._with_fates(lambda fates: fates.settle())

    def on_save(self, args: TrainingArguments, state: TrainerState, control: object, **kwargs: object) -> None:
        """Register the checkpoint folder."""
        if self.run is not None and not self._is_second:
            self._count.guard("checkpoint", "registering a checkpoint", lambda: self._register(args, state))

    def on_train_end(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """Write the fates of completions that were not trained on, record how training ended, and end the run."""
        self._is_training, self._was_trained = False, True
        if self.run is None or self._is_second:
            return
        self._with_fates(lambda fates: fates.end())
        self._count.guard("summary", "keeping the summary", lambda: self._sum_up(state))
        end_training(self.run, self)

    def on_evaluate(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """An evaluation outside of `train` is over."""
        if not self._is_training:
            self._with_fates(lambda fates: fates.settle())
            end_training(self.run, self)

    def close(self) -> None:
        """Finish the run if this callback opened it, before the training ends. Twice is fine."""
        end_training(self.run, self)

    # -- start of training

    def join(self, args: object, state: TrainerState, control: object) -> bool:
        """Find or open the run of a trainer. Returns whether this callback records it.

        Args:
          args, state, control: of the trainer.
        """
        if self._trainer is not control:
            self._trainer, self._fates, self._was_trained = control, None, False
            self._find_run(args, state, control)
            self._is_second = is_recorded_already(self.run, self, control)
            if self._is_second:
                warn_caller(
                    "this training has two RollbookCallbacks for one run: the second records nothing, so that each "
                    "number is stored once. Leave one out: report_to='rollbook' adds one, too"
                )
        elif not self._is_second and self.run.run.status != "running" and self._given is None:
            self._count.guard("go_on", "continuing the run", self._go_on)
        return not self._is_second

    def knows(self, trainer: Any) -> None:
        """Before `train`, a reward function has found the trainer: how large its groups are, and what ends a text."""
        if not link_of(self.run).joined:
            self._count.guard("trl", "reading the trainer's arguments", self._link_with, trainer)

    def _link_with(self, trainer: Any) -> None:
        told = {"model": trainer.model, "processing_class": getattr(trainer, "processing_class", None)}
        self._link(trainer.args, told)

    def _go_on_at(self, state: TrainerState) -> None:
        go_on_at(self.run, "gradient_step", int(state.global_step) or -1)

    def _go_on(self) -> None:
        self.run, self._fates = go_on(self.run), None
        self._count = Bill(to=self.run)
        takes_native_keys(self.run)

    def _find_run(self, args: object, state: TrainerState, control: object) -> None:
        self._open_run(args, state, control)
        lies_beside(self.run, args, "output_dir")

    def _open_run(self, args: object, state: TrainerState, control: object) -> None:
        if self._given is not None:
            self.run = find_run(
                self._given, project="", name="", user=self, host="transformers", subject=control, has_end=True
            )[0]
            return
        defaults: dict[str, object] = {"clocks": ("train_iter",)}
        if getattr(state, "max_steps", 0) > 0:
            defaults["total"] = {"gradient_step": int(state.max_steps)}
        folder = os.path.basename(os.path.abspath(str(getattr(args, "output_dir", None) or "runs")))
        name = type(args).__name__.removesuffix("Config").lower() or "train"
        self.run, _ = find_run(
            None,
            project=folder,
            name=name,
            seed=getattr(args, "seed", None),
            options=self._options,
            defaults=defaults,
            user=self,
            host="transformers",
            subject=control,
            algorithm=name,
            has_end=True,
        )
        self._count = Bill(to=self.run)

    def _keep_config(self, args: TrainingArguments, model: object) -> None:
        if int(getattr(args, "process_index", 0) or 0):
            return
        settings: dict[str, object] = dict(args.to_dict())  # tokens are masked there
        described = getattr(model, "config", None)
        if described is not None and callable(getattr(described, "to_dict", None)):
            settings["model"] = described.to_dict()
        for name in ("trl", "transformers", "torch"):
            version = _versions.installed(name)
            if version is not None:
                settings[f"{name}_version"] = version
        keep_config(self.run, settings)

    def _link(self, args: object, kwargs: Mapping[str, object]) -> None:
        link = link_of(self.run)
        link.rank = int(getattr(args, "process_index", 0) or 0)
        link.num_generations = getattr(args, "num_generations", None)
        link.num_generations_eval = getattr(args, "num_generations_eval", None) or link.num_generations
        link.max_length = getattr(args, "max_completion_length", None)
        link.masks_truncated = bool(getattr(args, "mask_truncated_completions", False))
        link.weights = getattr(args, "reward_weights", None)
        link.joined = True
        ends: set[int] = set()
        generation = getattr(kwargs.get("model"), "generation_config", None)
        tokenizer = kwargs.get("processing_class")
        tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # a processor has one inside
        for holder in (generation, tokenizer):
            for name in ("eos_token_id", "pad_token_id"):
                value = getattr(holder, name, None)
                ends.update(value if isinstance(value, (list, tuple)) else [value] if value is not None else [])
        link.ends = frozenset(ends)

    # -- what it writes

    def _clocks(self, state: TrainerState) -> dict[str, int]:
        now = int(state.global_step)
        clocks = {"gradient_step": now, "step": now}
        if "train_iter" in self.run.run.internals.writer.clocks:
            clocks["train_iter"] = now
        return clocks

    def _with_fates(self, work: Callable[[Fates], None]) -> None:
        if self.run is None or self._is_second:
            return
        if self._fates is None:
            self._fates = Fates(self.run)
        self._count.guard("trl_fates", "keeping what became of completions", work, self._fates)

    def _register(self, args: TrainingArguments, state: TrainerState) -> None:
        path = os.path.join(str(args.output_dir), f"checkpoint-{state.global_step}")
        if not state.is_world_process_zero or not os.path.isdir(path):
            return
        score = None
        wanted = getattr(args, "metric_for_best_model", None)
        if wanted:
            for key in (wanted, f"eval_{wanted}"):
                for row in reversed(state.log_history):
                    if row.get("step") == state.global_step and row.get(key) is not None:
                        score = float(row[key])
                        break
        higher = getattr(args, "greater_is_better", None)
        self.run.run.save_checkpoint(
            path=path,
            score=score,
            higher_is_better=higher is not False,
            rng=False,
            through="gradient_step",
            **self._clocks(state),
        )

    def _sum_up(self, state: TrainerState) -> None:
        if not state.is_world_process_zero:
            return
        summary = self.run.run.summary
        summary["global_step"] = int(state.global_step)
        summary["stopped_by"] = "max_steps" if state.global_step >= state.max_steps else "callback"
        if getattr(state, "best_metric", None) is not None:
            summary["best_metric"] = float(state.best_metric)
            summary["best_model_checkpoint"] = str(state.best_model_checkpoint)
