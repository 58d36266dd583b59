"""Names of runs without what a program writes into the name of each: the seed, the time when it began, the task."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BEFORE = r"[_\-. =,:+/]*"
_SEED = re.compile(_BEFORE + r"(?<![A-Za-z])seeds?[_\-. =:]*\d+(?!\d)", re.IGNORECASE)
_DAY = r"20\d\d[_\-.]?[01]\d[_\-.]?[0-3]\d"
_CLOCK = r"[0-2]\d[_\-.:h]?[0-5]\d(?:[_\-.:m]?[0-5]\d)?"
_MOMENT = re.compile(
    _BEFORE + rf"(?<![0-9A-Za-z])(?:1[4-9]\d{{8}}(?:\.\d+)?|{_DAY}(?:[_\-. T]*{_CLOCK})?)(?![0-9A-Za-z])"
)
_NUMBER = re.compile(_BEFORE + r"(?<![0-9A-Za-z.])(?<!\d[eE][-+])s?(\d+)(?![0-9A-Za-z]|\.\d)")

_EMPTY = re.compile(_BEFORE + r"(?:\(\)|\[\])")


def shared_names(names: Sequence[str], seeds: Sequence[int | None]) -> list[str]:
    """The name of each run without its seed and its time: "CartPole-v1__ppo__3__1700000000" is "CartPole-v1__ppo".

    A number in a name is a seed if it is the seed of every run whose name differs in numbers only; so "layers-2" and
    "layers-3" of seed 2 stay two names. A name that would become empty stays as it is.

    Args:
      names: of runs of one project; seeds: of each, None if unknown.
    """
    bare = [_MOMENT.sub("", _SEED.sub("", name)) or name for name in names]
    numbers = [[*_NUMBER.finditer(name)] for name in bare]
    shapes = [_NUMBER.sub("\0", name) if found else name for name, found in zip(bare, numbers, strict=True)]
    is_seed: dict[tuple[str, int], bool] = {}
    for shape, found, seed in zip(shapes, numbers, seeds, strict=True):
        for nth, number in enumerate(found):
            is_seed[shape, nth] = is_seed.get((shape, nth), True) and int(number[1]) == seed
    return [
        _cut(name, [number for nth, number in enumerate(found) if is_seed[shape, nth]])
        for name, shape, found in zip(bare, shapes, numbers, strict=True)
    ]


_VERSION = re.compile(r"(NoFrameskip|Deterministic)?-v\d+$")


def without_task(name: str, task: str) -> str:
    """A name of several tasks' runs: "ppo-Hopper-v5" of the task "Hopper-v5" is "ppo"; "" if it says nothing else.

    The task may stand in any case, with other marks between its words, without namespace ("ALE/") or version ("-v5").
    """
    bare = task.rpartition("/")[2]
    for spelling in (task, bare, _VERSION.sub("", bare)):
        words = re.findall(r"[0-9A-Za-z]+", spelling)
        own = r"[^0-9A-Za-z]*".join(map(re.escape, words))
        rest = re.sub(rf"{_BEFORE}(?<![0-9A-Za-z]){own}(?![0-9A-Za-z])", "", name, flags=re.IGNORECASE)
        if words and rest != name:
            return _EMPTY.sub("", rest).strip("_-. =,:+/")
    return name


def _cut(name: str, numbers: Sequence[re.Match[str]]) -> str:
    rest = name
    for number in reversed(numbers):
        rest = rest[: number.start()] + rest[number.end() :]
    return _EMPTY.sub("", rest).strip("_-. =,:+/") or name
