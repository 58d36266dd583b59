"""Small tasks in numpy, many copies at once: rows are seeds, columns are copies of one training.

`step` resets a copy whose episode ended; it gives the observation after that, the one before it (for values), the
reward, and whether the episode terminated or was truncated. Nothing here knows of rollbook.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["TASKS", "CartPole", "Catch", "Cruise", "Grid", "Hover", "Pendulum", "Reach", "Task", "Track"]

Array = np.ndarray[Any, np.dtype[Any]]


class Task:
    """Copies of one task.

    Args:
      shape: (seeds, copies).
      rng: where chance comes from.
    """

    observations, actions, continuous, horizon, endless = 0, 0, False, 0, False
    random, good = 0.0, 0.0
    """Mean returns of a policy that chooses at random, and of one that has learned the task."""

    def __init__(self, shape: tuple[int, int], rng: np.random.Generator) -> None:
        self.shape, self.rng = shape, rng
        self.state = self.fresh()
        self.ages = np.zeros(shape, int)

    def fresh(self) -> Array:
        """States in which episodes begin, (seeds, copies, …)."""
        raise NotImplementedError

    def observe(self) -> Array:
        """What is seen of the states."""
        return self.state

    def move(self, actions: Array) -> tuple[Array, Array]:
        """Change the states; reward and whether the episode has terminated."""
        raise NotImplementedError

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, Array]:
        """(observation, the one before a reset, reward, terminated, truncated)."""
        reward, terminated = self.move(actions)
        self.ages += 1
        if self.endless:
            self.state = np.clip(self.state, -1e3, 1e3)
            terminated = np.zeros_like(terminated)
        truncated = (self.ages >= self.horizon) & ~terminated & (not self.endless)
        last, ended = self.observe(), terminated | truncated
        if ended.any():
            self.state = np.where(ended[..., None], self.fresh(), self.state)
            self.ages[ended] = 0
        return self.observe(), last, reward, terminated, truncated


class CartPole(Task):
    """The pole on a cart of Barto, Sutton and Anderson (1983), with the constants of Gymnasium; 200 steps at most."""

    observations, actions, horizon = 4, 2, 200
    random, good = 22.0, 120.0

    def fresh(self) -> Array:
        """See `Task`."""
        return self.rng.uniform(-0.05, 0.05, (*self.shape, 4))

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        x, v, angle, turn = np.moveaxis(self.state, -1, 0)
        force, cos, sin = 20.0 * actions - 10.0, np.cos(angle), np.sin(angle)
        pull = (force + 0.05 * turn**2 * sin) / 1.1
        spin = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        push = pull - 0.05 * spin * cos / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * spin], -1)
        fallen = (abs(self.state[..., 0]) > 2.4) | (abs(self.state[..., 2]) > 0.2095)
        return np.ones(self.shape), fallen


class Catch(Task):
    """A ball falls nine rows onto a paddle of one of five columns: 1 if it is caught, else -1 (after bsuite's
    Catch)."""

    observations, actions, horizon = 3, 3, 20
    random, good = -0.6, 0.6

    def fresh(self) -> Array:
        """See `Task`."""
        ball = self.rng.integers(0, 5, self.shape)
        return np.stack([ball, np.zeros(self.shape, int), np.full(self.shape, 2)], -1).astype(float)

    def observe(self) -> Array:
        """See `Task`."""
        return (self.state - [2.0, 4.5, 2.0]) / [2.0, 4.5, 2.0]

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        state = self.state.copy()
        state[..., 2] = np.clip(state[..., 2] + actions - 1, 0, 4)
        state[..., 1] += 1
        self.state = state
        down = state[..., 1] >= 9
        return np.where(down, np.where(state[..., 0] == state[..., 2], 1.0, -1.0), 0.0), down


class Reach(Task):
    """A point is to come to a place in the plane within twenty steps; the reward is minus the distance."""

    observations, actions, continuous, horizon = 4, 2, True, 20
    random, good = -16.0, -7.0

    def fresh(self) -> Array:
        """See `Task`."""
        return self.rng.uniform(-1, 1, (*self.shape, 4))

    def observe(self) -> Array:
        """See `Task`."""
        return np.concatenate([self.state[..., 2:] - self.state[..., :2], self.state[..., :2]], -1)

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        state = self.state.copy()
        state[..., :2] = np.clip(state[..., :2] + 0.25 * np.clip(actions, -1, 1), -1.5, 1.5)
        self.state = state
        return -np.linalg.norm(state[..., 2:] - state[..., :2], axis=-1), np.zeros(self.shape, bool)


class Pendulum(Task):
    """Swing a pendulum up and hold it, as in Gymnasium; a hundred steps, torque from -1 to 1 (times 2)."""

    observations, actions, continuous, horizon = 3, 1, True, 100
    random, good = -650.0, -250.0

    def fresh(self) -> Array:
        """See `Task`."""
        return self.rng.uniform([-np.pi, -1], [np.pi, 1], (*self.shape, 2))

    def observe(self) -> Array:
        """See `Task`."""
        angle, turn = self.state[..., 0], self.state[..., 1]
        return np.stack([np.cos(angle), np.sin(angle), turn / 4], -1)

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        angle, turn = self.state[..., 0], self.state[..., 1]
        torque = 2 * np.clip(actions[..., 0], -1, 1)
        off = (angle + np.pi) % (2 * np.pi) - np.pi
        cost = off**2 + 0.1 * turn**2 + 0.001 * torque**2
        turn = np.clip(turn + (15 * np.sin(angle) + 3 * torque) * 0.05, -8, 8)
        self.state = np.stack([angle + 0.05 * turn, turn], -1)
        return -cost, np.zeros(self.shape, bool)


class Grid(Task):
    """Walk to a place on a grid of six by six within thirty steps: 1 for reaching it, -0.05 a step."""

    observations, actions, horizon = 4, 4, 30
    random, good = -1.0, 0.5
    _MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def fresh(self) -> Array:
        """See `Task`."""
        return self.rng.integers(0, 6, (*self.shape, 4)).astype(float)

    def observe(self) -> Array:
        """See `Task`."""
        return np.concatenate([self.state[..., 2:] - self.state[..., :2], self.state[..., :2] - 2.5], -1) / 2.5

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        state = self.state.copy()
        state[..., :2] = np.clip(state[..., :2] + self._MOVES[actions.astype(int)], 0, 5)
        self.state = state
        is_there = (state[..., :2] == state[..., 2:]).all(-1)
        return np.where(is_there, 1.0, -0.05), is_there


class Hover(Task):
    """Hold a mass in its place by pushing it left or right; from 0 to 1 a step by how near and slow it is, forty
    steps."""

    observations, actions, continuous, horizon = 2, 1, True, 40
    random, good = 12.0, 28.0

    def fresh(self) -> Array:
        """See `Task`."""
        return self.rng.uniform([-2, -1], [2, 1], (*self.shape, 2))

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        place, speed = self.state[..., 0], self.state[..., 1]
        speed = np.clip(speed + 0.2 * 2 * np.clip(actions[..., 0], -1, 1), -3, 3)
        self.state = np.stack([np.clip(place + 0.2 * speed, -5, 5), speed], -1)
        return np.exp(-(self.state[..., 0] ** 2) - 0.1 * speed**2), np.zeros(self.shape, bool)


class Track(Task):
    """Stay with a mark that wanders on a line of eleven places: from 1 down to -1 a step by the distance, 25 steps."""

    observations, actions, horizon = 3, 3, 25
    random, good = 6.0, 18.0

    def fresh(self) -> Array:
        """See `Task`."""
        place = self.rng.integers(0, 11, (*self.shape, 2))
        return np.concatenate([place, self.rng.integers(-1, 2, (*self.shape, 1))], -1).astype(float)

    def observe(self) -> Array:
        """See `Task`."""
        place, mark, way = np.moveaxis(self.state, -1, 0)
        return np.stack([(mark - place) / 5, (place - 5) / 5, way], -1)

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        place, mark, way = np.moveaxis(self.state, -1, 0)
        place = np.clip(place + actions - 1, 0, 10)
        way = np.where(self.rng.random(self.shape) < 0.2, self.rng.integers(-1, 2, self.shape), way)
        self.state = np.stack([place, np.clip(mark + way, 0, 10), way], -1)
        return 1 - abs(self.state[..., 1] - place) / 2.5, np.zeros(self.shape, bool)


class Cruise(Task):
    """Keep the speed that is asked for, uphill and downhill: from 0 to 1 a step by the difference, fifty steps."""

    observations, actions, continuous, horizon = 3, 1, True, 50
    random, good = 20.0, 40.0

    def fresh(self) -> Array:
        """See `Task`."""
        return self.rng.uniform([0, 0.5, -0.3], [2, 1.5, 0.3], (*self.shape, 3))

    def observe(self) -> Array:
        """See `Task`."""
        speed, asked, slope = np.moveaxis(self.state, -1, 0)
        return np.stack([speed - 1, (asked - speed) * 2, slope * 3], -1)

    def move(self, actions: Array) -> tuple[Array, Array]:
        """See `Task`."""
        speed, asked, slope = np.moveaxis(self.state, -1, 0)
        speed = np.clip(speed + 0.2 * (2 * np.clip(actions[..., 0], -1, 1) - slope * 3 - 0.3 * speed), -2, 4)
        slope = np.clip(slope + 0.03 * self.rng.standard_normal(self.shape), -0.4, 0.4)
        self.state = np.stack([speed, asked, slope], -1)
        return np.exp(-4 * (speed - asked) ** 2), np.zeros(self.shape, bool)


TASKS: dict[str, type[Task]] = {
    task.__name__: task for task in (CartPole, Catch, Reach, Pendulum, Grid, Hover, Track, Cruise)
}
