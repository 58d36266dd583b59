"""What paths say by their neighbours: which folder of an unknown name is an environment, and which is a method.

    facts = read_paths([["sac", "MyMaze"], ["sac-ours", "MyMaze"], ["sac", "Hopper-v4"]])
    facts[0].env                        "MyMaze": it is where others have an environment
    facts[1].algo                       "sac-ours": another than the plain one

A name means what its siblings mean: those in the same folder, and those below folders of the same kind. What is still
unknown then stays a field of its own, and is equal to nothing.
"""

# ruff: noqa: SIM905  (lists of words are read as words)

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Sequence

from rollbook.formats.importers._paths import Part, PathFacts, combined, parts_of, without_env

_SIZES = 4
"""Numbers that are all multiples of this or of a larger one are sizes; trials are counted."""

_MANY = 16
"""If a name occurs without a number and with a single number, the number is a size from this value on."""

_SIGNS = "-_ .,+"
_CONTENT = re.compile(
    r"(?:^|(?<=[-_ .]))(?:scores?|results?|rewards?|returns?|logs?|metrics|data|history|agents?|evaluations?|eval|"
    r"training|train|testing|progress|stats|curves?|runs?|experiments?|monitor|output|summary|"
    r"(?<![qQ][-_ ])learning)(?=$|[-_ .])[-_ .]?",
    re.IGNORECASE,
)
"""Words that say what a file holds, and not what was trained."""

_NO_METHODS = frozenset(
    "old tmp temp backup archive misc other others debug figures plots models checkpoints videos best final "
    "demo".split()
)
"""Names of folders that are found next to algorithms and are none."""


def read_paths(paths: Sequence[Sequence[str]], above: Sequence[str] = ()) -> list[PathFacts]:
    """What each of some paths below one folder says, the outermost folder first.

    An algorithm gets its full name ("sac-ours") where others of its kind have another addition.

    Args:
      above: folders above all of them; see `read_path`.
    """
    every = [parts_of(names) for names in paths]
    sets: dict[object, _Siblings] = {}
    siblings_of = []
    for names, parts in zip(paths, every, strict=True):
        mine = []
        for depth, part in enumerate(parts):
            kind = _kind(parts[depth - 1]) if depth else "first"
            mine.append(sets.setdefault((depth, kind or (*names[:depth],)), _Siblings()))
            mine[-1].add(part)
        siblings_of.append(mine)
    path_facts = []
    for parts, mine in zip(every, siblings_of, strict=True):
        for depth, siblings in enumerate(mine):
            has_env = any(part.env for n, part in enumerate(parts) if n != depth)
            has_algo = any(part.algo for n, part in enumerate(parts) if n != depth)
            parts[depth] = siblings.among_siblings(parts[depth], has_env, has_algo)
        path_facts.append(combined(parts, above))
    variants: dict[str, set[str]] = {}
    for one, mine in zip(path_facts, siblings_of, strict=True):
        variants.setdefault(one.algo.lower(), set()).add(one.variant.lower())
        if one.algo and any(siblings.is_mixed for siblings in mine):
            variants[one.algo.lower()].add("")
    for one in path_facts:
        if len(variants[one.algo.lower()]) > 1 and one.variant != one.algo:
            one.plain_algo, one.algo = one.algo, one.variant
    short = {one.algo: _CONTENT.sub("", one.algo).strip(_SIGNS) for one in path_facts}
    often = Counter(name.lower() for name in short.values())
    for one in path_facts:
        if (name := short[one.algo]) and often[name.lower()] == 1:
            one.algo = name  # of dqn_scores and double_dqn_scores
    return path_facts


def _kind(part: Part) -> str:
    """What a folder says; folders below those that say the same are compared with each other."""
    return "algo env" if part.algo and part.env else "algo" if part.algo else "env" if part.env else ""


class _Siblings:
    """The folders at one depth of their paths.

    Attributes:
      is_mixed: whether there are unknown names among the algorithms.
    """

    def __init__(self) -> None:
        self._known: dict[Part, None] = {}
        self._placed: dict[tuple[Part, bool, bool], Part] = {}
        self._numbers: dict[str, set[int]] | None = None
        self._bare: set[str] = set()
        self._facts: tuple[bool, bool, bool, bool] | None = None

    def add(self, part: Part) -> None:
        self._known[part] = None

    @functools.cached_property
    def is_mixed(self) -> bool:
        _envs, algos, _both, _plain = self._about()
        return algos and any(part.method and not part.algo and not part.env for part in self._known)

    def _about(self) -> tuple[bool, bool, bool, bool]:
        """Whether some siblings name an environment alone, an algorithm alone, both, or only a known algorithm."""
        if self._facts is None:
            known = list(self._known)
            algos = any(part.algo and not part.env for part in known)
            self._facts = (
                any(part.env and not part.method and (part.is_known or not algos) for part in known),
                algos,
                any(part.is_known and part.algo == part.method for part in known if part.algo),
                any(part.algo == part.method and not part.env for part in known if part.algo),
            )
        return self._facts

    def among_siblings(self, part: Part, has_env: bool, has_algo: bool) -> Part:
        """A folder of the path, with what its siblings say about it.

        Args:
          has_env, has_algo: whether another folder of its path says one.
        """
        key = (part, has_env, has_algo)
        if key not in self._placed:
            self._placed[key] = self._of(part, has_env, has_algo)
        return self._placed[key]

    def _of(self, part: Part, has_env: bool, has_algo: bool) -> Part:
        envs, algos, both, alone = self._about()
        part = self._sized(part)
        if part.env and not part.is_known and algos and (part.algo or has_env or not envs):
            part = without_env(part)  # next to sac: sac-ours-v2, ours-v2
        if not part.method:
            return part
        if not part.algo and not part.env and envs != algos:
            if envs and not has_env:
                return part._replace(env=part.method, method="")
            if algos and not has_algo and part.method.lower() not in _NO_METHODS:
                return part._replace(algo=part.method)
        if both and part.algo and not part.env and not has_env and not alone:
            rest = _without(part.method, part.algo)
            if rest:  # of sac_Hopper-v4 and sac_MyMaze
                return part._replace(env=rest, method=part.algo)
        if both and part.env and not part.algo and not has_algo:
            return part._replace(algo=part.method)  # of sac_Hopper-v4 and ours_Hopper-v4
        return part

    def _sized(self, part: Part) -> Part:
        """A folder whose number does not count trials, because its siblings' numbers are sizes: net_64 and net_128."""
        if not part.rest or not part.number:
            return part
        if self._numbers is None:
            self._numbers, self._bare = {}, {one.rest for one in self._known if not one.number}
            for one in self._known:
                if digits := re.search(r"\d+$", one.number):
                    self._numbers.setdefault(one.rest, set()).add(int(digits[0]))
        numbers = self._numbers.get(part.rest, set())
        if len(numbers) == 1:  # next to ppo, ppo-64 is no trial: where are those before it?
            is_size = max(numbers) >= _MANY and part.rest in self._bare
        else:
            is_size = math.gcd(*numbers) >= _SIZES
        if not is_size:
            return part
        names = {name: text + part.number for name in ("rest", "method", "full") if (text := getattr(part, name))}
        return part._replace(**names, number="", is_trial=False)


def _without(text: str, word: str) -> str:
    """A text without a word at its beginning or end; "" if the word is in the middle."""
    if text.startswith(word) and text[len(word) : len(word) + 1] in _SIGNS:
        return text[len(word) :].strip(_SIGNS)
    return text[: -len(word)].strip(_SIGNS) if text.endswith(word) else ""
