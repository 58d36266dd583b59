"""scipy's distribution functions, loaded when one is first called: most of what `stats` does needs none of them.

Loading scipy.special takes twice as long as all of numpy, and a first picture must not wait for it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["bdtr", "betaincinv", "chdtri", "gammaln", "ndtr", "ndtri", "stdtr", "stdtrit"]


def bdtr(k: object, n: object, p: object) -> Any:
    """P(X <= k) of a binomial X of n throws with chance p."""
    from scipy.special import bdtr as function

    return function(k, n, p)


def betaincinv(a: object, b: object, y: object) -> Any:
    """The quantile y of a beta distribution."""
    from scipy.special import betaincinv as function

    return function(a, b, y)


def chdtri(freedom: object, y: object) -> Any:
    """What a chi-square of so many degrees of freedom exceeds with chance y."""
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
    """P(X <= x) of Student's t with so many degrees of freedom."""
    from scipy.special import stdtr as function

    return function(freedom, x)


def stdtrit(freedom: object, y: object) -> Any:
    """The quantile y of Student's t with so many degrees of freedom."""
    from scipy.special import stdtrit as function

    return function(freedom, y)
