"""Multilayer perceptrons with Adam in numpy, one for each of some seeds, side by side: arrays are (seeds, batch,
units)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Net"]

Array = np.ndarray[Any, np.dtype[Any]]


class Net:
    """Two hidden layers of tanh.

    Args:
      seeds: how many networks.
      sizes: (inputs, hidden, outputs).
      rng: of the first weights.
      last: scale of the weights of the last layer.
      extra: so many further parameters, not used by the layers (`own`), such as logarithms of standard deviations.
    """

    def __init__(
        self, seeds: int, sizes: tuple[int, int, int], rng: np.random.Generator, last: float = 1.0, extra: int = 0
    ) -> None:
        inputs, hidden, outputs = sizes
        self.parameters: list[Array] = []
        for rows, columns, scale in ((inputs, hidden, 1.0), (hidden, hidden, 1.0), (hidden, outputs, last)):
            self.parameters.append(rng.normal(0, scale / np.sqrt(rows), (seeds, rows, columns)))
            self.parameters.append(np.zeros((seeds, 1, columns)))
        if extra:
            self.parameters.append(np.zeros((seeds, 1, extra)))
        self._first = [np.zeros_like(p) for p in self.parameters]
        self._second = [np.zeros_like(p) for p in self.parameters]
        self._steps = 0

    @property
    def own(self) -> Array:
        """The further parameters."""
        return self.parameters[6]

    def __call__(self, x: Array) -> Array:
        """(seeds, batch, inputs) -> (seeds, batch, outputs). What `gradient` needs is remembered."""
        a, b, c, d, e, f = self.parameters[:6]
        self._x = x
        self._h = np.tanh(x @ a + b)
        self._g = np.tanh(self._h @ c + d)
        result: Array = self._g @ e + f
        return result

    def gradient(self, out: Array, inputs: bool = False) -> tuple[list[Array], Array | None]:
        """Gradients of the parameters, and of the inputs where asked, from that of the outputs of the last call."""
        a, _b, c, _d, e, _f = self.parameters[:6]
        g = (out @ e.swapaxes(1, 2)) * (1 - self._g**2)
        h = (g @ c.swapaxes(1, 2)) * (1 - self._h**2)
        pairs = ((self._x, h), (self._h, g), (self._g, out))
        gradients = [p for x, y in pairs for p in (x.swapaxes(1, 2) @ y, y.sum(1, keepdims=True))]
        return gradients, h @ a.swapaxes(1, 2) if inputs else None

    def step(self, gradients: list[Array], rate: float, most: float = np.inf) -> tuple[Array, Array]:
        """One step of Adam; (norm of the gradient before it was cut to `most`, norm of the step), one a seed."""
        norm = np.sqrt(sum((g**2).sum((1, 2)) for g in gradients))
        cut = np.minimum(1.0, most / (norm + 1e-8))[:, None, None]
        self._steps += 1
        fix1, fix2 = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        moved = np.zeros_like(norm)
        for p, g, m, v in zip(self.parameters, gradients, self._first, self._second, strict=True):
            g = g * cut
            m *= 0.9
            m += 0.1 * g
            v *= 0.999
            v += 0.001 * g * g
            change = (rate / fix1) * m / (np.sqrt(v / fix2) + 1e-8)
            p -= change
            moved += (change**2).sum((1, 2))
        return norm, np.sqrt(moved)

    def copy_from(self, other: Net, share: float = 1.0) -> None:
        """Come nearer to another network's parameters by this share."""
        for p, q in zip(self.parameters, other.parameters, strict=True):
            p += share * (q - p)
