"""The events of a training run in their order, each with its purpose."""

from __future__ import annotations

import sys

EVENTS = {
    "setup": "An environment was made, or a callback was handed to `fit`: set attributes, add terms to the log.",
    "before_train": "`fit` begins; the first batch is not sampled yet.",
    "build_buffer": "Add samples to the buffer.",
    "filter_buffer": "Take samples out of the buffer that do not belong there.",
    "after_build_buffer": "The buffer stands; measure it.",
    "before_batch": "A new, empty batch state is in place.",
    "sample_batch": "Add samples and their sources to the batch.",
    "before_filter_batch": "The batch is about to be filtered.",
    "filter_batch": "Take samples out of the batch that do not belong there.",
    "after_sample": "The samples of the batch are final; measure them.",
    "before_compute_reward": "Make what the rewards need.",
    "compute_reward": "Add rewards to `batch_state.rewards`.",
    "after_compute_reward": "All rewards are there; measure them.",
    "reward_modification": "Change `batch_state.rewards_final`, which the loss sees; the logged rewards stay.",
    "after_reward_modification": "The final rewards are there; measure them.",
    "get_model_outputs": "Compute what the losses need from the model.",
    "after_get_model_outputs": "The model's outputs are there.",
    "compute_loss": "Add losses to `batch_state.loss`.",
    "zero_grad": "Set gradients to zero; the backward pass follows.",
    "before_step": "Gradients are there and the optimizers have not stepped; clip, say.",
    "step": "Step the optimizers.",
    "after_batch": "The batch is over; the log writes it.",
    "after_train": "`fit` is over.",
}
"""Event name -> its purpose, in order."""

BUFFER_EVENTS = ("build_buffer", "filter_buffer", "after_build_buffer")


class Event:
    """One event: its name, with its purpose as the docstring.

    Args:
      event_name: one of `EVENTS`.
    """

    def __init__(self, event_name: str) -> None:
        self.event_name = event_name
        self.__doc__ = EVENTS[event_name]

    def __repr__(self) -> str:
        return f"Event({self.event_name!r})"


class Events:
    """All events as attributes, and their names in order.

    Events()("after_sample") prints the purpose of an event.
    """

    def __init__(self) -> None:
        self.event_names = list(EVENTS)
        for name in EVENTS:
            setattr(self, name, Event(name))

    def __call__(self, event_name: str) -> None:
        """Print the purpose of an event to standard output; nothing for an unknown name.

        Args:
          event_name: its name.
        """
        if event_name in EVENTS:
            sys.stdout.write(f"{EVENTS[event_name]}\n")
