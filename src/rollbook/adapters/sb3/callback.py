"""`RollbookCallback`: records a Stable-Baselines3 training in a run.

model.learn(100_000, callback=RollbookCallback())
model.learn(100_000, callback=[RollbookCallback(run, checkpoint_every=10_000), EvalCallback(eval_env)])
"""

from __future__ import annotations

import weakref
from functools import partial

from rollbook.adapters._run import (
    end_training,
    find_run,
    go_on,
    go_on_at,
    keep_config,
    lies_beside,
    needed,
    options_of,
    reached,
    run_and_scope,
)
from rollbook.adapters.sb3._environments import already_recorded, environment_of, remember_makers
from rollbook.adapters.sb3._episodes import EpisodeTracker, finished_episode, watch_evaluation
from rollbook.adapters.sb3._model import GradientSteps, describe, is_on_policy
from rollbook.adapters.sb3.output import VERSION, RollbookOutputFormat
from rollbook.errors import BadInput
from rollbook.schema import aliases as keys
from rollbook.system.bill import Bill, warn_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.vec_env import VecEnv

    from rollbook.adapters.sb3._episodes import EpisodeColumns
    from rollbook.run.scope import Scope

remember_makers()

if TYPE_CHECKING:

    class _Base:
        model: BaseAlgorithm
        logger: Logger
        training_env: VecEnv
        locals: dict[str, Any]
        num_timesteps: int

        def __init__(self, verbose: int = 0) -> None: ...
else:
    from stable_baselines3.common.callbacks import BaseCallback as _Base


_runs_opened: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""Model -> the run that a callback opened for it last."""

_THROUGH = ("env_step", "gradient_step")
"""Other callbacks log at the same step after the save. After a resume they are not called again for that step."""


class RollbookCallback(_Base):
    """Records a training in a run.

    What the logger dumps: a row under its native keys at its native step (see `RollbookOutputFormat`). Also:

    - `episodes`: each training episode with an unrounded return, in the scope "train"; those of an `EvalCallback` in
      "test".
    - On-policy algorithms dump the `train/*` of an update one dump late, and never those of the last update. The native
      keys keep that behaviour. The canonical keys (`update/loss/policy` …) are separate rows, one per update, at the
      step of that update.
    - `timings`: "rollout" and "train", in seconds.
    - clocks: env_step, gradient_step (optimizer steps), policy_version (updates), episode, and `step` (num_timesteps).
    - configuration, seed, checkpoints, and the best model an `EvalCallback` saves.

    `num_timesteps` restarts at 0 when `learn` is called again, or on a loaded model; env_step continues. A run that is
    opened here ends with `learn`; `learn(reset_num_timesteps=False)` of the same model continues it.

    Args:
      run: a run or a scope of a run. None uses the current run if it is not about another training, or opens one with
        the environment as project and the algorithm as name.
      project, run_options: of a run that is opened here.
      checkpoint_every: save the model each time env_step passes a multiple of this.
      keep: how many of these checkpoints to keep, in addition to the best.
      every_update: whether each update is a row under canonical names. None: only for on-policy algorithms.
      verbose: as in any callback.
    Raises:
      BadInput: `checkpoint_every` is not a number of at least 1.
    """

    def __init__(
        self,
        run: object = None,
        *,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
        checkpoint_every: int | None = None,
        keep: int | None = None,
        every_update: bool | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if checkpoint_every is not None and (not isinstance(checkpoint_every, int) or checkpoint_every < 1):
            raise BadInput(f"checkpoint_every={checkpoint_every!r}: pass a number of env steps, at least 1, or None")
        self.run: Any = run
        self._given = run
        self._began: object = None  # the `learn` that it records
        self._is_second = False  # another callback records this training in the same scope
        self._options = options_of(project, run_options)
        self._every, self._keep, self._every_update = checkpoint_every, keep, every_update
        self._count = Bill()
        self._output: RollbookOutputFormat | None = None
        self._offset = self._updates = self._episodes = self._next_checkpoint = 0
        self._seen_updates = -1
        self._gradient_steps: GradientSteps | None = None
        self._tracker: EpisodeTracker | None = None
        self._recorded_inside: list[bool] = []
        self._open_stage: Any = None
        self._finished: tuple[Any, int] = (None, 0)  # the library's list of episodes, and how many of them are logged
        self._evaluations: list[Any] = []  # every EvalCallback of this training
        self._best_seen: dict[int, float] = {}

    # -- what Stable-Baselines3 calls

    def _init_callback(self) -> None:
        before, self.run = self.run, needed(self._find_run(), "RollbookCallback", "callback")
        if self.run is not before:  # a callback may be used again, for another model
            self._updates = self._episodes = 0
            self.__dict__.pop("_train_scope", None)
        self._count = Bill(to=self.run)
        self._is_second = self._other_records()
        if self._is_second:
            warn_caller(
                "this training has two RollbookCallbacks for one run: the second records nothing, so that each number "
                "is stored once. Leave one out, or give each a scope of its own: RollbookCallback(run.scope('a'))"
            )
            return
        self._began = self._learn
        self._count.guard("logger", "joining the logger", self._join_logger)
        self._count.guard("config", "keeping the configuration", self._keep_config)

    def _find_run(self) -> Any:
        model: Any = self.model
        if self._given is not None and self._given is not True:
            return find_run(self._given, project="", name="", user=self, host="stable_baselines3", subject=model)[0]
        total = int(getattr(model, "_total_timesteps", 0) or 0)
        before = _runs_opened.get(model)
        if before is not None:
            opener = before._parts.opener
            if opener is not None and getattr(opener.user, "_began", None) != self._learn:
                end_training(before, opener.user, "crashed")  # an exception ended that `learn`
            if opener is not None and int(model.num_timesteps) > 0:  # learn(reset_num_timesteps=False) continues
                opener.take(self)
                if "total" not in self._options and total and opener.arguments is not None:
                    opener.arguments = {**opener.arguments, "total": {"env_step": total}}
                _runs_opened[model] = run = go_on(before)
                return run
        environment = environment_of(model)
        run, is_opened = find_run(
            None,
            project=environment or "environment",
            name=type(model).__name__,
            seed=model.seed,
            options=self._options,
            defaults={"total": {"env_step": total}} if total else None,
            user=self,
            host="stable_baselines3",
            subject=model,
            algorithm=type(model).__name__,
            environment=environment,
            has_end=True,
        )
        if is_opened:
            _runs_opened[model] = run
        return run

    def _other_records(self) -> bool:
        """Whether another callback of this `learn` writes to the same run under the same names."""
        here = run_and_scope(self.run)
        for output in self.logger.output_formats:
            other = getattr(getattr(output, "clocks", None), "__self__", None)
            if not isinstance(other, RollbookCallback) or other is self or not isinstance(output, RollbookOutputFormat):
                continue
            if run_and_scope(other.run) == here and other._began == self._learn:
                return True
        return False

    @property
    def _learn(self) -> object:
        """Identifies a call of `learn`."""
        return getattr(self.model, "start_time", None)

    def _on_training_start(self) -> None:
        if self._is_second:
            return
        guard = self._count.guard
        guard("clocks", "reading the counters", self._start_clocks)
        self._tracker = guard("episodes", "following the environments", self._follow_environments)
        inside = guard("episodes", "looking for RecordEpisodes", lambda: already_recorded(self.training_env, self.run))
        self._recorded_inside = inside or []
        guard("evaluation", "watching the evaluation", self._watch_evaluations)
        guard("update", "reading the counters", self._start_counting)

    def _on_rollout_start(self) -> None:
        if self._is_second:
            return
        self._count.guard("update", "keeping the update", self._keep_update)
        self._end_stage()
        self._begin_stage("rollout")

    def _on_step(self) -> bool:
        if self._is_second:
            return True
        if self._evaluations:
            self._note_best_models()
        local, tracker = self.locals, self._tracker
        env_step = self.num_timesteps + self._offset
        self.run.clock(env_step=env_step)
        if "dones" not in local:
            self._count.guard("episodes", "keeping episodes", self._keep_finished)
        elif tracker is not None:
            try:
                ended = tracker.step(local["rewards"], local["dones"], local["infos"])
                if ended:
                    self._keep_episodes(ended)
            except Exception as err:
                self._count.failed("episodes", "keeping episodes", err)
        if self._every is not None and env_step >= self._next_checkpoint:
            self._count.guard("checkpoint", "saving a checkpoint", self._checkpoint)
        return True

    def _on_rollout_end(self) -> None:
        if self._is_second:
            return
        self._note_best_models()
        if "dones" not in self.locals:
            self._count.guard("episodes", "keeping episodes", self._keep_finished)
        self._end_stage()
        self._begin_stage("train")

    def _on_training_end(self) -> None:
        if self._is_second:
            return
        self._count.guard("update", "keeping the update", self._keep_update)
        self._end_stage()
        self._note_best_models()
        if self._gradient_steps is not None:
            self._count.guard("update", "counting gradient steps", self._gradient_steps.close)
        self._count.guard("logger", "leaving the logger", self._leave_logger)
        end_training(self.run, self)

    def close(self) -> None:
        """Finish the run if this callback opened it, before the training ends. Twice is fine."""
        end_training(self.run, self)

    # -- start of training

    def _join_logger(self) -> None:
        lies_beside(self.run, self.logger, "dir")
        outputs = self.logger.output_formats
        here = run_and_scope(self.run)
        mine = [o for o in outputs if isinstance(o, RollbookOutputFormat) and o.run and run_and_scope(o.run) == here]
        stale = [o for o in outputs if isinstance(o, RollbookOutputFormat) and o.is_callbacks and self._is_stale(o)]
        outputs[:] = [o for o in outputs if o not in stale]
        mine = [o for o in mine if o not in stale]
        if not mine:
            mine = [RollbookOutputFormat(self.run)]
            mine[0].is_callbacks = True
            outputs.append(mine[0])
        self._output = mine[0]
        self._output.clocks = self._clocks

    def _is_stale(self, output: RollbookOutputFormat) -> bool:
        """Whether the output belongs to the callback of another `learn`, which ended without telling it."""
        other = getattr(output.clocks, "__self__", None)
        return not isinstance(other, RollbookCallback) or other is self or other._began != self._learn

    def _leave_logger(self) -> None:
        """Stop recording the model's logger: what it logs in the next `learn` belongs to another training."""
        output = self._output
        if output is not None and output.is_callbacks and output in self.logger.output_formats:
            self.logger.output_formats.remove(output)

    def _keep_config(self) -> None:
        keep_config(self.run, {**describe(self.model), "stable_baselines3": VERSION})

    def _follow_environments(self) -> EpisodeTracker:
        tracker = EpisodeTracker(self.training_env)
        if tracker.reports_normalised:
            self.run.run.internals.writer.bill.remark(
                "normalised_returns",
                "VecMonitor stands outside of VecNormalize, so it reports sums of normalised rewards (column "
                "monitor_return, rollout/ep_rew_mean); the column return has the sums before normalisation. Write "
                "VecNormalize(VecMonitor(env)) to get those everywhere",
            )
        return tracker

    def _start_counting(self) -> None:
        self._seen_updates = int(getattr(self.model, "_n_updates", 0))
        buffer = getattr(self.model, "ep_info_buffer", None)
        self._finished = (buffer, len(buffer or ()))

    def _start_clocks(self) -> None:
        run, native = self.run.run, int(self.model.num_timesteps)
        now = run.clocks_now()
        if run.resumed and "env_step" not in now:
            now = {**reached(run), **now}
        step = now.get("env_step", 0)
        if native == 0 and step:  # the library counts from 0 again: continue from the run's clock
            run.clock(env_step=step)
            run.internals.continue_clocks("env_step")
            self._offset = step
        elif native + run.internals.offsets.get("env_step", 0) == step:
            self._offset = int(run.internals.offsets.get("env_step", 0))
        else:
            self._offset = 0
            if run.resumed and 0 < native < step:  # an earlier model was loaded: rows after it are abandoned
                self._count.guard("rewind", "rewinding to the loaded model", lambda: go_on_at(run, "env_step", native))
        self._updates = max(self._updates, now.get("policy_version", 0))
        self._episodes = max(self._episodes, now.get("episode", 0))
        self._gradient_steps = GradientSteps(self.model, now.get("gradient_step", 0))
        at = native + self._offset
        run.clock(**self._all_clocks(native))
        if self._every is not None:
            self._next_checkpoint = (at // self._every + 1) * self._every

    # -- clocks

    def _clocks(self, step: int) -> dict[str, Any]:
        """The clocks of a dumped row whose native step is `step`."""
        native = self.model.num_timesteps
        clocks = self._all_clocks(native)
        clocks["step"] = step
        if step:  # a program may dump at its own steps
            clocks["env_step"] = step + self._offset
        return clocks

    def _all_clocks(self, native: int) -> dict[str, object]:
        clocks: dict[str, object] = {
            "env_step": native + self._offset,
            "step": native,
            "policy_version": self._updates,
            "episode": self._episodes,
        }
        if self._gradient_steps is not None:
            clocks["gradient_step"] = self._gradient_steps.value
        return clocks

    # -- updates

    def _keep_update(self) -> None:
        """Log the values of an update under canonical names, at its own step."""
        updates = int(getattr(self.model, "_n_updates", 0))
        if updates == self._seen_updates:
            return
        self._seen_updates = updates
        self._updates += 1
        clocks = self._all_clocks(int(self.model.num_timesteps))
        wanted = is_on_policy(self.model) if self._every_update is None else self._every_update
        row = {}
        if wanted:
            for key, value in list(self.logger.name_to_value.items()):
                name = keys.canonical(key) if key.startswith("train/") else None
                if name is not None:
                    row[name] = value
        if row:
            self.run.log(row, **clocks)
        else:
            self.run.clock(**clocks)

    # -- episodes

    def _keep_episodes(self, ended: list[EpisodeColumns]) -> None:
        for columns in ended:
            self._episodes += 1
            inside = self._recorded_inside
            recorded = any(inside[columns["env_index"] :][:1]) if "env_index" in columns else any(inside)
            if not recorded:
                self._log_episode(self._train, columns)

    def _keep_finished(self) -> None:
        """Log the episodes of algorithms that report no steps (ARS), from the library's own list."""
        buffer = getattr(self.model, "ep_info_buffer", None)
        if buffer is None:
            return
        if buffer is not self._finished[0] or len(buffer) < self._finished[1]:  # a new list for each rollout
            self._finished = (buffer, 0)
        fresh = list(buffer)[self._finished[1] :]
        self._finished = (buffer, len(buffer))
        self._keep_episodes([finished_episode(info) for info in fresh])

    def _log_episode(self, scope: Scope, columns: EpisodeColumns) -> None:
        native = int(self.model.num_timesteps)  # its copy is one step old while an earlier callback evaluates
        clocks = {"env_step": native + self._offset, "step": native, "policy_version": self._updates}
        scope.log_episode(**columns, episode=self._episodes, **clocks)

    @property
    def _train(self) -> Scope:
        scope: Scope | None = self.__dict__.get("_train_scope")
        if scope is None:
            scope = self.__dict__["_train_scope"] = self.run.scope("train")
        return scope

    # -- evaluation

    def _find_evaluations(self) -> Iterator[Any]:
        """Every EvalCallback among the callbacks of this training."""
        from stable_baselines3.common.callbacks import EvalCallback

        callbacks, seen = [self.locals.get("callback")], set()
        while callbacks:
            callback = callbacks.pop()
            if callback is None or id(callback) in seen:
                continue
            seen.add(id(callback))
            if isinstance(callback, EvalCallback):
                yield callback
            callbacks += [*getattr(callback, "callbacks", ()), getattr(callback, "callback", None)]

    def _watch_evaluations(self) -> None:
        test = None
        self._evaluations = list(self._find_evaluations())
        for callback in self._evaluations:
            test = test or self.run.scope("test")
            inside = self._count.guard(
                "episodes",
                "looking for RecordEpisodes",
                partial(already_recorded, getattr(callback, "eval_env", None), self.run),
            )
            watch_evaluation(callback, partial(self._keep_evaluated, test, inside or []))
            self._best_seen[id(callback)] = float(callback.best_mean_reward)

    def _keep_evaluated(self, scope: Scope, recorded_inside: list[bool], columns: EpisodeColumns) -> None:
        if not any(recorded_inside[columns["env_index"] :][:1]):
            self._count.guard("evaluation", "keeping an evaluated episode", lambda: self._log_episode(scope, columns))

    def _note_best_models(self) -> None:
        """Register the best model that an EvalCallback saved since the last check, at the step of the save.

        Runs before the next step or update, while the counters of the evaluation are still those of its callback.
        """
        for callback in self._evaluations:
            before = self._best_seen.get(id(callback))
            if before is not None:
                self._count.guard(
                    "evaluation", "noting the best model", partial(self._note_best_model, callback, before)
                )

    def _note_best_model(self, callback: EvalCallback, before: float) -> None:
        best = float(callback.best_mean_reward)
        if not best > before:
            return
        from pathlib import Path

        self._best_seen[id(callback)] = best
        self.run.run.summary["best_mean_reward"] = best
        if callback.best_model_save_path is not None:
            path = Path(callback.best_model_save_path) / "best_model.zip"
            if path.exists():
                clocks = self._all_clocks(int(callback.num_timesteps))
                self.run.run.save_checkpoint(path=path, score=best, through=_THROUGH, **clocks)

    # -- checkpoints

    def _checkpoint(self) -> None:
        every = self._every or 1
        self._next_checkpoint = ((self.num_timesteps + self._offset) // every + 1) * every

        clocks = self._all_clocks(self.num_timesteps)
        self.run.run.save_checkpoint(write=self.model.save, keep=self._keep, through=_THROUGH, **clocks)  # appends .zip

    # -- timings

    def _begin_stage(self, name: str) -> None:
        self._open_stage = self.run.timer(name)
        self._open_stage.__enter__()

    def _end_stage(self) -> None:
        if self._open_stage is not None:
            self._open_stage.__exit__(None, None, None)
            self._open_stage = None
