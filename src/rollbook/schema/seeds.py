"""The seed that a configuration names, by one rule for everybody: `init`, adapters, groups, runs of other tools."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_NAMES = ("seed", "randomseed", "rngseed", "randomstate", "manualseed", "globalseed", "seedeverything")
"""What settings with a seed are called, without "_" and "-"; the first in a mapping counts."""

_PARTS = frozenset(
    (
        "train", "training", "trainer", "learner", "agent", "algo", "algorithm", "base", "master", "main", "exp",
        "experiment", "run", "torch", "np", "numpy", "jax", "tf", "python",
    )
)  # fmt: skip
"""What stands before "_seed" in one name: train_seed is the seed of the training, max_seed is none."""

_OTHERS = frozenset(
    (
        "eval", "evaluation", "evaluator", "test", "testing", "val", "valid", "validation", "data", "dataset",
        "datamodule",
    )
)  # fmt: skip
"""Parts of a configuration whose seeds are not that of the training."""

_ENVIRONMENTS = frozenset(("env", "envs", "environment", "environments", "env_kwargs", "env_args", "env_config"))
"""Parts whose seeds count only where no other part names one."""

_DEEPEST = 5
_LARGEST = 2**63


def named_seed(config: Mapping[Any, Any]) -> int | None:
    """The seed that a configuration names: `seed`, `SEED`, `random_seed`, `train.seed`, `train_seed`; else None.

    The outermost counts. Of several at one depth, those of an evaluation or of data do not count, those of an
    environment only without others; if the rest differ, there is no seed of the run. A negative one means "any".

    Args:
      config: plain data; nested mappings, or paths such as "train.seed" and "train/seed" as names.
    """
    level: list[tuple[str, Any]] = [("", config)]
    for _ in range(_DEEPEST):
        found: list[tuple[str, int]] = []
        inner: list[tuple[str, Any]] = []
        for part, mapping in level:
            own: dict[str, int] = {}
            for name, value in _parts_of(mapping):
                if hasattr(value, "items"):
                    inner.append((part if part in _OTHERS or part in _ENVIRONMENTS else name, value))
                elif name.replace("_", "") in _NAMES and (number := _as_seed(value)) is not None:
                    own.setdefault(name.replace("_", ""), number)
            found += [(part, own[name]) for name in _NAMES if name in own][:1]
        found = [(part, seed) for part, seed in found if part not in _OTHERS]
        for of_environments in (False, True):
            seeds = {seed for part, seed in found if (part in _ENVIRONMENTS) is of_environments}
            if seeds:
                return seeds.pop() if len(seeds) == 1 else None
        level = inner
    return None


def _parts_of(mapping: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each entry; "train.seed" and "train_seed" are the part train with an entry seed."""
    for key, value in mapping.items():
        name = str(key).casefold().replace("-", "_").replace("/", ".")
        first, dot, rest = name.partition(".")
        if not dot and name.endswith("_seed") and name.removesuffix("_seed") in _PARTS:
            first, dot, rest = name.removesuffix("_seed"), ".", "seed"
        yield (first, {rest: value}) if dot and first else (name, value)


def _as_seed(value: object) -> int | None:
    """A whole number from 0 on, also as a float or in digits, as a command line leaves it."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None
