"""The reward from which a rollout counts as solved, unless it is given: one rule, in Python and as SQL.

The rollouts of training say it; those of evaluations, which may be scored otherwise, only in a run that has no others.

Midway between the low and the high rewards of the run. A single penalty or bonus does not show the level of the others,
so the lowest twentieth and the highest hundredth (at least one of each) are left out, and rewards that are not finite.
If one reward is left, the next higher one that occurs is the high one, or else the next lower one the low one.
"""

from __future__ import annotations

import math

from rollbook.schema.expressions import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RULE = "midway between low and high rewards; the lowest 5 % and the highest 1 % do not count"
_LOWEST, _HIGHEST = 0.05, 0.01


def solved_above(rewards: Iterable[float]) -> float | None:
    """The reward above which a rollout is solved; None without rewards.

    Args:
      rewards: of all rollouts of training, in any order.
    """
    known = sorted(reward for reward in rewards if math.isfinite(reward))
    if not known:
        return None
    n = len(known)
    low = max(known[max(math.ceil(_LOWEST * n), 1) - 1], known[min(1, n - 1)])
    high = min(known[max(math.ceil((1 - _HIGHEST) * n), 1) - 1], known[max(n - 2, 0)])
    if low > high:  # of two
        low, high = known[0], known[-1]
    if low == high:
        above = [reward for reward in known if reward > high]
        below = [reward for reward in known if reward < low]
        low, high = (low, above[0]) if above else (below[-1], high) if below else (low, high)
    return low / 2 + high / 2


def threshold_query(table: str, reward: str = "reward") -> str:
    """`solved_above` of a table of rollouts, as a query with one row and the column `above`.

    Args:
      table: its name.
      reward: the column.
    """
    cell = f"{quoted(reward)}::double"
    of_training = "mode is distinct from 'eval'"
    table = f"(select * from {table} where {of_training} or not exists (select 1 from {table} where {of_training}))"
    return f"""select case when low < high then low / 2 + high / 2 when up is not null then low / 2 + up / 2
      when down is not null then down / 2 + high / 2 else low end as above
    from (select any_value(low) as low, any_value(high) as high, min({cell}) filter ({cell} > high) as up,
        max({cell}) filter ({cell} < low) as down
      from {table}, (select case when inner_low > inner_high then ends[1] else inner_low end as low,
          case when inner_low > inner_high then ends[2] else inner_high end as high
        from (select greatest(cuts[1], least_two[2]) as inner_low, least(cuts[2], most_two[2]) as inner_high,
            [least_two[1], most_two[1]] as ends
          from (select quantile_disc({cell}, [{_LOWEST}, {1 - _HIGHEST}]) as cuts, min({cell}, 2) as least_two,
              max({cell}, 2) as most_two from {table} where isfinite({cell}))))
      where isfinite({cell}))"""


def number_in(given: object) -> float | None:
    """The number that rewards must be above, as it was given, also as text; None for a condition and all else."""
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    try:
        above = float(given)
    except (ValueError, OverflowError):
        return None
    return above if math.isfinite(above) else None


def solved_sql(above: str, reward: str = "reward") -> str:
    """The condition of a solved rollout; false without a finite reward.

    Args:
      above: a number, or a query with one row.
      reward: the column.
    """
    return f"coalesce(isfinite({quoted(reward)}::double) and {quoted(reward)} > ({above}), false)"
