"""Callbacks, events, batch state and the small environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollbook.adapters.mrl import BatchState, Callback, Environment, Events, Log, SettrDict, to_device
from rollbook.adapters.mrl.events import EVENTS
from rollbook.errors import BadInput, RollbookWarning


@pytest.fixture
def log(run: Any) -> Log:
    return Log(run)


class Sampler(Callback):
    def __init__(self) -> None:
        super().__init__("sampler")

    def sample_batch(self) -> None:
        state = self.environment.batch_state
        state.samples += ["a", "b"]
        state.sources += ["live", "live"]


class Listener:
    """Notes every event it is called for, in order."""

    def __init__(self, name: str = "listener", order: int = 10) -> None:
        self.name, self.order, self.heard = name, order, []  # type: ignore[var-annotated]
        self.environment: Any = None
        self.event_timelog: dict[str, list[float]] = {}

    def __call__(self, event: str) -> None:
        self.heard.append(event)


def test_all_events_come_in_order(log: Log) -> None:
    listener = Listener()
    Environment(cbs=[Sampler(), listener], log=log).fit(2, 90, 2, 1)
    buffer = ["build_buffer", "filter_buffer", "after_build_buffer"]
    batch = [
        "before_batch", "sample_batch", "before_filter_batch", "filter_batch", "after_sample",
        "before_compute_reward", "compute_reward", "after_compute_reward", "reward_modification",
        "after_reward_modification", "get_model_outputs", "after_get_model_outputs",
        "compute_loss", "zero_grad", "before_step", "step", "after_batch",
    ]  # fmt: skip
    assert listener.heard == ["setup", "before_train", *buffer, *batch, *buffer, *batch, "after_train"]
    assert set(listener.heard) == set(EVENTS)


def test_events_are_named_and_say_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    events = Events()
    assert len(events.event_names) == 23
    assert events.event_names[0] == "setup"
    assert events.after_reward_modification.event_name == "after_reward_modification"  # type: ignore[attr-defined]
    assert "measure" in (events.after_sample.__doc__ or "")  # type: ignore[attr-defined]
    events("compute_reward")
    assert "batch_state.rewards" in capsys.readouterr().out


def test_callbacks_answer_in_their_order_and_equal_ones_as_registered(log: Log) -> None:
    heard: list[str] = []

    class Noting(Callback):
        def before_batch(self) -> None:
            heard.append(self.name)

    cbs = [Noting("late", 50), Noting("first"), Noting("second"), Noting("early", -1), Sampler]
    Environment(cbs=cbs, log=log).fit(1, 1, 1, 1)
    assert heard == ["early", "first", "second", "late"]


def test_callbacks_of_one_fit_get_setup_and_leave_even_after_an_error(log: Log) -> None:
    class Guest(Callback):
        def __init__(self) -> None:
            super().__init__("guest")
            self.ready = False

        def setup(self) -> None:
            self.environment.log.add_metric("guest")
            self.ready = True

        def after_sample(self) -> None:
            self.environment.log.update_metric("guest", 1.0)

        def compute_loss(self) -> None:
            raise RuntimeError("broken loss")

    env = Environment(cbs=[Sampler], log=log)
    guest = Guest()
    with pytest.raises(RuntimeError, match="broken loss"):
        env.fit(2, 90, 1, 1, cbs=[guest])
    assert guest.ready
    assert guest not in env.cbs
    assert not hasattr(env, "guest")
    env.fit(2, 90, 1, 1)
    assert log.iterations == 1


def test_a_name_the_environment_needs_itself_is_refused(log: Log) -> None:
    with pytest.raises(BadInput, match="'step'"):
        Environment(cbs=[Callback("step")], log=log)
    with pytest.raises(BadInput, match="'cbs'"):
        Environment(cbs=[Callback("cbs")], log=log)


def test_two_callbacks_of_one_name_are_reported_and_removing_one_leaves_the_other(log: Log) -> None:
    first, second = Callback("twin"), Callback("twin")
    with pytest.warns(RollbookWarning, match="'twin'"):
        env = Environment(cbs=[first, second], log=log)
    assert env.twin is second  # type: ignore[attr-defined]
    env.remove_cb(second)
    assert env.twin is first  # type: ignore[attr-defined]
    assert second.environment is None


def test_the_buffer_is_filled_when_it_is_short_or_when_it_is_time(log: Log) -> None:
    class Buffer(Callback):
        def __init__(self) -> None:
            super().__init__("buffer", order=0)
            self.items = list(range(5))
            self.filled_at: list[int] = []

        def __len__(self) -> int:
            return len(self.items)

        def build_buffer(self) -> None:
            self.filled_at.append(self.environment.log.iterations)

    buffer = Buffer()
    env = Environment(cbs=[Sampler], buffer=buffer, log=log)
    env.fit(2, 90, 4, 1)
    assert buffer.filled_at == [0]
    env.fit(2, 90, 4, 1, buffer_frequency=2)
    assert buffer.filled_at == [0, 4, 6]
    env.fit(99, 90, 1, 1)
    assert buffer.filled_at == [0, 4, 6, 8]


def test_stepping_by_hand_needs_a_batch_size_and_says_so(log: Log) -> None:
    env = Environment(cbs=[Sampler], log=log)
    with pytest.raises(BadInput, match=r"env\.bs"):
        env.step()
    env.bs = env.sl = 2
    env.step()
    assert log.iterations == 1


def test_the_loss_is_differentiated_and_the_optimizer_steps(log: Log) -> None:
    torch = pytest.importorskip("torch")

    class Learner(Callback):
        def __init__(self) -> None:
            super().__init__("learner")
            self.weight = torch.nn.Parameter(torch.tensor(1.0))
            self.optimizer = torch.optim.SGD([self.weight], lr=0.1)

        def compute_loss(self) -> None:
            self.environment.batch_state.loss = self.environment.batch_state.loss + self.weight**2

        def zero_grad(self) -> None:
            self.optimizer.zero_grad()

        def step(self) -> None:
            self.optimizer.step()

    learner = Learner()
    Environment(cbs=[Sampler, learner], log=log).fit(2, 90, 1, 1)
    assert float(learner.weight) == pytest.approx(0.8)


def test_items_and_attributes_are_one_and_the_same() -> None:
    state = SettrDict()
    state.a = 1
    state["b"] = 2
    state.update_from_dict({"c": 3})
    state.update(d=4)
    assert (state["a"], state.b, state.c, state.d) == (1, 2, 3, 4)
    del state["a"]
    assert not hasattr(state, "a")
    del state.b
    assert "b" not in state
    assert state.pop("c") == 3
    assert not hasattr(state, "c")
    state["items"] = 5
    assert callable(state.items)
    assert state["items"] == 5
    with pytest.raises(KeyError):
        state["missing"]
    with pytest.raises(AttributeError, match="'missing'"):
        _ = state.missing


def test_a_new_batch_is_empty_and_its_rewards_can_be_added_to() -> None:
    state = BatchState()
    assert (state.samples, state.sources, state.latent_data) == ([], [], {})
    state.rewards += 1.0
    assert float(state["rewards"]) == 1.0


def test_how_long_callbacks_took_is_kept_in_bounded_memory(log: Log) -> None:
    callback = Sampler()
    env = Environment(cbs=[callback], log=log)
    env.fit(2, 90, 3, 1)
    assert len(callback.event_timelog["sample_batch"]) == 3
    for _ in range(10_050):
        callback("nothing_to_answer")
    assert len(callback.event_timelog["nothing_to_answer"]) == 10_000


def test_times_can_be_drawn_although_callbacks_came_and_went(log: Log) -> None:
    pytest.importorskip("matplotlib")
    env = Environment(cbs=[Sampler], log=log)
    env.fit(2, 90, 2, 1)
    env.fit(2, 90, 2, 1, cbs=[Callback("guest")])
    env.register_cb(Callback("late"))
    env("before_batch")
    figure = env.plot_event_times("before_batch")
    assert len(figure.axes) == 1
    assert env.sampler.plot_time() is not None  # type: ignore[attr-defined]


def test_filtering_keeps_samples_sources_and_latents_together(log: Log) -> None:
    class Filter(Callback):
        def filter_batch(self) -> None:
            self.environment.batch_state.latent_data = {"live": np.arange(2)}
            self._filter_batch([False, True])

    env = Environment(cbs=[Sampler, Filter("filter")], log=log)
    env.fit(2, 90, 1, 1)
    assert log.batch_log["samples"][0] == ["b"]
    assert env.batch_state.latent_data["live"].tolist() == [1]


def test_to_device_moves_tensors_and_leaves_the_rest() -> None:
    array = np.ones(2)
    assert to_device(array) is array
    torch = pytest.importorskip("torch")
    moved = to_device([torch.ones(1), (torch.zeros(1),)])
    assert moved[0].device.type in ("cpu", "cuda")
    assert to_device(torch.ones(1), "cpu").device.type == "cpu"
