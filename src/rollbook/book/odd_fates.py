"""Fates that cannot be right: of rollouts that do not exist, two of one use, of an older version than the rollout's.

The process that reports one counts it if it can know (`run.bill()`); over several processes only readers know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa


def odd_fates(ask: Callable[[str], pa.Table], known: Collection[str]) -> list[str]:
    """A sentence for each kind that there is, with what to do; [] if all are right.

    Args:
      ask: the answer to a query.
      known: the columns of the table fates.
    """
    use = ", ".join(name for name in ("rollout_id", "gradient_step", "epoch") if name in known)
    twice = f"select rollout_id from fates where gradient_step is not null group by {use} having count(*) > 1"
    if "gradient_step" not in known:
        twice = "select rollout_id from fates limit 0"
    found = ask(f"""select 0 as kind, count(*) as n, min(rollout_id) as one, null::bigint as age
        from fates anti join rollouts using (rollout_id)
      union all select 1, count(*), min(rollout_id), null from ({twice})
      union all select 2, count(*), min_by(rollout_id, staleness), min(staleness) from rollouts_now
        where staleness < 0""")
    return [_WORDS[row["kind"]].format(**row) for row in found.to_pylist() if row["n"]]


_WORDS = (
    "rollouts: fates of rollouts that the run does not have: {n:,}, such as of {one:.80}; pass trained() and "
    "dropped() the ids that begin() and log_many() gave",
    "rollouts: uses with more than one fate: {n:,}, such as of {one:.80}; the newest counts. Report a use once; if it "
    "was used twice in one update, pass epoch=",
    "rollouts: trained by an older version than the one that generated them: {n:,}, such as {one:.80} (staleness "
    "{age}); take trained_version= and policy_version= from one counter",
)
