"""The demo's agent does what PPO says, and goes on exactly from its state."""

from __future__ import annotations

import numpy as np
import pytest

from rollbook.demo.agent import Agent, Rollout, generalised_advantages
from rollbook.demo.net import Net, rng_from_array, rng_to_array


def rollout_of(agent: Agent, rng: np.random.Generator, steps: int = 16, n: int = 4) -> Rollout:
    """A rollout of made-up observations, with ends here and there."""
    observations = rng.normal(size=(steps, n, 4))
    drawn = [agent.act(o) for o in observations]
    actions, log_probs, values = (np.array([d[i] for d in drawn]) for i in range(3))
    terminated = (rng.random((steps, n)) < 0.1).astype(float)
    ended = np.maximum(terminated, rng.random((steps, n)) < 0.05)
    rewards = 1.0 - np.abs(observations[..., 0])
    return Rollout(observations, actions, log_probs, values, rewards, terminated, ended, rng.normal(size=(steps, n)))


def test_gradients_written_by_hand_agree_with_finite_differences() -> None:
    rng = np.random.default_rng(0)
    net = Net((3, 5, 2), rng, last_scale=1.0)
    inputs, weights = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))

    def loss() -> float:
        return float((net.forward(inputs) * weights).sum())

    loss()
    for array, gradient in zip(net.arrays, net.backward(weights), strict=True):
        for index in np.ndindex(array.shape):
            before = array[index]
            array[index] = before + 1e-6
            up = loss()
            array[index] = before - 1e-6
            down = loss()
            array[index] = before
            assert gradient[index] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


def test_advantages_stop_at_the_end_of_an_episode() -> None:
    """Three steps by hand: the second one ends the episode by itself, so its next value does not count."""
    column = lambda *numbers: np.array(numbers, dtype=float)[:, None]  # noqa: E731
    rollout = Rollout(
        observations_TNO=np.zeros((3, 1, 4)),
        actions_TN=column(0, 0, 0),
        log_probs_TN=column(0, 0, 0),
        values_TN=column(1, 2, 3),
        rewards_TN=column(1, 1, 1),
        terminated_TN=column(0, 1, 0),
        ended_TN=column(0, 1, 0),
        next_values_TN=column(2, 100, 4),
    )
    # Surprises: 1 + 0.5*2 - 1 = 1; 1 - 2 = -1; 1 + 0.5*4 - 3 = 0. Then 1 + 0.5*0.5*(-1) = 0.75.
    assert generalised_advantages(rollout, gamma=0.5, trace=0.5)[:, 0].tolist() == [0.75, -1.0, 0.0]


def test_an_episode_cut_by_its_time_limit_still_hopes_for_what_would_have_come() -> None:
    ones = np.ones((1, 1))
    rollout = Rollout(np.zeros((1, 1, 4)), ones, ones, ones, ones, 0 * ones, ones, 10 * ones)
    assert generalised_advantages(rollout, gamma=0.9, trace=0.95)[0, 0] == pytest.approx(1 + 0.9 * 10 - 1)


def test_an_agent_goes_on_from_its_state_to_the_last_bit() -> None:
    agent, copy = Agent(4, 2, seed=1), Agent(4, 2, seed=99)
    for _ in range(2):
        agent.update(rollout_of(agent, np.random.default_rng(5)), learning_rate=1e-3)
    copy.load_state_dict(agent.state_dict())
    reports = [a.update(rollout_of(a, np.random.default_rng(6)), learning_rate=1e-3) for a in (agent, copy)]
    assert reports[0] == reports[1]
    first, second = agent.state_dict(), copy.state_dict()
    assert all(np.array_equal(first[key], second[key]) for key in first)


def test_a_state_is_not_changed_by_further_learning() -> None:
    agent = Agent(4, 2, seed=1)
    state = agent.state_dict()
    before = {key: array.copy() for key, array in state.items()}
    agent.update(rollout_of(agent, np.random.default_rng(5)), learning_rate=1e-2)
    assert all(np.array_equal(state[key], before[key]) for key in state)


def test_a_random_state_fits_into_an_array() -> None:
    rng, other = np.random.default_rng(3), np.random.default_rng(4)
    rng.integers(10, dtype=np.int32)  # leaves half a word buffered
    rng_from_array(other, rng_to_array(rng))
    assert rng.integers(1000, size=9, dtype=np.int32).tolist() == other.integers(1000, size=9, dtype=np.int32).tolist()


def test_learning_makes_rewarded_actions_likelier() -> None:
    """A bandit: action 1 pays, action 0 does not."""
    agent, observations = Agent(4, 2, seed=0), np.zeros((8, 4))
    for _ in range(8):
        actions, log_probs, values = zip(*(agent.act(observations) for _ in range(32)), strict=True)
        ones = np.ones((32, 8))
        agent.update(
            Rollout(
                np.zeros((32, 8, 4)),
                np.array(actions),
                np.array(log_probs),
                np.array(values),
                np.array(actions, dtype=float),
                ones,
                ones,
                0 * ones,
            ),
            learning_rate=1e-2,
        )
    assert agent.best_action(observations).tolist() == [1] * 8
