"""The faults that are put into trainings, each a change of the environment, of the settings or of the model.

An entry says to which algorithms it applies. What is healthy is an entry, too. A reader of another tool needs this file
alone to repeat the set: it knows nothing of rollbook.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ALGORITHMS", "FAULTS", "Algorithm", "Fault", "environment", "model_of"]


@dataclass(frozen=True)
class Algorithm:
    """A healthy training: algorithm, environment, its length in environment steps (whole and cut), its settings."""

    name: str
    env: str
    steps: int
    cut_steps: int
    learning_rate: float
    settings: dict[str, Any] = field(default_factory=dict)


ALGORITHMS = {
    one.name: one
    for one in (
        Algorithm("ppo", "CartPole-v1", 30_000, 8_000, 3e-4, {"n_steps": 256, "batch_size": 64, "n_epochs": 4}),
        Algorithm("ppo_pendulum", "Pendulum-v1", 60_000, 10_000, 1e-3, {"n_steps": 512, "n_epochs": 5, "gamma": 0.9}),
        Algorithm("a2c", "CartPole-v1", 30_000, 5_000, 7e-4),
        Algorithm(
            "dqn",
            "CartPole-v1",
            40_000,
            6_000,
            1e-3,
            {"learning_starts": 500, "train_freq": 4, "target_update_interval": 500, "exploration_fraction": 0.2},
        ),
        Algorithm(
            "sac", "Pendulum-v1", 8_000, 1_000, 1e-3, {"learning_starts": 200, "policy_kwargs": {"net_arch": [32]}}
        ),
    )
}
ON_POLICY = frozenset({"ppo", "ppo_pendulum", "a2c"})
EVERY = frozenset(ALGORITHMS)


@dataclass(frozen=True)
class Fault:
    """One way in which a training goes wrong.

    Attributes:
      words: what is wrong, for people.
      algorithms: where it is put in.
      settings: the algorithm's settings -> those of the faulty training.
      wrap: the environment -> the faulty one.
      spoil: changes the model before it learns.
    """

    words: str
    algorithms: frozenset[str] = EVERY
    settings: Callable[[dict[str, Any]], dict[str, Any]] = dict
    wrap: Callable[[Any], Any] = lambda env: env
    spoil: Callable[[Any], None] = lambda model: None


def _rate(times: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda settings: {**settings, "learning_rate": settings["learning_rate"] * times}


def _with(**changed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda settings: {**settings, **changed}


def _changed(step: Callable[[int, tuple[Any, ...]], tuple[Any, ...]], observe: bool = False) -> Callable[[Any], Any]:
    """An environment whose steps pass through `step(number of the step, what a step gave)`."""

    def wrap(env: Any) -> Any:
        import gymnasium

        class Changed(gymnasium.Wrapper):
            steps = 0

            def step(self, action: Any) -> Any:
                self.steps += 1
                return step(self.steps, self.env.step(action))

            def reset(self, **given: Any) -> Any:
                first, info = self.env.reset(**given)
                return (first * 0 if observe else first), info

        return Changed(env)

    return wrap


def _endless(env: Any) -> Any:
    return _changed(lambda n, it: (it[0].clip(-1e3, 1e3), it[1], False, False, it[4]))(env.unwrapped)


def _untrained(model: Any) -> None:
    model.train = lambda *args, **given: model._n_updates  # it may be asked, and does nothing


def _nan_weights(model: Any) -> None:
    """From the tenth update on one weight of the policy's last layer is NaN, as a division by zero leaves it."""
    train, calls = model.train, [0]
    quantity = "q_net" if hasattr(model, "q_net") else "critic" if hasattr(model, "critic") else "policy"

    def spoiled(*args: Any, **given: Any) -> Any:
        calls[0] += 1
        if calls[0] == 10:
            import torch

            with torch.no_grad():
                net = getattr(model, quantity)
                last = [p for name, p in net.named_parameters() if "log_std" not in name][-1]
                last.fill_(float("nan"))
        return train(*args, **given)

    model.train = spoiled


FAULTS = {
    "healthy": Fault("nothing"),
    "lr_0": Fault("the learning rate is 0", settings=_rate(0.0)),
    "lr_x33": Fault("the learning rate is 33 times too high", settings=_rate(33)),
    "lr_x300": Fault("the learning rate is 300 times too high", settings=_rate(300)),
    "nan_reward": Fault(
        "rewards are NaN from step 1,000 on",
        wrap=_changed(lambda n, it: (it[0], float("nan") if n > 1000 else it[1], *it[2:])),
    ),
    "nan_weight": Fault(
        "a weight of the value function becomes NaN at the tenth update", frozenset({"dqn", "sac"}), spoil=_nan_weights
    ),
    "reward_0": Fault("every reward is 0", wrap=_changed(lambda n, it: (it[0], 0.0, *it[2:]))),
    "observation_0": Fault("every observation is 0", wrap=_changed(lambda n, it: (it[0] * 0, *it[1:]), observe=True)),
    "reward_x1e4": Fault(
        "rewards are 10,000 times as large", wrap=_changed(lambda n, it: (it[0], 1e4 * it[1], *it[2:]))
    ),
    "gamma_0": Fault("gamma is 0", settings=_with(gamma=0.0)),
    "gamma_1.05": Fault("gamma is 1.05", settings=_with(gamma=1.05)),
    "never_trained": Fault("the model's train() does nothing", spoil=_untrained),
    "never_ends": Fault("no episode ends", wrap=_endless),
    "target_frozen": Fault(
        "the target network is never updated",
        frozenset({"dqn", "sac"}),
        settings=lambda it: {**it, "target_update_interval": 10**9},
    ),
    "entropy_wrong_sign": Fault(
        "ent_coef has the wrong sign and is 0.1: the entropy is driven to 0", ON_POLICY, settings=_with(ent_coef=-0.1)
    ),
}


def environment(algorithm: str, fault: str) -> Any:
    """The environment of a training, monitored as Stable-Baselines3 does."""
    import gymnasium
    from stable_baselines3.common.monitor import Monitor

    return Monitor(FAULTS[fault].wrap(gymnasium.make(ALGORITHMS[algorithm].env)))


def model_of(algorithm: str, fault: str, seed: int) -> Any:
    """A model that has not learned yet."""
    import stable_baselines3

    healthy = ALGORITHMS[algorithm]
    settings = FAULTS[fault].settings({"learning_rate": healthy.learning_rate, **healthy.settings})
    make = getattr(stable_baselines3, algorithm.split("_")[0].upper())
    model = make("MlpPolicy", environment(algorithm, fault), seed=seed, device="cpu", **settings)
    FAULTS[fault].spoil(model)
    return model
