"""Building blocks of an agent in plain numpy: a perceptron, Adam, and a random state that fits into an array.

Axes in names: B samples, I inputs, O outputs. Everything is float64: with nets this small it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from rollbook.values.array_types import NDArray

Array: TypeAlias = NDArray


class Net:
    """A perceptron with tanh between its layers. `arrays` alternates weights and biases, which are changed in place."""

    def __init__(self, sizes: tuple[int, ...], rng: np.random.Generator, *, last_scale: float) -> None:
        self.arrays: list[Array] = []
        scales = [np.sqrt(2.0)] * (len(sizes) - 2) + [last_scale]
        for n_in, n_out, scale in zip(sizes, sizes[1:], scales, strict=False):
            self.arrays += [_orthogonal(n_in, n_out, rng) * scale, np.zeros(n_out)]
        self._inputs: list[Array] = []

    def forward(self, inputs_BI: Array) -> Array:
        """The outputs [B, O]; stores what `backward` needs until the next call."""
        self._inputs = [np.asarray(inputs_BI, dtype=np.float64)]
        for weights, biases in zip(self.arrays[:-2:2], self.arrays[1:-2:2], strict=True):
            self._inputs.append(np.tanh(self._inputs[-1] @ weights + biases))
        return np.asarray(self._inputs[-1] @ self.arrays[-2] + self.arrays[-1])

    def backward(self, d_outputs_BO: Array) -> list[Array]:
        """Gradients in the order of `arrays`, for the inputs of the last `forward`."""
        gradients: list[Array] = []
        d_BO = d_outputs_BO
        for weights, inputs_BI in zip(self.arrays[-2::-2], reversed(self._inputs), strict=True):
            gradients += [d_BO.sum(axis=0), inputs_BI.T @ d_BO]
            d_BO = (d_BO @ weights.T) * (1.0 - inputs_BI**2)
        return gradients[::-1]


class Adam:
    """Adam with the usual decay rates, changing `arrays` in place."""

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = arrays
        self._means = [np.zeros_like(a) for a in arrays]
        self._squares = [np.zeros_like(a) for a in arrays]
        self._steps = 0

    def step(self, gradients: list[Array], learning_rate: float) -> None:
        """Move every array one step down its gradient."""
        self._steps += 1
        rate = learning_rate * np.sqrt(1 - 0.999**self._steps) / (1 - 0.9**self._steps)
        for array, gradient, mean, square in zip(self._arrays, gradients, self._means, self._squares, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            array -= rate * mean / (np.sqrt(square) + 1e-5)

    def state_dict(self) -> dict[str, Array]:
        """Copies of all moments and the number of steps."""
        state = {f"adam/mean/{i}": array.copy() for i, array in enumerate(self._means)}
        state |= {f"adam/square/{i}": array.copy() for i, array in enumerate(self._squares)}
        return state | {"adam/steps": np.array(self._steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a `state_dict`; other keys in `state` are ignored."""
        for i, (mean, square) in enumerate(zip(self._means, self._squares, strict=True)):
            mean[...] = np.asarray(state[f"adam/mean/{i}"]).reshape(mean.shape)
            square[...] = np.asarray(state[f"adam/square/{i}"]).reshape(square.shape)
        self._steps = int(state["adam/steps"])


def rng_to_array(rng: np.random.Generator) -> Array:
    """The state of a PCG64 generator as six uint64: a plain array, while numpy returns 128-bit integers."""
    state: dict[str, Any] = dict(rng.bit_generator.state)
    words = []
    for number in (state["state"]["state"], state["state"]["inc"]):
        words += [number & (2**64 - 1), number >> 64]
    return np.array([*words, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def rng_from_array(rng: np.random.Generator, words: Array) -> None:
    """Set a PCG64 generator to a state from `rng_to_array`."""
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(w) for w in words)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _orthogonal(n_in: int, n_out: int, rng: np.random.Generator) -> Array:
    tall = rng.normal(size=(max(n_in, n_out), min(n_in, n_out)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))
    return q if n_in >= n_out else q.T.copy()
