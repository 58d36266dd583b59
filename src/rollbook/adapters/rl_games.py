"""rl_games with a rollbook run: an observer that wraps the program's own.

    runner = Runner(algo_observer=RollbookObserver(project="ant", seed=1))
    runner.load(config)
    runner.run({"train": True})

rl_games writes rewards and lengths three times, at frames, epochs and seconds (`rewards/step`, `/iter`, `/time`). Here
each is one number at the clocks `env_step` and `epoch`, and every row has its time. The event files are unchanged.
"""

from __future__ import annotations

import os
import sys

from rollbook.adapters._run import JoinedRun, harmless, lies_beside
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    class _Base:
        pass

    _Default: Any
else:
    _host = need("rl_games.common.algo_observer", extra="rl_games", why="RollbookObserver")
    _Base, _Default = _host.AlgoObserver, _host.DefaultAlgoObserver

__all__ = ["RollbookObserver"]

_COPIES = ("/iter", "/time")


class RollbookObserver(_Base):
    """An observer of rl_games that records what the algorithm writes and forwards every call to another observer.

    Its hooks are called by rl_games. Arguments as in `rl_games.common.algo_observer.AlgoObserver`.

    Args:
      observer: the program's own observer. None: rl_games' default.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `project`: the environment's name; of `name`: the experiment's.
    """

    def __init__(self, observer: Any = None, run: object = None, **run_options: Any) -> None:
        super().__init__()
        self.observer = observer if observer is not None else _Default()
        self.run: Any = None
        self._given, self._options = run, run_options

    def before_init(self, base_name: str, config: Mapping[str, object], experiment_name: str) -> None:
        """Forwarded to the other observer."""
        self.observer.before_init(base_name, config, experiment_name)

    def after_init(self, algo: Any) -> None:
        """Open the run and wrap the algorithm's writer. Ranks above 0 have no writer and record nothing."""
        writer = getattr(algo, "writer", None)
        if writer is not None and not isinstance(writer, _Writer):  # rl_games calls this twice for one algorithm
            config = dict(getattr(algo, "config", {}))
            project = str(config.get("env_name", "rl_games"))
            name = config.get("full_experiment_name") or config.get("name") or getattr(algo, "experiment_name", "run")
            joined = JoinedRun(
                "RollbookObserver",
                self._given,
                project,
                str(name),
                self._options,
                host="rl_games",
                seed=config.get("seed"),
                environment=config.get("env_name"),
            )
            self.run = joined.run
            lies_beside(self.run, algo, "experiment_dir")
            features = config.pop("features", None)  # objects, this observer among them
            joined.settings({key: value for key, value in config.items() if value is not features}, config.get("seed"))
            algo.writer = _Writer(algo, joined)
            self._register(algo, joined)
        self.observer.after_init(algo)

    @staticmethod
    def _register(algo: Any, joined: JoinedRun) -> None:
        save, train = algo.save, getattr(algo, "train", lambda: None)

        def training() -> Any:
            """Let the algorithm train, then finish a run that was opened here."""
            from rollbook.run.failure import status_of

            joined.go_on()  # it trains again
            try:
                return train()
            finally:
                joined.finish(status_of(sys.exc_info()[0]))

        def saving(fn: str) -> None:
            save(fn)
            joined.keep("checkpoint", "registering a checkpoint", saved, fn)

        def saved(fn: str) -> None:
            path = fn if os.path.exists(fn) else f"{fn}.pth"
            joined.checkpoint(path, through="env_step", env_step=_frames(algo))

        algo.save = saving
        algo.train = training

    def __getattr__(self, name: str) -> Any:
        """Other attributes that rl_games reads come from the program's own observer."""
        if name == "observer":
            raise AttributeError(name)
        return getattr(self.observer, name)

    def process_infos(self, infos: Any, done_indices: Any) -> None:
        """Forwarded to the other observer."""
        self.observer.process_infos(infos, done_indices)

    def after_steps(self) -> None:
        """Forwarded to the other observer."""
        self.observer.after_steps()

    def after_clear_stats(self) -> None:
        """Forwarded to the other observer."""
        self.observer.after_clear_stats()

    def after_print_stats(self, frame: int, epoch_num: int, total_time: float) -> None:
        """Forwarded to the other observer."""
        self.observer.after_print_stats(frame, epoch_num, total_time)


class _Writer:
    """Wraps the algorithm's SummaryWriter: it gets every call, and numbers also go to the run."""

    def __init__(self, algo: Any, joined: JoinedRun) -> None:
        self._algo, self._joined, self._native = algo, joined, algo.writer

    def add_scalar(self, tag: str, value: Any, step: Any = None, *more: Any, **options: Any) -> None:
        """Log one number. Copies at epochs and at seconds go to the event file only."""
        self._keep(tag, value, step)
        self._native.add_scalar(tag, value, step, *more, **options)

    @harmless
    def _keep(self, tag: str, value: object, step: Any) -> None:
        if not tag.endswith(_COPIES):
            self._joined.log({tag: value}, env_step=step, epoch=getattr(self._algo, "epoch_num", None))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


def _frames(algo: Any) -> int:
    return int(algo.frame) // max(1, int(getattr(algo, "num_agents", 1) or 1))
