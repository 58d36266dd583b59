"""The default axis of rows: the same in Python, on the command line and on the page."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_BEST_KNOWN = ("env_step", "gradient_step", "train_iter", "epoch", "step")


def own_axis(x: str, total: Mapping[str, object] | None) -> str:
    """The clock that a run named for its plots, else that of its planned end; "" without either.

    Args:
      x, total: as in its manifest; a listing has no x.
    """
    return x or next(iter(total or ()), "")


def default_axis(own: str, known: Collection[str]) -> str:
    """The own axis of a run if its rows know it; else the best known of their clocks, else the first; else time.

    Args:
      own: see `own_axis`.
      known: the clocks that the rows have readings of, in the order of the run. Without any, as of a run that has no
        row yet, the own axis is taken at its word.
    """
    if not known:
        return own or "time"
    return next(clock for clock in (own, *_BEST_KNOWN, *known) if clock in known)
