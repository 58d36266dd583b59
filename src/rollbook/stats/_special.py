"""scipy's distribution functions, imported on first call: most of `stats` does not need them.

Importing scipy.special takes twice as long as all of numpy, and a first chart must not wait for it.
"""

from __future__ import annotations

from typing import Any


def bdtr(k: object, n: object, p: object) -> Any:
    """P(X <= k) of a binomial X of n trials with probability p."""
    from scipy.special import bdtr as function

    return function(k, n, p)


def betaincinv(a: object, b: object, y: object) -> Any:
    """The quantile y of a beta distribution."""
    from scipy.special import betaincinv as function

    return function(a, b, y)


def chdtri(freedom: object, y: object) -> Any:
    """What a chi-square with these degrees of freedom exceeds with probability y."""
    from scipy.special import chdtri as function

    return function(freedom, y)


def gammaln(x: object) -> Any:
    """The logarithm of the gamma function."""
    from scipy.special import gammaln as function

    return function(x)


def ndtr(x: object) -> Any:
    """P(X <= x) of a standard normal X."""
    from scipy.special import ndtr as function

    return function(x)


def ndtri(y: object) -> Any:
    """The quantile y of the standard normal distribution."""
    from scipy.special import ndtri as function

    return function(y)


def stdtr(freedom: object, x: object) -> Any:
    """P(X <= x) of Student's t with these degrees of freedom."""
    from scipy.special import stdtr as function

    return function(freedom, x)


def stdtrit(freedom: object, y: object) -> Any:
    """The quantile y of Student's t with these degrees of freedom."""
    from scipy.special import stdtrit as function

    return function(freedom, y)
