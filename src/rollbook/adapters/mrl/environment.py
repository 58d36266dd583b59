"""Environment: a training loop that only calls events in a fixed order, for programs without MRL.

from rollbook.adapters.mrl import *
from rollbook.adapters.mrl.environment import *

env = Environment(cbs=[MySampler, MyReward()], log=Log(run))
env.fit(bs=64, sl=90, iters=100, report=10)

The star also imports what callbacks need: Callback, BatchState, the events, `to_device`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from rollbook.adapters.mrl.batch_state import BatchState, SettrDict
from rollbook.adapters.mrl.callback import Callback
from rollbook.adapters.mrl.events import Event, Events
from rollbook.adapters.mrl.log import Log
from rollbook.adapters.mrl.plots import plot_stack
from rollbook.adapters.mrl.tensors import to_device
from rollbook.errors import BadInput, RollbookWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

__all__ = ["BatchState", "Callback", "Environment", "Event", "Events", "SettrDict", "to_device"]


class _NoBuffer(Callback):
    """Used if no buffer was given: always empty, so that the buffer's events come with every batch.

    Samplers that expect a buffer are reported.
    """

    def __init__(self) -> None:
        super().__init__(name="buffer", order=0)

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def add(self, samples: Sequence[object], source: str | None = None) -> None:
        """Samples for the buffer are dropped."""
        self.environment.log.count(
            "mrl_no_buffer",
            message=f"{source or 'a sampler'} gave {len(samples)} samples to the buffer, and there is none: they are "
            "not used. Pass buffer=, or use MRL's own Environment (from mrl.train.environment import Environment)",
        )

    def before_train(self) -> None:
        """Warn if samplers leave room in each batch: MRL's environment would fill it from a buffer."""
        shares = {cb.name: cb.p_batch for cb in self.environment.cbs if _is_share(getattr(cb, "p_batch", None))}
        total = sum(shares.values())
        if not shares or abs(total - 1) < 1e-6:
            return
        listed = ", ".join(f"{name} {share:g}" for name, share in shares.items())
        size = self.environment.bs
        warnings.warn(
            f"the samplers' p_batch ({listed}) add up to {total:g}, not to 1, and there is no buffer: a batch of "
            f"{size} gets about {total * (size or 0):g} samples. MRL's own Environment adds a buffer that fills the "
            "rest: use it (from mrl.train.environment import Environment), or pass buffer=, or let p_batch add up to 1",
            RollbookWarning,
            stacklevel=2,
        )


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


class Environment:
    """Calls every callback for every event, in order, and the log last.

    Args:
      agent, template_cb, samplers, rewards, losses, cbs, buffer: callbacks, registered in this order; classes are
        instantiated, None is left out. `buffer` has a length.
      log: the Log; None makes one over the current run, or over a new one.

    Each callback is also an attribute under its own name.

    Attributes:
      batch_state: shared by the callbacks of the current batch.
      bs, sl: batch size and longest sample, for the callbacks to use.

    Raises:
      BadInput: a callback's name is an attribute or a method of the environment.
    """

    def __init__(
        self,
        agent: object = None,
        template_cb: object = None,
        samplers: Sequence[object] | None = None,
        rewards: Sequence[object] | None = None,
        losses: Sequence[object] | None = None,
        cbs: Sequence[object] | None = None,
        buffer: Any = None,
        log: Any = None,
    ) -> None:
        self.agent, self.template_cb = agent, template_cb
        self.samplers, self.rewards, self.losses = list(samplers or ()), list(rewards or ()), list(losses or ())
        self.cbs: list[Any] = []
        self.verbose = False
        self.bs: int | None = None
        self.sl: int | None = None
        self.report = 1
        self.buffer_frequency: int | None = None
        self.buffer = buffer if buffer is not None else _NoBuffer()
        self.log = log if log is not None else Log()
        self.batch_state = BatchState()
        parts = [agent, template_cb, *self.samplers, *self.rewards, *self.losses, *(cbs or ()), self.buffer, self.log]
        self.register_cbs(parts)
        self("setup")

    def __call__(self, event: str) -> None:
        """Let every callback answer an event.

        Args:
          event: its name.
        """
        if self.verbose:
            import sys

            sys.stdout.write(f"{event}\n")
        for cb in list(self.cbs):
            cb(event)

    # -- callbacks

    def register_cb(self, cb: object) -> Any:
        """Add a callback and return it. Its `setup` is not called.

        Args:
          cb: the callback. A class is instantiated; None is left out.
        Raises:
          BadInput: its name is an attribute or a method of the environment.
        """
        made: Any = cb() if isinstance(cb, type) else cb
        if made is None:
            return None
        self._check_name(made)
        made.environment = self
        setattr(self, made.name, made)
        self.cbs.append(made)
        return made

    def _check_name(self, cb: Any) -> None:
        there: object = getattr(self, cb.name, None)
        if there is None or there is cb or there is type(cb):
            return
        if not any(there is callback for callback in self.cbs):
            raise BadInput(
                f"a callback is called {cb.name!r}, which is the name of something the environment has of its own "
                f"({type(there).__name__}); give the callback another name"
            )
        warnings.warn(
            f"two callbacks are called {cb.name!r}; both answer events, environment.{cb.name} is the later one",
            RollbookWarning,
            stacklevel=3,
        )

    def register_cbs(self, cbs: Sequence[object]) -> list[Any]:
        """Add callbacks and sort all of them; returns the added ones.

        Args:
          cbs: as `register_cb` takes each.
        """
        added = [made for made in map(self.register_cb, cbs) if made is not None]
        self.sort_cbs()
        return added

    def remove_cb(self, cb: Any) -> None:
        """Remove a callback. An earlier one of the same name becomes the attribute again.

        Args:
          cb: the callback; an unknown one is ignored.
        """
        if not any(cb is callback for callback in self.cbs):
            return
        name = cb.name
        self.cbs = [callback for callback in self.cbs if callback is not cb]
        if self.__dict__.get(name) is cb:
            earlier = [callback for callback in self.cbs if callback.name == name]
            if earlier:
                setattr(self, name, earlier[-1])
            else:
                delattr(self, name)
        cb.environment = cb.batch_state = None

    def remove_cbs(self, cbs: Sequence[object]) -> None:
        """Remove callbacks."""
        for cb in cbs:
            self.remove_cb(cb)

    def sort_cbs(self) -> None:
        """Sort the callbacks; equal ones keep their order."""
        self.cbs.sort(key=lambda cb: cb.order)

    # -- one batch

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.log.timelog[stage].append(time.perf_counter() - began)

    def build_buffer(self) -> None:
        """Fill the buffer if it is shorter than a batch, before the first one, or every `buffer_frequency` batches.

        Raises:
          BadInput: there is no batch size yet.
        """
        if self.bs is None:
            raise BadInput("the environment has no batch size: call fit(bs, ...), or set env.bs and step by hand")
        with self._timed("build_buffer"):
            number = self.log.iterations
            often = self.buffer_frequency is not None and number % self.buffer_frequency == 0
            if self.bs == -1 or len(self.buffer) < self.bs or number == 0 or often:
                for event in ("build_buffer", "filter_buffer", "after_build_buffer"):
                    self(event)

    def sample_batch(self) -> None:
        """Make the samples of a new batch."""
        with self._timed("sample_batch"):
            self.batch_state = BatchState()
            for event in ("before_batch", "sample_batch", "before_filter_batch", "filter_batch", "after_sample"):
                self(event)

    def compute_reward(self) -> None:
        """Compute the rewards of the samples."""
        with self._timed("compute_reward"):
            for event in (
                "before_compute_reward",
                "compute_reward",
                "after_compute_reward",
                "reward_modification",
                "after_reward_modification",
            ):
                self(event)

    def get_model_outputs(self) -> None:
        """Run the model."""
        with self._timed("get_model_outputs"):
            self("get_model_outputs")
            self("after_get_model_outputs")

    def compute_loss(self) -> None:
        """Compute the loss, differentiate it and step."""
        with self._timed("compute_loss"):
            self("compute_loss")
            loss = self.batch_state.loss
            self("zero_grad")
            if getattr(loss, "requires_grad", False):
                loss.backward()
            self("before_step")
            self("step")

    def after_batch(self) -> None:
        """End the batch."""
        with self._timed("after_batch"):
            self("after_batch")

    def step(self) -> None:
        """Run one batch."""
        self.build_buffer()
        self.sample_batch()
        self.compute_reward()
        self.get_model_outputs()
        self.compute_loss()
        self.after_batch()

    # -- training

    def fit(
        self,
        bs: int,
        sl: int,
        iters: int,
        report: int,
        cbs: Sequence[object] | None = None,
        verbose: bool = False,
        buffer_frequency: int | None = None,
    ) -> None:
        """Train for `iters` batches.

        Args:
          bs: batch size; -1 takes the whole buffer.
          sl: longest sample.
          iters: number of batches.
          report: show every `report`-th batch.
          cbs: callbacks for this call only. Their `setup` is called first, and they are removed at the end, also after
            an error.
          verbose: show each event.
          buffer_frequency: the largest number of batches between two fillings of the buffer.
        Raises:
          BadInput: `report` is below 1.
        """
        if report < 1:
            raise BadInput(f"fit(report={report!r}): give a number of batches, at least 1")
        added = self.register_cbs(cbs or ())
        try:
            for cb in added:
                cb("setup")
            self.bs, self.sl, self.report = bs, sl, report
            self.verbose, self.buffer_frequency = verbose, buffer_frequency
            self.log.report = report
            self("before_train")
            for _ in range(iters):
                self.step()
            self("after_train")
        finally:
            self.remove_cbs(added)
            self.verbose = False

    def plot_event_times(self, event: str) -> Figure:
        """A stacked matplotlib figure of the seconds of each callback.

        Args:
          event: the event's name.
        """
        return plot_stack({cb.name: list(cb.event_timelog[event]) for cb in self.cbs})
