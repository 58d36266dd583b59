"""BufferLog: the transitions that enter and leave the replay buffer.

    log = BufferLog(run)
    log.pushed(len(new)); log.removed(len(old)); log.sampled(batch_size)
    log.report(train_iter, current_have=len(buffer))

LightZero's document shows `log/buffer/buffer_logger.txt` without its contents, and current LightZero writes none for
MuZero. The fields here are: `pushed_in`, `sampled_out`, `removed` (transitions since the last report), `current_have`
(transitions in the buffer), the totals `total_pushed_in`, `total_sampled_out`, `total_removed`, and any further fields
passed to `report` (num_of_game_segments, memory_usage …).
"""

from __future__ import annotations

from rollbook.adapters.lightzero.experiment import Experiment, experiment_of, harmless
from rollbook.adapters.lightzero.tables import get_tabulate_vars_hor

_FLOWS = ("pushed_in", "sampled_out", "removed")


class BufferLog:
    """Counts what enters and leaves the buffer, and reports it.

    Args:
      run: a Run or an Experiment. None uses the current run, or opens one.
      instance_name: the component: names its folder, its keys and its tags.
    """

    def __init__(self, run: object = None, instance_name: str = "buffer") -> None:
        self.experiment: Experiment = experiment_of(run)
        self.instance_name = instance_name
        self._flows = dict.fromkeys(_FLOWS, 0)
        self._used = False
        self.totals = {n: int(self.experiment.last(f"{instance_name}/total_{n}") or 0) for n in _FLOWS}

    @harmless
    def pushed(self, n: int) -> None:
        """Count transitions that were added.

        Args:
          n: how many.
        """
        self._add("pushed_in", n)

    @harmless
    def sampled(self, n: int) -> None:
        """Count transitions that were sampled by the learner; they stay in the buffer.

        Args:
          n: how many.
        """
        self._add("sampled_out", n)

    @harmless
    def removed(self, n: int) -> None:
        """Count transitions that were removed.

        Args:
          n: how many.
        """
        self._add("removed", n)

    def _add(self, flow: str, n: int) -> None:
        self._used = True
        self._flows[flow] += int(n)
        self.totals[flow] += int(n)

    @harmless
    def report(
        self, train_iter: int, envstep: int | None = None, current_have: int | None = None, **more: object
    ) -> dict[str, object]:
        """Write the fields since the last report, and start again.

        Args:
          train_iter: training iterations so far; the clock `gradient_step`.
          envstep: environment steps so far; the clock `env_step`. None: it keeps its reading.
          current_have: transitions in the buffer; None takes pushed minus removed.
          more: further fields: numbers.
        """
        fields: dict[str, object] = {}
        if self._used:
            fields.update(self._flows)
            fields.update((f"total_{name}", total) for name, total in self.totals.items())
            if current_have is None:
                current_have = self.totals["pushed_in"] - self.totals["removed"]
        if current_have is not None:
            fields["current_have"] = int(current_have)
        fields.update(more)
        self._flows = dict.fromkeys(_FLOWS, 0)
        if fields:
            text = self.experiment.text(self.instance_name)
            text.table(get_tabulate_vars_hor(fields, compat=self.experiment.compat))
            self.experiment.report(self.instance_name, fields, train_iter=train_iter, envstep=envstep)
        return fields
