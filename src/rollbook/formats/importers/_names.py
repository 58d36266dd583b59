"""Texts of other tools as names of runs and projects."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re

from rollbook.run.arguments import check_name
from rollbook.schema import aliases
from rollbook.schema.counters import is_reading, x_clock
from rollbook.system.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

EVENT_FILE = re.compile(r"events\.out\.tfevents\.(1\d{9})\b")
"""The name of a TensorBoard event file, with the time of its begin."""

_LONGEST = 110
"""Bytes of a name: folders get the id behind it."""

SPLITTING = {
    "seed": "seed", "run": "run", "run_id": "run", "run_name": "run", "trial": "run", "trial_id": "run",
    "exp_name": "run", "exp": "run", "experiment": "run", "experiment_name": "run", "variant": "run",
    "condition": "run", "setting": "run", "env": "env", "env_id": "env", "env_name": "env", "environment": "env",
    "task": "env", "task_name": "env", "game": "env", "dataset": "env", "algo": "algo", "algorithm": "algo",
    "algo_name": "algo", "method": "algo", "agent": "algo",
}  # fmt: skip
"""Columns that say which run a row belongs to."""


@functools.lru_cache(maxsize=100_000)
def as_name(text: str) -> str:
    """`text` as the name of a run or project: characters that are not allowed in folder names become "-".

    A long text is shortened to its beginning and its end, with a mark between them, so that different texts stay
    different.
    """
    clean = "".join("-" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in printable(text)).strip(" .-")
    encoded = clean.encode()
    if len(encoded) > _LONGEST:
        mark = hashlib.blake2b(encoded, digest_size=3).hexdigest()
        half = (_LONGEST - len(mark) - 2) // 2
        first, last = encoded[:half].decode(errors="ignore"), encoded[-half:].decode(errors="ignore")
        clean = f"{first}~{mark}~{last}"
    return check_name("name", clean or "imported")


REWARDS = frozenset({"reward", "rewards", "rew", "score", "scores"})
LENGTHS = frozenset({"length", "lengths", "len", "ep_len", "episode_length", "episode_lengths"})
_SPREAD = re.compile(r"std|iqm|median|min|max|low|upp|high|conf|ci\b|sem|err", re.IGNORECASE)


def names_of_returns(first: Mapping[str, Sequence[Any]], x: str) -> dict[str, str]:
    """Canonical names for columns called `reward` or `score` in a person's own table, if the rows show what they are.

    If each row is an episode, or has an episode's length, the column is the return of each episode. If rows are several
    episodes or steps apart, it is a mean; for steps only if the table has no other columns than its spread. If each row
    is a step, it may be any reward and keeps its name.

    Args:
      first: the first values of each column.
      x: the column along which rows are drawn; "" if each row is an episode.
    """
    plain = [name for name in first if name.strip().lower() in REWARDS]
    if len(plain) != 1 or any(aliases.canonical(name) in ("train/return", "test/return") for name in first):
        return {}
    if not x or any(name.strip().lower() in LENGTHS for name in first):
        return {plain[0]: "episode_reward"}
    axis = next((name for name in first if x_clock(name) == "episode"), x)
    readings = [int(reading) for reading in first.get(axis, ()) if is_reading(reading)]
    strides = {later - earlier for earlier, later in itertools.pairwise(readings)}
    if not strides or min(strides) < 1:
        return {}
    if x_clock(axis) == "episode":
        return {plain[0]: "episode_reward" if strides == {1} else "mean_reward"}
    others = [name for name in first if name not in (axis, *plain) and name.lower() not in SPLITTING]
    if x_clock(axis) not in ("step", "env_step") or 1 in strides or not all(map(_SPREAD.search, others)):
        return {}
    return {plain[0]: "mean_reward"}


_RESULTS = re.compile(
    r"(?:^|[^a-z])(?:rewards?|returns?|rews?|scores?|loss(?:es)?|success(?:es)?|win_?rates?|regrets?|accuracy|acc|"
    r"episode_?(?:rewards?|returns?|lengths?)|ep_?rew\w*|ep_?ret\w*|performance|fitness|q_?values?)(?:[^a-z]|$)",
    re.IGNORECASE,
)
"""Names of lists and columns that say that they are results of a training."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def is_result(name: str) -> bool:
    """Whether a list or column is called like a result of a training."""
    return _RESULTS.search(_CAMEL.sub("_", name)) is not None
