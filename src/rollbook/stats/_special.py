"""Distribution functions. Those of scipy are imported on first call: most of `stats` does not need them.

Importing scipy.special takes twice as long as all of numpy, and a first chart must not wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rollbook.stats._checked_input import Floats


def ndtr(x: float | Floats) -> Any:
    """P(X <= x) of a standard normal X. By the standard library, as its quantiles: often nothing else is needed."""
    if isinstance(x, np.ndarray):
        return 0.5 * np.array([math.erfc(each) for each in (-_SQRT_HALF * x).tolist()])
    return 0.5 * math.erfc(-_SQRT_HALF * x)


_SQRT_HALF = math.sqrt(0.5)


def ndtri(y: float) -> float:
    """The quantile y, from 0 to 1, of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(y) if 0 < y < 1 else math.copysign(math.inf, y - 0.5)


def _of_scipy(name: str) -> Callable[..., Any]:
    def call(*arguments: object) -> Any:
        from scipy import special

        return getattr(special, name)(*arguments)

    return call


bdtr = _of_scipy("bdtr")
"""bdtr(k, n, p): P(X <= k) of a binomial X of n trials with probability p."""
betaincinv = _of_scipy("betaincinv")
"""betaincinv(a, b, y): the quantile y of a beta distribution."""
fdtrc = _of_scipy("fdtrc")
"""fdtrc(a, b, x): P(X > x) of an F with a and b degrees of freedom."""
gammaln = _of_scipy("gammaln")
"""gammaln(x): the logarithm of the gamma function."""
many_ndtr = _of_scipy("ndtr")
"""many_ndtr(x): `ndtr` of an array in a fraction of the time, where scipy is needed anyway."""
stdtr = _of_scipy("stdtr")
"""stdtr(freedom, x): P(X <= x) of Student's t with these degrees of freedom."""
stdtrit = _of_scipy("stdtrit")
"""stdtrit(freedom, y): the quantile y of Student's t with these degrees of freedom."""
