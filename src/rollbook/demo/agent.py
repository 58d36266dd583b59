"""A small PPO agent in plain numpy: two tanh layers for the policy and two for the value.

    agent = Agent(observation_size=4, n_actions=2, seed=3)
    actions_N, log_probs_N, values_N = agent.act(observations_NO)
    report = agent.update(rollout, learning_rate=2.5e-3)
    state = agent.state_dict()          # plain arrays; load_state_dict(state) resumes exactly

Axes in names: T steps, N environments, B = T * N samples, O observation size, A actions, H hidden units.
A resumed agent gives bitwise identical numbers: its state includes the optimiser and the random state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollbook.demo.net import Adam, Array, Net, rng_from_array, rng_to_array


@dataclass(frozen=True, slots=True)
class Rollout:
    """The result of T steps in N environments.

    Attributes:
      observations_TNO: the observation before each step.
      actions_TN, log_probs_TN, values_TN: the actions, their log-probabilities, and the estimated values.
      rewards_TN: the rewards.
      terminated_TN: the episode terminated in this step: nothing comes after it.
      ended_TN: the episode ended in this step, by termination or by its time limit.
      next_values_TN: the value of the state after each step; of the last observation if an episode was cut.
    """

    observations_TNO: Array
    actions_TN: Array
    log_probs_TN: Array
    values_TN: Array
    rewards_TN: Array
    terminated_TN: Array
    ended_TN: Array
    next_values_TN: Array


class Agent:
    """PPO with clipped ratios and generalised advantages."""

    def __init__(
        self,
        observation_size: int,
        n_actions: int,
        *,
        seed: int,
        hidden: int = 64,
        gamma: float = 0.99,
        trace: float = 0.95,
        clip: float = 0.2,
        entropy_weight: float = 0.0,
        value_weight: float = 0.5,
        max_gradient_norm: float = 0.5,
        passes: int = 10,
        batch_size: int = 256,
    ) -> None:
        """Args:
        seed: decides the initial weights, every action and every shuffle.
        trace: the lambda of generalised advantage estimation.
        passes: how many times each rollout is used, in batches of `batch_size`.
        """
        self.gamma, self.trace, self.clip = gamma, trace, clip
        self.entropy_weight, self.value_weight, self.max_gradient_norm = entropy_weight, value_weight, max_gradient_norm
        self.passes, self.batch_size = passes, batch_size
        self._rng = np.random.default_rng(seed)
        self._policy = Net((observation_size, hidden, hidden, n_actions), self._rng, last_scale=0.01)
        self._value = Net((observation_size, hidden, hidden, 1), self._rng, last_scale=1.0)
        self._adam = Adam(self._policy.arrays + self._value.arrays)
        self.gradient_steps = 0

    def act(self, observations_NO: Array) -> tuple[Array, Array, Array]:
        """Draw an action for each environment: (actions_N, log_probs_N, values_N)."""
        logits_NA = self._policy.forward(observations_NO)
        log_probs_NA = _log_softmax(logits_NA)
        # The index of the largest logit plus Gumbel noise is a draw from their softmax.
        actions_N = np.argmax(logits_NA + self._rng.gumbel(size=logits_NA.shape), axis=1)
        return actions_N, log_probs_NA[np.arange(len(actions_N)), actions_N], self.value(observations_NO)

    def best_action(self, observations_NO: Array) -> Array:
        """The most likely action for each environment; draws nothing."""
        return np.asarray(np.argmax(self._policy.forward(observations_NO), axis=1))

    def value(self, observations_NO: Array) -> Array:
        """The expected discounted return from each observation."""
        return np.asarray(self._value.forward(observations_NO)[:, 0])

    def update(self, rollout: Rollout, *, learning_rate: float) -> dict[str, float]:
        """Learn from a rollout. Returns the means over all its batches, ready to be logged."""
        advantages_TN = generalised_advantages(rollout, self.gamma, self.trace)
        returns_TN = advantages_TN + rollout.values_TN
        observations_BO = rollout.observations_TNO.reshape(-1, rollout.observations_TNO.shape[-1])
        actions_B, log_probs_B = rollout.actions_TN.ravel(), rollout.log_probs_TN.ravel()
        advantages_B, returns_B, values_B = advantages_TN.ravel(), returns_TN.ravel(), rollout.values_TN.ravel()
        reports = []
        for _ in range(self.passes):
            order = self._rng.permutation(len(actions_B))
            for start in range(0, len(order), self.batch_size):
                some = order[start : start + self.batch_size]
                reports.append(
                    self._learn(
                        observations_BO[some],
                        actions_B[some],
                        log_probs_B[some],
                        advantages_B[some],
                        returns_B[some],
                        learning_rate,
                    )
                )
        means = {key: float(np.mean([report[key] for report in reports])) for key in reports[0]}
        spread = float(np.var(returns_B))
        means["explained_variance"] = 1 - float(np.var(returns_B - values_B)) / spread if spread else float("nan")
        return means

    def _learn(
        self,
        observations_BO: Array,
        actions_B: Array,
        old_log_probs_B: Array,
        advantages_B: Array,
        returns_B: Array,
        learning_rate: float,
    ) -> dict[str, float]:
        """One gradient step; the derivatives are written by hand."""
        size, rows = len(actions_B), np.arange(len(actions_B))
        # Scaled to unit variance, but never up: when all goes well only noise is left, and amplified it would undo the
        # learning.
        advantages_B = (advantages_B - advantages_B.mean()) / max(1.0, float(advantages_B.std()))

        log_probs_BA = _log_softmax(self._policy.forward(observations_BO))
        probs_BA = np.exp(log_probs_BA)
        log_ratios_B = log_probs_BA[rows, actions_B] - old_log_probs_B
        ratios_B = np.exp(log_ratios_B)
        clipped_B = np.clip(ratios_B, 1 - self.clip, 1 + self.clip)
        gains_B = np.minimum(ratios_B * advantages_B, clipped_B * advantages_B)
        entropies_B = -(probs_BA * log_probs_BA).sum(axis=1)
        # Where the clipped branch is smaller, the ratio has no gradient.
        pushes_B = np.where(ratios_B * advantages_B <= clipped_B * advantages_B, ratios_B * advantages_B, 0.0)
        chosen_BA = np.zeros_like(probs_BA)
        chosen_BA[rows, actions_B] = 1.0
        d_logits_BA = -pushes_B[:, None] * (chosen_BA - probs_BA)
        d_logits_BA += self.entropy_weight * probs_BA * (log_probs_BA + entropies_B[:, None])
        gradients = self._policy.backward(d_logits_BA / size)

        errors_B = self._value.forward(observations_BO)[:, 0] - returns_B
        gradients += self._value.backward(self.value_weight * errors_B[:, None] / size)

        norm = float(np.sqrt(sum(float(np.sum(g * g)) for g in gradients)))
        scale = min(1.0, self.max_gradient_norm / (norm + 1e-8))
        self._adam.step([g * scale for g in gradients], learning_rate)
        self.gradient_steps += 1
        return {
            "loss/policy": -float(gains_B.mean()),
            "loss/value": 0.5 * float(np.mean(errors_B**2)),
            "entropy": float(entropies_B.mean()),
            "kl": float(np.mean(ratios_B - 1 - log_ratios_B)),
            "clip_fraction": float(np.mean(np.abs(ratios_B - 1) > self.clip)),
            "gradient_norm": norm,
        }

    def state_dict(self) -> dict[str, Array]:
        """Everything that decides what the agent does next, as copies in plain arrays."""
        state = {f"policy/{i}": array.copy() for i, array in enumerate(self._policy.arrays)}
        state |= {f"value/{i}": array.copy() for i, array in enumerate(self._value.arrays)}
        state |= self._adam.state_dict()
        state["gradient_steps"] = np.array(self.gradient_steps)
        state["rng"] = rng_to_array(self._rng)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a `state_dict` of an agent of the same shape."""
        for name, net in (("policy", self._policy), ("value", self._value)):
            for i, array in enumerate(net.arrays):
                array[...] = np.asarray(state[f"{name}/{i}"]).reshape(array.shape)
        self._adam.load_state_dict(state)
        self.gradient_steps = int(state["gradient_steps"])
        rng_from_array(self._rng, np.asarray(state["rng"]))


def generalised_advantages(rollout: Rollout, gamma: float, trace: float) -> Array:
    """How much better each step was than its value estimate, summed over later steps with weights (gamma * trace)^k."""
    surprises_TN = (
        rollout.rewards_TN + gamma * rollout.next_values_TN * (1.0 - rollout.terminated_TN) - rollout.values_TN
    )
    advantages_TN = np.zeros_like(surprises_TN)
    following_N = np.zeros(surprises_TN.shape[1])
    for t in reversed(range(len(surprises_TN))):
        following_N = surprises_TN[t] + gamma * trace * (1.0 - rollout.ended_TN[t]) * following_N
        advantages_TN[t] = following_N
    return advantages_TN


def _log_softmax(logits_BA: Array) -> Array:
    shifted_BA = logits_BA - logits_BA.max(axis=1, keepdims=True)
    return np.asarray(shifted_BA - np.log(np.exp(shifted_BA).sum(axis=1, keepdims=True)))
