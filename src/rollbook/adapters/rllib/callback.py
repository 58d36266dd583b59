"""RollbookCallback: RLlib's hooks, in the algorithm's process and in every env runner.

config.callbacks(callbacks(dir="runs", project="plant"))
"""

from __future__ import annotations

import functools
import os
from typing import Any, ClassVar

from ray.rllib.callbacks.callbacks import RLlibCallback

from rollbook.adapters._run import go_on_at, lies_beside, reported, undated
from rollbook.adapters.rllib.data import Evaluations, take_episode_data, tidy
from rollbook.adapters.rllib.files import write_episode_data
from rollbook.adapters.rllib.identity import RunOptions, function_storage, names_of, open_run, plain_config
from rollbook.adapters.rllib.runner import Runner
from rollbook.adapters.rllib.walk import Walker, clocks_of, file_step
from rollbook.errors import BadInput
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.env.env_runner_group import EnvRunnerGroup

    from rollbook.adapters.rllib.runner import Address, Episode
    from rollbook.adapters.rllib.walk import Patterns

    T = TypeVar("T")

_ADDRESS = "_rollbook_address"
_LEAVE_SECONDS = 5.0


def callbacks(
    dir: str | os.PathLike[str] | None = None,
    project: str | None = None,
    name: str | None = None,
    *,
    include: Patterns = None,
    exclude: Patterns = None,
    episode_data: bool = False,
    transitions: bool = False,
    **options: object,
) -> type[RollbookCallback]:
    """A class for `config.callbacks(...)`: on its own, in a list with others, or as a base class.

    Args:
      dir: root of all runs; must be the same folder on every host. Default: $ROLLBOOK_DIR, or "runs".
      project, name: of the run. Default: names of experiment and trial; without Tune, of environment and algorithm.
      include, exclude: regular expressions on the names of results; see `Walker`.
      episode_data: store info["media"] of every episode in files `<trial>/episode_data/data-<step>.json`.
      transitions: record every transition, for offline training; single- and multi-agent.
      options: further arguments of `rollbook.init` (seed, tags, notes, sinks, keeper, strict, run_id, resume, …).
    Raises:
      BadInput: an argument cannot be used.
    """
    Walker(include, exclude)
    for what, value in (("episode_data", episode_data), ("transitions", transitions)):
        if value not in (True, False):
            raise BadInput(f"{what}={value!r:.80}: pass True or False")
    attributes = {
        "settings": RunOptions(dir, project, name, options),
        "walker_arguments": (include, exclude),
        "episode_data": bool(episode_data),
        "transitions": bool(transitions),
        "__module__": __name__,
        "__doc__": RollbookCallback.__doc__,
    }
    return type("RollbookCallback", (RollbookCallback,), attributes)


def _hand_over(env_runner: object, address: Address) -> None:
    """Runs in the env runner's process, which uses the address from its next episode on."""
    setattr(env_runner, _ADDRESS, address)


def _leave_open(env_runner: object) -> None:
    """Runs in the env runner's process when training ends."""
    for callback in getattr(env_runner, "_callbacks", ()):
        if isinstance(callback, RollbookCallback):
            callback._runner.leave()


def _bill_of_callback(self: Any, name: str, err: Exception) -> None:
    self._count.failed(f"rllib/{name}", f"RollbookCallback.{name}()", err)


_harmless = reported(_bill_of_callback)


class RollbookCallback(RLlibCallback):  # type: ignore[misc]
    """Records the episodes of all env runners, and each result, in one run. Made by `callbacks(...)`.

    Its hooks are called by RLlib. Arguments as in `ray.rllib.callbacks.callbacks.RLlibCallback`.

    Nothing raises into training, except for arguments that `rollbook.init` rejects when the algorithm is built.

    Attributes:
      run: the run, in the algorithm's process, once the algorithm is built.
    """

    settings: ClassVar[RunOptions | None] = None
    walker_arguments: ClassVar[tuple[Patterns, Patterns]] = (None, None)
    episode_data: ClassVar[bool] = False
    transitions: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.run: Any = None
        self._in_function = False
        self._count = Bill()
        self._walker = Walker(*self.walker_arguments)
        self._evaluations = Evaluations()
        self._runner = Runner(episode_data=self.episode_data, transitions=self.transitions)

    # -- in the algorithm's process

    def on_algorithm_init(self, *, algorithm: Algorithm, **_: object) -> None:
        """Open the trial's run (or join it if the driver opened it), and pass it to every env runner."""
        config: Any = self._ask("its configuration", lambda: algorithm.config)
        # Tune does not pass the trial's id to an Algorithm (its trial_id is "default"); only its storage path remains.
        experiment, trial = self._ask("its trial", lambda: names_of(getattr(algorithm, "_storage", None))) or (None, "")
        if experiment is None:  # built by a function that Tune runs: the trial is the function's
            storage = self._count.guard("rllib/trial", "looking for the trial", function_storage)
            experiment, trial = names_of(storage)
            self._in_function = experiment is not None
        self.run = open_run(
            self.settings or RunOptions(),
            experiment=experiment,
            trial=trial,
            trial_name=undated(trial),
            fallback=(self._ask("its environment", lambda: _env_name(config)) or "rllib", type(algorithm).__name__),
            config=self._ask("its configuration", lambda: plain_config(config)) or {},
            user=algorithm,
        )
        self._count = Bill(to=self.run)
        lies_beside(self.run, algorithm, "logdir")
        self._ask("its end", lambda: self._end_with(algorithm))
        if self._ask("its API stack", lambda: not getattr(config, "enable_env_runner_and_connector_v2", True)):
            self._count(
                "rllib/old_stack",
                message="this algorithm runs on RLlib's old API stack: its results are recorded, its episodes are not. "
                "Use the new stack (the default) to have both",
            )
            return
        self._count.guard("rllib/hand_over", "handing the run to the env runners", lambda: self._hand_to_all(algorithm))

    def _ask(self, what: str, question: Callable[[], T]) -> T | None:
        """The answer of the algorithm; None, counted, if it raises."""
        return self._count.guard("rllib/algorithm", f"asking the algorithm for {what}", question)

    def _hand_to_all(self, algorithm: Algorithm) -> None:
        for group in (getattr(algorithm, "env_runner_group", None), getattr(algorithm, "eval_env_runner_group", None)):
            if group is not None:
                group.foreach_env_runner(functools.partial(_hand_over, address=self._address()))

    def _address(self) -> tuple[str, str, dict[str, object], int]:
        return (*self.run._address(), self.run.attempt)

    def _end_with(self, algorithm: Algorithm) -> None:
        """Finish the run when the algorithm is stopped: there is no hook for that."""
        cleanup = algorithm.cleanup

        def cleanup_and_finish() -> object:
            try:
                self._count.guard("rllib/leave", "ending the episodes under way", lambda: self._leave(algorithm))
                return cleanup()
            finally:
                self.run.finish()

        algorithm.cleanup = cleanup_and_finish

    def _leave(self, algorithm: Algorithm) -> None:
        """Write a row for unfinished episodes when training ends, marked as incomplete."""
        for group in (getattr(algorithm, "env_runner_group", None), getattr(algorithm, "eval_env_runner_group", None)):
            if group is not None:
                group.foreach_env_runner(_leave_open, timeout_seconds=_LEAVE_SECONDS)

    @_harmless
    def on_env_runners_recreated(
        self, *, env_runner_group: EnvRunnerGroup, env_runner_indices: Sequence[int], **_: object
    ) -> None:
        """Pass the run to env runners that replace dead ones."""
        if self.run is None:
            return
        self._count.guard(
            "rllib/hand_over",
            "handing the run to new env runners",
            lambda: env_runner_group.foreach_env_runner(
                functools.partial(_hand_over, address=self._address()),
                local_env_runner=False,
                remote_worker_ids=list(env_runner_indices),
            ),
        )

    @_harmless
    def on_checkpoint_loaded(self, *, algorithm: Algorithm, **_: object) -> None:
        """Rewind a continued run to the checkpoint: later rows are hidden, and kept."""
        if self.run is None or not self.run.internals.writer.main:
            return  # the driver has opened the run, and rewinds it

        def rewind() -> None:
            era = self.run.internals.era
            go_on_at(self.run, "epoch", int(algorithm.iteration) or -1)
            if self.run.internals.era != era:
                self._hand_to_all(algorithm)

        self._count.guard("rllib/rewind", "going back to the checkpoint", rewind)

    @_harmless
    def on_evaluate_end(self, *, evaluation_metrics: dict[str, object], **_: object) -> None:
        """Normalise the metrics of an evaluation, for programs that call `algo.evaluate()` themselves."""
        self._count.guard("rllib/result", "shaping the evaluation", lambda: tidy(evaluation_metrics))

    @_harmless
    def on_train_result(self, *, algorithm: Algorithm, result: dict[str, object], **_: object) -> None:
        """Log the result, unless the driver does; normalise the distributions in it.

        If the trial is an algorithm, the driver gets all its results. If it is a function, the driver only gets what
        the function reports.
        """
        self._count.guard("rllib/result", "shaping the result", lambda: tidy(result))
        if self.run is None:
            return
        if not self.run.internals.writer.main and not self._in_function:
            self._count.guard("rllib/result", "noting the clocks", lambda: self.run.clock(**clocks_of(result)))
            return
        self._count.guard("rllib/result", "recording a result", lambda: self._log_result(algorithm, result))

    def _log_result(self, algorithm: Algorithm, result: dict[str, object]) -> None:
        iteration = result.get("training_iteration")
        if self.run.resumed and self.run.internals.era == 1 and isinstance(iteration, int):  # no checkpoint was loaded
            self._count.guard(
                "rllib/rewind", "beginning anew", lambda: go_on_at(self.run, "epoch", iteration - 1 or -1)
            )
        fresh = self._evaluations.without_repeated(result)
        if self.episode_data and self.run.internals.writer.main:
            write_episode_data(algorithm.logdir, file_step(result), take_episode_data(fresh))
        self._walker.log(self.run, fresh)

    # -- in the env runners' processes

    @_harmless
    def on_episode_start(self, *, episode: object, env_runner: object = None, env_index: int = 0, **_: object) -> None:
        """Begin an episode."""
        if env_runner is not None:
            self._runner.attach(getattr(env_runner, _ADDRESS, None), _is_evaluation(env_runner))
            self._runner.start(episode, env_runner, env_index)

    @_harmless
    def on_episode_step(self, *, episode: object, env_runner: object = None, env_index: int = 0, **_: object) -> None:
        """Record one step of an episode."""
        if env_runner is not None:
            self._runner.step(episode, env_runner, env_index)

    @_harmless
    def on_episode_end(
        self,
        *,
        episode: object,
        env_runner: object = None,
        metrics_logger: object = None,
        env_index: int = 0,
        **_: object,
    ) -> None:
        """End an episode."""
        if env_runner is not None:
            self._runner.end(episode, env_index, metrics_logger)

    @_harmless
    def on_sample_end(self, *, env_runner: object = None, samples: Iterable[Episode] = (), **_: object) -> None:
        """Write a complete sample."""
        if env_runner is not None:
            self._runner.sampled(samples, env_runner)


def _is_evaluation(env_runner: object) -> bool:
    return bool(getattr(getattr(env_runner, "config", None), "in_evaluation", False))


def _env_name(config: object) -> str:
    env = getattr(config, "env", None)
    return env if isinstance(env, str) else getattr(env, "__name__", None) or "rllib"
