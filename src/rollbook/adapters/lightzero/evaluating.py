"""The evaluators of LightZero and DI-engine, reporting through an EvaluatorLog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from rollbook.adapters.lightzero.collecting import _classes, lent
from rollbook.adapters.lightzero.evaluator import FIELDS, EvaluatorLog
from rollbook.adapters.lightzero.experiment import Experiment
from rollbook.adapters.lightzero.learning import LearnerBridge
from rollbook.system.bill import Bill, counted
from rollbook.system.files import read_json, write_json
from rollbook.system.guard import handled_by
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ding.worker import ISerialEvaluator

_WHERE = {
    "lzero.worker": ("MuZeroEvaluator", "AlphaZeroEvaluator"),
    "ding.worker": ("InteractionSerialEvaluator",),
}


def evaluator_classes() -> list[Any]:
    """The installed ones of their evaluators."""
    return _classes(_WHERE, ("eval",))


class EvaluatorBridge:
    """Watches the environments of an evaluation, and reports it.

    Every environment plays a fixed number of episodes, and only that many of each count. Episodes that a fast
    environment plays beyond its number, while others still run, would favour short episodes.
    """

    def __init__(
        self, experiment: Experiment, learner: LearnerBridge, save_evaluated: bool = True, keep_evaluated: int = 3
    ) -> None:
        self._experiment, self._learner = experiment, learner
        self._save_evaluated, self._keep = save_evaluated, keep_evaluated
        self._logs: dict[str, EvaluatorLog] = {}
        # Ids of the checkpoints of evaluations, oldest first, over all attempts of the run.
        self._memory = experiment.folder / "ckpt" / ".evaluated.json"
        ids = read_json(self._memory).get("ids")
        self._saved = [str(identity) for identity in ids] if isinstance(ids, list) else []

    def log(self, evaluator: ISerialEvaluator) -> EvaluatorLog:
        """The log of an evaluator."""
        name = evaluator._instance_name
        if name not in self._logs:
            self._logs[name] = EvaluatorLog(self._experiment, name)
        return self._logs[name]

    def around(self, theirs: Callable[..., object]) -> Callable[..., object]:
        """`eval`: they play, we count and write."""

        @wraps(theirs)
        def evaluate(
            evaluator: ISerialEvaluator,
            save_ckpt_fn: object = None,
            train_iter: int = -1,
            envstep: int = -1,
            *args: Any,
            **kwargs: Any,
        ) -> object:
            begun: _Evaluation | None = None
            with self._counted():
                n_episode = args[0] if args else kwargs.get("n_episode")
                begun = self._begin(evaluator, save_ckpt_fn, train_iter, envstep, n_episode)
            if begun is None:
                return theirs(evaluator, save_ckpt_fn, train_iter, envstep, *args, **kwargs)
            captured, log, engine = begun.captured, begun.log, begun.engine
            with (
                lent(self._counted, evaluator, _logger=captured, _tb_logger=captured),
                lent(self._counted, begun.env, step=begun.step),
                log.evaluating(),
            ):
                # Theirs would overwrite the best model in place. Ours is saved below, with its score.
                save = save_ckpt_fn if engine is None else _nothing
                answer = theirs(evaluator, save, train_iter, envstep, *args, **kwargs)
            with self._counted():
                checkpoint = None if engine is None else self._save(engine, log, begun.train_step, begun.env_step)
                more = captured.others(begun.watch.names)
                log.report(begun.train_step, begun.env_step, checkpoint=checkpoint, more=more)
            return answer

        return evaluate

    def _begin(
        self, evaluator: ISerialEvaluator, save_ckpt_fn: object, train_iter: int, envstep: int, n_episode: int | None
    ) -> _Evaluation | None:
        """What is needed to watch an evaluation; None in a process that does not write."""
        if evaluator._logger is None:
            return None
        log, env = self.log(evaluator), evaluator._env
        watch = _Watch(log, env.env_num, n_episode or evaluator._default_n_episode)
        begun = _Evaluation(
            log,
            _Captured(evaluator._logger, evaluator._tb_logger),
            watch,
            env,
            watch.around(env.step),
            self._learner.behind(save_ckpt_fn),
            self._experiment.counters("gradient_step", train_iter) if train_iter >= 0 else train_iter,
            self._experiment.counters("env_step", envstep) if envstep >= 0 else envstep,
        )
        # A resumed run knows the score of its best model; theirs restarts at -inf and would replace it.
        evaluator._max_episode_return = max(evaluator._max_episode_return, log.best)
        return begun

    def _counted(self) -> handled_by:
        return counted(self._experiment.run.count, "lightzero_evaluator", "an evaluation could not be kept")

    def _save(self, engine: object, log: EvaluatorLog, train_step: int, env_step: int) -> object:
        """Save the evaluated model if requested or if it is the best so far; of the others only the newest are kept."""
        mean = log.reward_mean()
        if not self._save_evaluated and not mean > log.best:
            return None
        checkpoint = self._learner.save_evaluated(engine, mean, train_step, env_step)
        if checkpoint.path is None:
            return None
        self._saved.append(checkpoint.id)
        surplus = self._saved[: -self._keep] if self._keep else self._saved
        if surplus:
            gone = self._experiment.run.internals.checkpoints.retire(surplus)
            self._saved = [identity for identity in self._saved if identity not in gone]
        guard = Bill(to=self._experiment.run).guard
        guard("lightzero_evaluator", "the list of evaluated models", write_json, self._memory, {"ids": self._saved})
        return checkpoint


@dataclass(frozen=True)
class _Evaluation:
    """A running evaluation: where it is logged, what captures it, whose model it is, and its steps in the run."""

    log: EvaluatorLog
    captured: _Captured
    watch: _Watch
    env: object
    step: Callable[..., object]
    engine: object
    train_step: int
    env_step: int


def _nothing(name: str) -> None:
    """Replaces `save_checkpoint` during an evaluation."""


class _Watch:
    """Counts the steps of each environment, and passes every episode that counts to the log."""

    def __init__(self, log: EvaluatorLog, env_num: int, n_episode: int) -> None:
        self._log = log
        self._steps: dict[int, int] = {}
        self._left = {i: n_episode // env_num + (i < n_episode % env_num) for i in range(env_num)}
        self.names: set[str] = set()

    def around(self, step: Callable[..., object]) -> Callable[..., object]:
        def watched(actions: object) -> object:
            timesteps = step(actions)
            with counted(self._log.experiment.run.count, "lightzero_evaluator", "a step could not be read"):
                self._look(timesteps)
            return timesteps

        return watched

    def _look(self, timesteps: Any) -> None:
        pairs = timesteps.items() if hasattr(timesteps, "items") else enumerate(timesteps)
        for env_id, timestep in pairs:
            if timestep.info.get("abnormal", False):
                self._steps[env_id] = 0
                continue
            self._steps[env_id] = self._steps.get(env_id, 0) + 1
            if not bool(timestep.done):
                continue
            steps, self._steps[env_id] = self._steps[env_id], 0
            if self._left.get(env_id, 0) <= 0:
                continue
            self._left[env_id] -= 1
            reward = timestep.info["eval_episode_return"]
            info = {"eval_episode_return": reward, **dict(timestep.info.get("episode_info") or {})}
            self.names.update(info)
            self._log.episode(_number(reward), steps, env_id, {name: _number(value) for name, value in info.items()})


def _number(value: object) -> object:
    """A 0-d or one-element array, tensor or number as a number."""
    number = scalar_of(value)
    return value if number is None else number


class _Captured:
    """Replaces an evaluator's text logger and writer: keeps the numbers, drops the lines that we write ourselves."""

    def __init__(self, text: Any, events: object) -> None:
        self._text, self._events = text, events
        self.scalars: dict[str, object] = {}

    def add_scalar(self, tag: str, value: object, step: int | None = None, **_: object) -> None:
        del step
        self.scalars[tag.partition("/")[2]] = value

    def others(self, ours: set[str]) -> dict[str, object]:
        """The numbers that are neither our fields nor computed from the environments' reports."""
        return {
            name: value
            for name, value in self.scalars.items()
            if name not in FIELDS and name.removesuffix("_mean") not in ours and scalar_of(value) is not None
        }

    def info(self, message: object, *args: object) -> None:
        text = str(message)
        if not text.startswith(("[EVALUATOR]", "\n+--")):
            self._text.info(message, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events if name.startswith(("add_", "flush", "close")) else self._text, name)
