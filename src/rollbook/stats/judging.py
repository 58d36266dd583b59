"""The tests behind a verdict about two arms: exact tests of ranks and of means, of which the larger p counts.

    tested = judge(a_R, b_R)                       # higher is better; -inf: the seed failed
    tested.side, tested.p, tested.won, tested.any_shape

Each of the two tests repairs the other. Ranks do not see how much the means differ, so a rare bad seed would not count
for more than a slightly worse one; means are decided by single seeds far from the others. A winner is ahead by both.
The order of the seeds plays no part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Bools, Floats, Ints, Packed, floats
from rollbook.stats.exact_ranks import any_shape, doubled_midranks, fewest_split, signs_as_far, splits_as_far
from rollbook.stats.two_samples import EXACT_SPLITS, permutation, random_splits
from rollbook.system.brief import brief

DRAWS, MORE_DRAWS = 9_999, 99_999
"""Random splits of the test of means where there are too many to try all; more of them where ranks decide clearly."""
_CLEAR = 1e-3
FEWEST = 4
"""Seeds of each arm below which there is no winner."""
HOLDS_AT = 0.05
"""The level of the question whether a winner would still win with one more failed seed."""


@brief
@dataclass(frozen=True)
class Tested:
    """The tests of two arms A and B.

    Attributes:
      n_a, n_b: seeds, failed ones included; of paired arms the pairs.
      side: 1 if A is ahead by ranks and by means, -1 if B is, 0 if neither is or the two disagree.
      ahead: the same by ranks alone.
      won: pairs of seeds in which A scores better; ties count half. Over several tasks the mean.
      of: all pairs of seeds.
      p_ranks, p_means: two-sided p of both tests.
      least: the smallest p that these numbers of seeds can have.
      any_shape: a bound on the p of `won` that holds whatever the shapes of the two; see `exact_ranks.any_shape`.
      difference: of the means, A minus B; failed seeds at the floor, or else at the worst score.
      equal: whether all scores are the same.
      paired: whether equal seeds were compared with each other.
    """

    n_a: int
    n_b: int
    side: int
    ahead: int
    won: float
    of: int
    p_ranks: float
    p_means: float
    least: float
    any_shape: float
    difference: float
    equal: bool
    paired: bool = False

    @property
    def p(self) -> float:
        """The larger of both: what a verdict goes by."""
        return max(self.p_ranks, self.p_means)


def least_p(n_a: int, n_b: int, paired: bool = False) -> float:
    """The smallest p that `judge` can give for these numbers of seeds, whatever they score.

    Args:
      n_a, n_b: seeds of the two arms; if they are paired, both are the number of pairs.
      paired: whether equal seeds are compared with each other.
    """
    if min(n_a, n_b) < 1:
        return 1.0
    if paired:
        return max(2.0 ** (1 - n_a), 1 / (MORE_DRAWS + 1) if n_a > _MOST_SIGNS else 0.0)
    splits = math.comb(n_a + n_b, n_a)
    return max(fewest_split(n_a, n_b), 1 / (MORE_DRAWS + 1) if splits > EXACT_SPLITS else 0.0)


def judge(
    a_RT: ArrayLike, b_RT: ArrayLike, *, floor: ArrayLike | None = None, paired: bool = False, common_scale: bool = True
) -> Tested:
    """Test whether the seeds of one arm score better than those of the other; higher is better.

    Ranks: the exact Mann-Whitney test with midranks. Over several tasks a seed's rank is the sum of its ranks within
    each task, and whole seeds change sides, so luck that a seed shares over tasks is allowed for: arms of equal
    distribution are found different in at most a share p of studies, however the tasks depend on each other. Tasks need
    no common scale. Means: the permutation test of the studentised difference of the seeds' means over tasks.

    Paired: Wilcoxon's signed ranks and the means under all choices of signs. Exact if within a seed the two arms could
    change places.

    Args:
      a_RT: [seeds of A] or [seeds, tasks]; -inf where a seed failed, which ranks below all that did not.
      b_RT: the same of B; if paired, row i has the same seed as row i of `a_RT`.
      floor: what a failed seed counts as in means, or one number for each task; None: as the worst score of its task.
      common_scale: whether scores of several tasks are on one scale; if not, each task is measured by its own range.
      paired: whether equal rows belong together.
    Raises:
      BadInput: NaN or inf, no seed, different tasks, or paired arms of different lengths.
    """
    a, b = _table(a_RT, "a_RT"), _table(b_RT, "b_RT")
    if a.shape[1] != b.shape[1] or (paired and len(a) != len(b)):
        raise BadInput(
            f"a_RT has the shape {a.shape} and b_RT {b.shape}; tasks, and seeds if paired, have to be equal."
        )
    for_ranks, for_means = _without_failures(np.concatenate([a, b]), floor)
    n_a, n_b = len(a), len(b)
    span = np.ptp(for_means, axis=0)
    weights = np.where(span > 0, span, 1.0) if a.shape[1] > 1 and not common_scale else 1.0
    means = (for_means / weights).mean(axis=1)
    difference = math.fsum(means[:n_a]) / n_a - math.fsum(means[n_a:]) / n_b  # the same in any order
    if bool((for_ranks == for_ranks[0]).all()):
        return Tested(
            n_a, n_b, 0, 0, n_a * n_b / 2, n_a * n_b, 1.0, 1.0, least_p(n_a, n_b, paired), 1.0, 0.0, True, paired
        )
    if paired:
        won, of, p_ranks, p_means = _of_pairs(for_ranks[:n_a] - for_ranks[n_a:], means[:n_a] - means[n_a:])
    else:
        ranks: Ints = np.sum([doubled_midranks(task) for task in for_ranks.T], axis=0, dtype=np.int64)
        of = n_a * n_b
        won = float(ranks[:n_a].sum()) / (2 * a.shape[1]) - n_a * (n_a + 1) / 2
        p_ranks = splits_as_far(ranks, n_a)
        p_means = 1.0 if min(n_a, n_b) < 2 else _p_of_means(means, n_a, p_ranks)
    ahead = int(np.sign(round(won - of / 2, 9)))
    side = ahead if ahead == int(np.sign(difference)) else 0
    bound = any_shape(won / of, min(n_a, n_b))
    return Tested(
        n_a, n_b, side, ahead, won, of, p_ranks, p_means, least_p(n_a, n_b, paired), bound, difference, False, paired
    )


def holds_with_one_more_failure(a_RT: ArrayLike, b_RT: ArrayLike, a_wins: bool) -> bool:
    """Whether ranks would still be apart at 5 % if one more seed of the winner had failed.

    Args:
      a_RT, b_RT: as for `judge`, not paired.
      a_wins: whether A is the winner.
    """
    a, b = _table(a_RT, "a_RT"), _table(b_RT, "b_RT")
    failed = np.full((1, a.shape[1]), -np.inf)
    winner, loser = (np.concatenate([a if a_wins else b, failed]), b if a_wins else a)
    every = _without_failures(np.concatenate([winner, loser]), None)[0]
    ranks: Ints = np.sum([doubled_midranks(task) for task in every.T], axis=0, dtype=np.int64)
    n = len(winner)
    ahead = 2 * float(ranks[:n].sum()) > n * float(ranks.sum()) * 2 / len(ranks)
    return ahead and splits_as_far(ranks, n) <= HOLDS_AT


def unseen_share(n: int) -> float:
    """The share of failing seeds that n seeds without a failure leave possible, at 5 %."""
    return float(1 - 0.05 ** (1 / n)) if n else 1.0


_MOST_SIGNS = 14


def _table(values: ArrayLike, what: str) -> Floats:
    array = floats(values, what)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size:
        raise BadInput(f"{what} has the shape {array.shape}; it has to be [seeds] or [seeds, tasks], not empty.")
    if np.isnan(array).any() or (array == np.inf).any():
        raise BadInput(f"{what} holds NaN or inf; a seed has a score, or it failed (-inf), or it is left out by name.")
    return array


def _without_failures(scores_RT: Floats, floor: ArrayLike | None) -> tuple[Floats, Floats]:
    """Scores for ranks, where a failed seed is below all others, and for means, where it counts as the floor."""
    failed = np.isneginf(scores_RT)
    if not failed.any():
        return scores_RT, scores_RT
    worst = np.min(np.where(failed, np.inf, scores_RT), axis=0)
    worst = np.where(np.isinf(worst), 0.0, worst)
    span = np.max(np.where(failed, -np.inf, scores_RT), axis=0) - worst
    below = worst - np.where(span > 0, span, np.maximum(1.0, np.abs(worst)))
    # A failed seed ranks below the worst that did not fail, so the two do not tie, but its score is no lower.
    instead = (
        worst - 1e-6 * (worst - below)
        if floor is None
        else np.broadcast_to(np.asarray(floor, dtype=np.float64), worst.shape)
    )
    return np.where(failed, below, scores_RT), np.where(failed, instead, scores_RT)


def _p_of_means(means: Floats, n_a: int, p_ranks: float) -> float:
    """More draws only where they can matter: p is at least that of the ranks."""
    return _p_of_scores(means.tobytes(), n_a, MORE_DRAWS if p_ranks < _CLEAR else DRAWS)


@lru_cache(maxsize=256)
def _p_of_scores(means: bytes, n_a: int, draws: int) -> float:
    """`means`: the bytes of float64 numbers. Cached, as a page asks for the same comparisons again and again."""
    every: Floats = np.frombuffer(means)
    small, large = sorted((every[:n_a], every[n_a:]), key=len)
    exact = math.comb(len(every), len(small)) <= EXACT_SPLITS
    splits = None if exact else _splits(len(every), len(small), draws)
    return permutation(small, large, rng=np.random.default_rng(0), splits=splits).p


@lru_cache(maxsize=4)
def _splits(size: int, chosen: int, draws: int) -> Packed:
    """The same random splits for the same number of seeds, so that the same scores have the same p."""
    return random_splits(size, chosen, draws, np.random.default_rng([size, chosen]))


def _of_pairs(of_ranks_NT: Floats, gaps_N: Floats) -> tuple[float, int, float, float]:
    """(pairs won, pairs, p of Wilcoxon's signed ranks, p of the mean) of differences within seeds."""
    n, tasks = of_ranks_NT.shape
    signed = np.zeros(n, dtype=np.int64)
    for task in of_ranks_NT.T:
        signed += np.sign(task).astype(np.int64) * doubled_midranks(np.abs(task))
    sizes = np.abs(signed)
    p_ranks = signs_as_far(sizes[sizes > 0], int(signed[signed > 0].sum()))
    won = float((np.sign(of_ranks_NT) + 1).sum()) / (2 * tasks)
    signs = _signs(n)
    sums = np.abs(signs @ gaps_N)
    as_far = int((sums >= abs(float(gaps_N.sum())) * (1 - 1e-9)).sum())
    p_means = as_far / len(signs) if n <= _MOST_SIGNS else (1 + as_far) / (1 + len(signs))
    return won, n, p_ranks, p_means


@lru_cache(maxsize=8)
def _signs(n: int) -> Floats:
    """[choices, n] of -1 and 1: all of them, or this many random ones."""
    if n <= _MOST_SIGNS:
        plus: Bools = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
    else:
        plus = np.random.default_rng(n).random((MORE_DRAWS, n)) < 0.5
    signs: Floats = np.where(plus, 1.0, -1.0)
    signs.flags.writeable = False
    return signs
