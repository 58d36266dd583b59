"""The random numbers of resampling and of permutations: from the seed that a person names."""

from __future__ import annotations

import numpy as np

from rollbook.errors import BadInput


def generator(seed: int, label: str | None = None) -> np.random.Generator:
    """The generator of a seed; with a label, one of its own for each label.

    Raises:
      BadInput: a seed below 0.
    """
    if seed < 0:
        raise BadInput(f"seed={seed}: a seed of random numbers must be 0 or more")
    return np.random.default_rng(seed if label is None else [seed, *label.encode("utf-8", "surrogatepass")])
