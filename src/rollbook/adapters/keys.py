"""The canonical names of reinforcement learning, for users and authors of adapters; see `rollbook.ground.aliases`.

keys.canonical("rollout/ep_rew_mean")     'train/return'
keys.estimator("rollout/ep_rew_mean")     'mean of the last 100 finished episodes'
keys.resolve("train/return", book.keys()) ['rollout/ep_rew_mean']
"""

from __future__ import annotations

from rollbook.ground.aliases import (
    TABLE,
    Canonical,
    Native,
    candidates,
    canonical,
    describe,
    estimator,
    native_names,
    resolve,
)

__all__ = [
    "TABLE",
    "Canonical",
    "Native",
    "candidates",
    "canonical",
    "describe",
    "estimator",
    "native_names",
    "resolve",
]
