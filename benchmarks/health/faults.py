"""The trainings of the set: what is trained, the faults that are put in, and which rules name each of them.

A fault is a few words that the training loops look up at each step (`collecting.Broken`); an entry says from which
share of the training on, in a weak and a strong version. Nothing here knows of rollbook, so the set can be repeated
with another tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FAULTS", "HELD_OUT", "TRAININGS", "Fault", "Training", "Version"]


@dataclass(frozen=True)
class Training:
    """A healthy training.

    Attributes:
      algorithm: ppo, a2c, dqn, sac or grpo.
      task: of `environments.TASKS`, or "Tokens".
      steps: environment steps; updates of the language model.
      healthy: how many seeds are trained without a fault.
      settings: of the loop.
      good, random: the mean return of the last fifth of the episodes that has to be reached; that of a random policy.
    """

    algorithm: str
    task: str
    steps: int
    healthy: int
    settings: dict[str, Any]
    good: float
    random: float


_PPO = {
    "learning_rate": 2.5e-3, "gamma": 0.99, "ent_coef": 0.01, "hidden": 32, "clip_coef": 0.2, "update_epochs": 4,
    "num_minibatches": 4, "num_envs": 8, "num_steps": 32, "evaluate": 4,
}  # fmt: skip
_A2C = {
    **_PPO,
    "learning_rate": 3e-3,
    "clip_coef": 0.0,
    "update_epochs": 1,
    "num_minibatches": 1,
    "num_steps": 8,
    "evaluate": 16,
}
_DQN = {"learning_rate": 1e-3, "gamma": 0.99, "hidden": 32, "num_envs": 4, "learning_starts": 1_000}
_SAC = {"learning_rate": 2e-3, "gamma": 0.97, "hidden": 32, "num_envs": 4, "learning_starts": 1_000}

TRAININGS = (
    Training("ppo", "CartPole", 16_000, 12, _PPO, 90.0, 22.0),
    Training("ppo", "Catch", 16_000, 12, _PPO, 0.4, -0.6),
    Training("ppo", "Reach", 16_000, 12, _PPO, -8.0, -23.0),
    Training("a2c", "CartPole", 16_000, 12, _A2C, 60.0, 22.0),
    Training("a2c", "Catch", 16_000, 12, _A2C, 0.2, -0.6),
    Training("a2c", "Reach", 16_000, 12, _A2C, -9.0, -23.0),
    Training("dqn", "CartPole", 16_000, 16, _DQN, 80.0, 22.0),
    Training("dqn", "Catch", 12_000, 16, _DQN, 0.4, -0.6),
    Training("sac", "Reach", 6_000, 16, _SAC, -7.0, -23.0),
    Training("sac", "Pendulum", 10_000, 16, _SAC, -420.0, -600.0),
    Training("grpo", "Tokens", 200, 16, {"learning_rate": 0.2, "gamma": 1.0}, 0.6, 0.13),
)
"""The part on which rules are made."""

HELD_OUT = (
    Training("ppo", "Catch", 16_000, 12, _PPO, 0.4, -0.6),
    Training(
        "ppo",
        "Track",
        24_000,
        12,
        {**_PPO, "learning_rate": 1.5e-3, "gamma": 0.95, "ent_coef": 0.005, "num_envs": 12, "num_minibatches": 6},
        14.0,
        -13.0,
    ),
    Training("ppo", "Cruise", 20_000, 12, {**_PPO, "learning_rate": 2e-3, "gamma": 0.95, "num_envs": 12}, 38.0, 13.0),
    Training("a2c", "CartPole", 16_000, 12, _A2C, 60.0, 22.0),
    Training(
        "a2c",
        "Track",
        24_000,
        12,
        {**_A2C, "gamma": 0.95, "ent_coef": 0.005, "num_envs": 12, "num_steps": 10, "evaluate": 12},
        14.0,
        -13.0,
    ),
    Training(
        "a2c",
        "Cruise",
        24_000,
        12,
        {**_A2C, "gamma": 0.95, "num_envs": 12, "num_steps": 10, "evaluate": 12},
        38.0,
        13.0,
    ),
    Training("dqn", "Catch", 12_000, 12, _DQN, 0.4, -0.6),
    Training(
        "dqn",
        "Track",
        16_000,
        12,
        {**_DQN, "learning_rate": 2e-3, "gamma": 0.9, "num_envs": 8, "learning_starts": 800},
        14.0,
        -13.0,
    ),
    Training("sac", "Pendulum", 10_000, 12, _SAC, -420.0, -600.0),
    Training(
        "sac",
        "Cruise",
        8_000,
        12,
        {**_SAC, "learning_rate": 1.5e-3, "gamma": 0.95, "num_envs": 8, "learning_starts": 600},
        40.0,
        13.0,
    ),
    Training("grpo", "Tokens", 250, 12, {"learning_rate": 0.15, "gamma": 1.0}, 0.6, 0.13),
)
"""The part for the end: half of it tasks and settings of which the other part has none."""

ON_POLICY, OFF_POLICY = ("ppo", "a2c"), ("dqn", "sac")
ALL = (*ON_POLICY, *OFF_POLICY)


@dataclass(frozen=True)
class Version:
    """How strong, and from when on.

    Attributes:
      words: what is said of it in the table.
      broken: what the loops look up.
      at: from this share of the training on.
      config: what the recorded configuration says beside the healthy one.
    """

    words: str
    broken: Mapping[str, Any]
    at: float = 0.4
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """One way in which a training goes wrong.

    Attributes:
      words: what is wrong.
      algorithms: where it is put in.
      named_by: the rules that name this cause.
      shows_in: where it can be seen: "update" (the first one with it), "number" (a value that is none), "updates" or
        "episodes" (that stay away), "returns", or keys whose values leave what healthy trainings had.
      weak, strong: its two versions.
      tasks: where it can be put in, if not in all.
    """

    words: str
    algorithms: tuple[str, ...]
    named_by: frozenset[str]
    shows_in: tuple[str, ...]
    weak: Version
    strong: Version
    tasks: tuple[str, ...] = ()


def _fault(
    words: str,
    algorithms: tuple[str, ...],
    named_by: str,
    shows_in: str,
    weak: Version,
    strong: Version,
    tasks: tuple[str, ...] = (),
) -> Fault:
    unlike = {f"unlike_earlier/{_UNLIKE[key]}" for key in shows_in.split() if key in _UNLIKE}
    return Fault(
        words, algorithms, frozenset(unlike | {*named_by.split()}), tuple(shows_in.split()), weak, strong, tasks
    )


_UNLIKE = {
    "losses/entropy": "entropy",
    "losses/alpha": "entropy_coefficient",
    "losses/q_values": "q_value",
    "losses/qf1_values": "q_value",
    "losses/explained_variance": "explained_variance",
    "losses/clipfrac": "clip_fraction",
}
"""The rule `unlike_earlier` names a cause where the key that it reports is one in which the fault shows."""

_VALUES = "losses/value_loss losses/td_loss losses/qf1_loss losses/q_values losses/qf1_values"


FAULTS: dict[str, Fault] = {
    "nan_reward": _fault(
        "rewards are NaN",
        ALL,
        "non_finite",
        "number",
        Version("one in a thousand", {"reward_nan": 1e-3}),
        Version("all", {"reward_nan": 1.0}),
    ),
    "nan_loss": _fault(
        "a weight of the value function becomes NaN",
        ALL,
        "non_finite",
        "number",
        Version("half-way", {"nan_weight": 1}, 0.5),
        Version("at the start", {"nan_weight": 1}, 0.1),
    ),
    "rate_0": _fault(
        "the learning rate is 0",
        ALL,
        "learning_rate settings",
        "update",
        Version("later on", {"rate_times": 0.0}),
        Version("always", {"rate_times": 0.0}, 0.0, {"learning_rate": 0.0}),
    ),
    "rate_high": _fault(
        "the learning rate is too high",
        ALL,
        "kl clip_fraction jump value_scale",
        "update",
        Version("33 times", {"rate_times": 33.0}),
        Version("300 times", {"rate_times": 300.0}),
    ),
    "frozen": _fault(
        "the optimizer's steps do not reach the network",
        ALL,
        "frozen",
        "update",
        Version("of the policy", {"frozen": "policy"}),
        Version("of all networks", {"frozen": "all"}, 0.0),
    ),
    "never_trained": _fault(
        "no update is ever made",
        ALL,
        "never_updated",
        "updates",
        Version("later on", {"never_trained": 1}),
        Version("from the start", {"never_trained": 1}, 0.0),
    ),
    "policy_sign": _fault(
        "the policy's loss has the wrong sign",
        ("ppo", "a2c", "sac", "grpo"),
        "return_fall learns_nothing below_earlier",
        "returns",
        Version("later on", {"policy_sign": -1.0}),
        Version("from the start", {"policy_sign": -1.0}, 0.0),
    ),
    "old_policy": _fault(
        "the ratio is not 1 at the first minibatch",
        ("ppo",),
        "first_ratio",
        "update",
        Version("off by 0.02", {"old_policy_noise": 0.02}),
        Version("off by half", {"old_policy_noise": 0.5}),
    ),
    "entropy_sign": _fault(
        "the entropy is driven to 0",
        ON_POLICY,
        "entropy settings",
        "losses/entropy",
        Version("ent_coef -0.1, not in the configuration", {"ent_coef": -0.1}, 0.0),
        Version("ent_coef -0.5", {"ent_coef": -0.5}, 0.0, {"ent_coef": -0.5}),
    ),
    "alpha_sign": _fault(
        "the entropy coefficient is driven away from its target",
        ("sac",),
        "alpha",
        "losses/alpha",
        Version("later on", {"alpha_sign": -1.0}),
        Version("from the start", {"alpha_sign": -1.0}, 0.0),
    ),
    "gamma_high": _fault(
        "gamma is 1.05",
        ALL,
        "settings value_scale q_bound",
        _VALUES,
        Version("not in the configuration", {"gamma": 1.05}, 0.0),
        Version("as configured", {"gamma": 1.05}, 0.0, {"gamma": 1.05}),
    ),
    "gamma_0": _fault(
        "gamma is 0",
        ALL,
        "settings short_sighted",
        _VALUES,
        Version("not in the configuration", {"gamma": 0.0}, 0.0),
        Version("as configured", {"gamma": 0.0}, 0.0, {"gamma": 0.0}),
    ),
    "reward_constant": _fault(
        "every reward is 0",
        (*ALL, "grpo"),
        "no_signal",
        "returns",
        Version("later on", {"reward_is": 0.0}),
        Version("from the start", {"reward_is": 0.0}, 0.0),
    ),
    "reward_large": _fault(
        "rewards are too large",
        ALL,
        "value_scale jump",
        "update",
        Version("100 times", {"reward_times": 100.0}),
        Version("10,000 times", {"reward_times": 1e4}),
    ),
    "observation_constant": _fault(
        "every observation is 0",
        ALL,
        "learns_nothing return_fall explained_variance below_earlier",
        "returns losses/explained_variance",
        Version("later on", {"observation_times": 0.0}),
        Version("from the start", {"observation_times": 0.0}, 0.0),
    ),
    "observation_large": _fault(
        "observations are too large",
        ALL,
        "jump kl return_fall below_earlier",
        "returns",
        Version("100 times", {"observation_times": 100.0}),
        Version("10,000 times", {"observation_times": 1e4}),
    ),
    "value_sign": _fault(
        "the value function learns the wrong sign",
        ALL,
        "explained_variance q_bound",
        "losses/explained_variance losses/q_values losses/qf1_values",
        Version("later on", {"value_sign": -1.0}),
        Version("from the start", {"value_sign": -1.0}, 0.0),
    ),
    "endless": _fault(
        "no episode ends",
        ALL,
        "no_episode",
        "episodes",
        Version("later on", {"endless": 1}),
        Version("from the start", {"endless": 1}, 0.0),
    ),
    "target_frozen": _fault(
        "the target network is not updated",
        OFF_POLICY,
        "learns_nothing return_fall short_sighted below_earlier",
        "returns",
        Version("later on", {"target_every": 1e9, "target_share": 0.0}),
        Version("never", {"target_every": 1e9, "target_share": 0.0}, 0.0),
    ),
    "replay_stale": _fault(
        "the replay gets nothing new",
        OFF_POLICY,
        "return_fall learns_nothing below_earlier",
        "returns",
        Version("half-way", {"replay_stale": 1}, 0.5),
        Version("from a tenth on", {"replay_stale": 1}, 0.1),
    ),
    "replay_tiny": _fault(
        "the replay holds next to nothing",
        OFF_POLICY,
        "return_fall learns_nothing value_scale below_earlier",
        "returns",
        Version("256 transitions", {"replay_newest": 256}, 0.0),
        Version("16 transitions", {"replay_newest": 16}, 0.0),
    ),
    "evaluation_unnormalised": _fault(
        "evaluation without the training's normaliser",
        ON_POLICY,
        "evaluation_gap",
        "eval/episodic_return",
        Version("later on", {"evaluation_unnormalised": 1}),
        Version("from the start", {"evaluation_unnormalised": 1}, 0.0),
        ("Reach", "Cruise"),  # the others have no normaliser that could be missing
    ),
    "sampler_mismatch": _fault(
        "sampler and trainer are not the same model",
        ("grpo",),
        "sampler_mismatch",
        "update",
        Version("noise in the logits", {"sampler_noise": 0.3}, 0.2),
        Version("another temperature", {"temperature": 3.0}, 0.2),
    ),
    "no_spread": _fault(
        "nearly all groups of answers have one reward",
        ("grpo",),
        "zero_variance_groups",
        "frac_reward_zero_std",
        Version("all tokens have to be right", {"all_right": 0.99}, 0.0),
        Version("no answer can be right", {"all_right": 1.01}, 0.0),
    ),
    "entropy_lost": _fault(
        "the entropy is driven to 0, and no setting tells",
        ON_POLICY,
        "entropy",
        "losses/entropy",
        Version("ent_coef -0.5", {"ent_coef": -0.5}, 0.0),
        Version("ent_coef -2", {"ent_coef": -2.0}, 0.0),
        ("CartPole", "Catch", "Track"),
    ),
    "clip_tiny": _fault(
        "the clipping range is too small, and no setting tells",
        ("ppo",),
        "clip_fraction",
        "losses/clipfrac",
        Version("0.02", {"clip_coef": 0.02}, 0.0),
        Version("0.001", {"clip_coef": 0.001}, 0.0),
    ),
    "kl_formula": _fault(
        "the divergence is computed by a wrong formula",
        ("ppo",),
        "kl_below_zero",
        "losses/approx_kl",
        Version("a mean of logarithms", {"kl_is": "k1"}, 0.0),
        Version("a sign in it", {"kl_is": "-k3"}, 0.0),
    ),
    "log_stale": _fault(
        "what is logged is that of an older update",
        (*ALL, "grpo"),
        "constant",
        "update",
        Version("the loss of values", {"log_stale": "value td qf1 loss"}),
        Version("all losses", {"log_stale": "loss"}),
    ),
}
