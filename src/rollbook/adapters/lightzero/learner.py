"""LearnerLog: the network's structure, the learner's metrics, its checkpoints.

log = LearnerLog(run, show_freq=100)
log.structure(model)
for train_iter in range(...):
    log.log({"cur_lr": lr, "total_loss": loss}, train_iter, envstep)
log.save_checkpoint(model.state_dict(), train_iter, envstep)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollbook.adapters.lightzero.experiment import Experiment, clocks_at, experiment_of, harmless
from rollbook.adapters.lightzero.tables import get_tabulate_vars_hor
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture import Checkpoint


class LearnerLog:
    """Records every iteration in the book, and shows averages of all iterations since the last table.

    Args:
      run: a Run or an Experiment. None uses the current run, or opens one.
      instance_name: the component: names its folder, its keys and its tags.
      show_freq: iterations between tables; iteration 0 has one.
      monitor_vars: the names in the table, in this order; None shows all.
      rank: of the process, shown in front of messages.
    """

    def __init__(
        self,
        run: object = None,
        instance_name: str = "learner",
        show_freq: int = 100,
        monitor_vars: Iterable[str] | None = None,
        rank: int = 0,
    ) -> None:
        self.experiment: Experiment = experiment_of(run)
        self.instance_name, self.show_freq, self.rank = instance_name, max(1, int(show_freq)), rank
        self.monitor_vars = None if monitor_vars is None else list(monitor_vars)
        self._sums: dict[str, list[float]] = {}  # name -> [sum, count] since the last table

    @property
    def pending(self) -> bool:
        """Whether something was logged since the last table."""
        return bool(self._sums)

    @harmless
    def structure(self, model: object) -> None:
        """Write the network's structure.

        Args:
          model: a torch module, whose `repr` is written, or a text.
        """
        self.info(model if isinstance(model, str) else repr(model))

    @harmless
    def info(self, message: str) -> None:
        """Write a message.

        Args:
          message: the message.
        """
        self.experiment.text(self.instance_name).info(f"[RANK{self.rank}]: {message}")

    @harmless
    def log(self, values: Mapping[str, object], train_iter: int, envstep: int | None = None) -> dict[str, float]:
        """Log the values of one training iteration.

        Args:
          values: name -> number of any type; also text and arrays, which the table leaves out.
          train_iter: training iterations so far; the clock `gradient_step`.
          envstep: environment steps so far; the clock `env_step`. None or below 0: unknown.
        Returns:
          The averages, if this iteration has a table; else {}.
        """
        clocks = clocks_at(train_iter, envstep)
        self.experiment.scope(self.instance_name).log(dict(values), **clocks)
        for name, value in values.items():
            number = scalar_of(value)
            if number is not None:
                pair = self._sums.setdefault(name, [0.0, 0.0])
                pair[0] += float(number)
                pair[1] += 1
        return self.show(train_iter, envstep) if train_iter % self.show_freq == 0 else {}

    @harmless
    def show(self, train_iter: int, envstep: int | None = None) -> dict[str, float]:
        """Write the table of averages since the last one, and start again. Names without a value are left out.

        Args:
          train_iter, envstep: as in `log`.
        Returns:
          The averages: `<name>_avg` -> number.
        """
        names = self._sums if self.monitor_vars is None else [n for n in self.monitor_vars if n in self._sums]
        averages = {f"{name}_avg": self._sums[name][0] / self._sums[name][1] for name in names}
        self._sums = {}
        experiment, instance = self.experiment, self.instance_name
        self.info(f"=== Training Iteration {train_iter} Result ===")
        experiment.text(instance).table(get_tabulate_vars_hor(averages, compat=experiment.compat))
        events = [({f"{instance}_iter/{name}": value for name, value in averages.items()}, train_iter)]
        clocks = clocks_at(train_iter, envstep)
        if "env_step" in clocks:
            events.append(({f"{instance}_step/{name}": value for name, value in averages.items()}, clocks["env_step"]))
        experiment.events.write(events)
        if averages:
            experiment.run.log({f"{instance}_iter/{name}": value for name, value in averages.items()}, **clocks)
        return averages

    def save_checkpoint(
        self,
        state: object,
        train_iter: int,
        envstep: int | None = None,
        score: float | None = None,
        keep: int | None = None,
    ) -> Checkpoint:
        """Save `ckpt/iteration_<train_iter>.pth.tar`; with the best score so far also as `ckpt_best.pth.tar`.

        Args:
          state: a state dict.
          train_iter, envstep: as in `log`.
          score: higher is better. None: no score.
          keep: how many to keep in addition to the best; None keeps all.
        Returns:
          The checkpoint of `run.save_checkpoint`.
        """
        clocks = clocks_at(train_iter, envstep)
        saved: Checkpoint = self.experiment.run.save_checkpoint(
            state, score=score, keep=keep, through=("gradient_step", "env_step"), **clocks
        )
        if saved.path is not None:
            self.info(f"{self.instance_name} save ckpt in {saved.path}")
        return saved
