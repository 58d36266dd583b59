"""Callback: an object that answers events.

class MyCallback(Callback):
    def __init__(self):
        super().__init__(name="my_callback")

    def after_sample(self):                     # called when that event comes
        print(len(self.environment.batch_state.samples))
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import IO, Any

from rollbook.adapters.mrl.plots import plot_dict
from rollbook.system.files import replacing
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from matplotlib.figure import Figure

RECENT = 10_000


class Recent(deque[float]):
    """The last 10,000 values of a series of seconds, so that memory stays bounded."""

    def __init__(self) -> None:
        super().__init__(maxlen=RECENT)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recent, (), None, iter(list(self))


class Callback:
    """Answers the events for which it has a method.

    Args:
      name: its name in the log and in the environment.
      order: callbacks are called in this order, smallest first; equal ones in the order of registration.

    Attributes:
      environment: set at registration.
      event_timelog: event -> seconds of the last 10,000 calls.
    """

    environment: Any = None
    batch_state: Any = None

    def __init__(self, name: str = "base_callback", order: int = 10) -> None:
        self.name, self.order = name, order
        self.event_timelog: dict[str, Recent] = defaultdict(Recent)

    def __call__(self, event_name: str) -> object:
        """Answer an event, and record how long it took.

        Args:
          event_name: the event; one without a method is only timed.
        """
        began = time.perf_counter()
        answer = getattr(self, event_name, None)
        output = answer() if answer is not None else None
        self.event_timelog[event_name].append(time.perf_counter() - began)
        return output

    def __repr__(self) -> str:
        return self.name

    def _filter_batch(self, valids: Sequence[bool]) -> None:
        """Keep only the samples, sources and latents of the batch for which `valids` is true."""
        import numpy as np

        keep = np.asarray(valids, bool)
        if keep.all():
            return
        state = self.environment.batch_state
        sources = list(state.sources)
        latents = {}
        for source, rows in state.latent_data.items():
            latents[source] = rows[keep[np.array([row_source == source for row_source in sources], bool)]]
        state.samples = [sample for sample, stays in zip(state.samples, keep, strict=True) if stays]
        state.sources = [source for source, stays in zip(sources, keep, strict=True) if stays]
        state.latent_data = latents

    def plot_dict(self, data_dict: Mapping[str, Sequence[object]], cols: int = 4, smooth: bool = True) -> Figure:
        """A matplotlib figure with one plot per name.

        Args:
          data_dict: name -> one number per batch.
          cols: plots in a row.
          smooth: draw a running average, with the values behind it in grey.
        """
        return plot_dict(data_dict, cols=cols, smooth=smooth)

    def plot_time(self, cols: int = 4, smooth: bool = True) -> Figure:
        """A matplotlib figure of the seconds of this callback, one plot per event.

        Args:
          cols: plots in a row.
          smooth: draw a running average, with the values behind it in grey.
        """
        return plot_dict({name: list(times) for name, times in self.event_timelog.items()}, cols=cols, smooth=smooth)

    def save(self, filename: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write this object with `torch.save`: a pickle, for programs that trust it.

        The file appears complete or not at all.

        Args:
          filename: a path, or a file that is open for writing bytes.
        Raises:
          MissingExtra: torch is not installed.
        """
        torch = need("torch", extra="mrl", why="Callback.save", also="torch")
        if not isinstance(filename, (str, os.PathLike)):
            torch.save(self, filename)
            return
        with replacing(filename) as temporary:
            torch.save(self, temporary)
