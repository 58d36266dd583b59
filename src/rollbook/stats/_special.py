"""scipy's distribution functions, imported on first call: most of `stats` does not need them.

Importing scipy.special takes twice as long as all of numpy, and a first chart must not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _of_scipy(name: str) -> Callable[..., Any]:
    def call(*arguments: object) -> Any:
        from scipy import special

        return getattr(special, name)(*arguments)

    return call


bdtr = _of_scipy("bdtr")
"""bdtr(k, n, p): P(X <= k) of a binomial X of n trials with probability p."""
betaincinv = _of_scipy("betaincinv")
"""betaincinv(a, b, y): the quantile y of a beta distribution."""
chdtri = _of_scipy("chdtri")
"""chdtri(freedom, y): what a chi-square with these degrees of freedom exceeds with probability y."""
fdtrc = _of_scipy("fdtrc")
"""fdtrc(a, b, x): P(X > x) of an F with a and b degrees of freedom."""
gammaln = _of_scipy("gammaln")
"""gammaln(x): the logarithm of the gamma function."""
ndtr = _of_scipy("ndtr")
"""ndtr(x): P(X <= x) of a standard normal X."""
ndtri = _of_scipy("ndtri")
"""ndtri(y): the quantile y of the standard normal distribution."""
stdtr = _of_scipy("stdtr")
"""stdtr(freedom, x): P(X <= x) of Student's t with these degrees of freedom."""
stdtrit = _of_scipy("stdtrit")
"""stdtrit(freedom, y): the quantile y of Student's t with these degrees of freedom."""
