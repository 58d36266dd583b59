"""Callbacks that add one statistic of the batch as a metric, and SaveLogDF, which saves the log as CSV."""

from __future__ import annotations

import os
from pathlib import Path

from rollbook.adapters.mrl.callback import Callback
from rollbook.errors import BadInput
from rollbook.system.files import replacing
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.values.array_types import NDArray


class StatsCallback(Callback):
    """A statistic of `batch_state[batch_attribute]`, of all items or of those of one source.

    If a batch has no item of that source, the metric is missing there, not 0.

    Args:
      batch_attribute: the attribute of the batch: a tensor, an array or a list with one number per item.
      grabname: the source whose items are used; None for all.
      include_buffer: also use items of `<grabname>_buffer`.
      name, order: of the callback. The metric has the same name.
    """

    def __init__(
        self,
        batch_attribute: str,
        grabname: str | None = None,
        include_buffer: bool = True,
        name: str = "stats",
        order: int = 20,
    ) -> None:
        super().__init__(name=name, order=order)
        self.batch_attribute, self.grabname, self.include_buffer = batch_attribute, grabname, include_buffer

    def get_values(self) -> NDArray:
        """The values to use, as an array; it may be empty."""
        import numpy as np

        state = self.environment.batch_state
        values: NDArray = host_array(state[self.batch_attribute])
        if self.grabname is None:
            return values
        wanted = {self.grabname, f"{self.grabname}_buffer"} if self.include_buffer else {self.grabname}
        chosen: NDArray = values[np.array([source in wanted for source in state.sources], bool)]
        return chosen

    def compute(self, values: NDArray) -> float:
        """The statistic of the values.

        Args:
          values: one number per item; at least one.
        Raises:
          TypeError: a subclass does not define it.
        """
        raise TypeError(f"{type(self).__name__} is not a statistic yet: define compute(self, values)")

    def setup(self) -> None:
        """Add the metric."""
        if type(self).compute is not StatsCallback.compute:
            self.environment.log.add_metric(self.name)

    def after_compute_reward(self) -> None:
        """Update the metric."""
        if type(self).compute is StatsCallback.compute:  # only used for get_values
            return
        values = self.get_values()
        if len(values):
            self.environment.log.update_metric(self.name, self.compute(values))
        else:
            skip = getattr(self.environment.log, "skip_metric", None)
            if skip is not None:
                skip(self.name)
            else:  # MRL's own log knows no missing values
                self.environment.log.update_metric(self.name, float("nan"))


def _name(batch_attribute: str, grabname: str | None, statistic: str) -> str:
    return "_".join(part for part in (batch_attribute, grabname, statistic) if part is not None)


class _Reduced(StatsCallback):
    """A statistic of all items, made by a method of arrays."""

    statistic = ""

    def __init__(self, batch_attribute: str, grabname: str | None = None, include_buffer: bool = True) -> None:
        name = _name(batch_attribute, grabname, self.statistic)
        super().__init__(batch_attribute, grabname, include_buffer, name)

    def compute(self, values: NDArray) -> float:
        """The statistic.

        Args:
          values: one number per item; at least one.
        """
        return float(getattr(values, self.statistic)())


class MaxCallback(_Reduced):
    """The largest value, as the metric `<attribute>_<source>_max`.

    Args:
      batch_attribute, grabname, include_buffer: see `StatsCallback`.
    """

    statistic = "max"


class MinCallback(_Reduced):
    """The smallest value, as the metric `<attribute>_<source>_min`.

    Args:
      batch_attribute, grabname, include_buffer: see `StatsCallback`.
    """

    statistic = "min"


class MeanCallback(_Reduced):
    """The mean value, as the metric `<attribute>_<source>_mean`.

    Args:
      batch_attribute, grabname, include_buffer: see `StatsCallback`.
    """

    statistic = "mean"


class PercentileCallback(StatsCallback):
    """A percentile, as the metric `<attribute>_<source>_p<percentile>`.

    Args:
      batch_attribute, grabname, include_buffer: see `StatsCallback`.
      percentile: 0 to 100; linear between items.
    Raises:
      BadInput: another percentile.
    """

    def __init__(
        self, batch_attribute: str, grabname: str | None, percentile: float, include_buffer: bool = True
    ) -> None:
        if not 0 <= percentile <= 100:
            raise BadInput(f"PercentileCallback(percentile={percentile!r}): a percentile lies between 0 and 100")
        super().__init__(batch_attribute, grabname, include_buffer, _name(batch_attribute, grabname, f"p{percentile}"))
        self.percentile = percentile

    def compute(self, values: NDArray) -> float:
        """The percentile.

        Args:
          values: one number per item; at least one.
        """
        import numpy as np

        return float(np.percentile(values, self.percentile))


class SaveLogDF(Callback):
    """Writes `log.df` as CSV each time some batches are complete.

    It runs after the log, so the file of n batches holds all n. The rest is written when training ends. Files appear
    complete or not at all. The folder is created.

    Args:
      frequency: a number of batches, at least 1. The file of n batches is `log_df_<n>.csv`.
      save_path: the folder.
    Raises:
      BadInput: the frequency is below 1.
    """

    def __init__(self, frequency: int, save_path: str | os.PathLike[str]) -> None:
        if frequency < 1:
            raise BadInput(f"SaveLogDF(frequency={frequency!r}): give a number of batches, at least 1")
        super().__init__(name="save_log", order=101)
        self.frequency, self.save_path = frequency, Path(save_path)
        self._saved = 0

    def after_batch(self) -> None:
        """Save, if it is due."""
        log = self.environment.log
        if log.iterations % self.frequency == 0:
            self._save(log)

    def after_train(self) -> None:
        """Save the batches after the last file."""
        log = self.environment.log
        if log.iterations != self._saved:
            self._save(log)

    def _save(self, log: Any) -> None:
        try:
            self.save_path.mkdir(parents=True, exist_ok=True)
            path = self.save_path / f"log_df_{log.iterations}.csv"
            with replacing(path) as temporary:
                log.df.to_csv(temporary, index=False)
            self._saved = log.iterations
        except Exception as err:
            count = getattr(log, "count", None)
            if count is None:
                raise
            count("save_log", f"SaveLogDF could not write to {self.save_path}: {type(err).__name__}: {err}")
