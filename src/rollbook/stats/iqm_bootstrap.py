"""Fast bootstrap of the IQM over many points: the runs are sorted once, resamples only count.

    for band in refined_iqm(curves_NTP, rng=rng):      # 200 draws, then 1,000, then 2,000
        draw(band.low_P, band.high_P, preliminary=band.preliminary)

Axes: N seeds, T tasks, V = N x T runs, P points, B draws, W ranks of a window.

A resample is a vector of counts over the runs, the same at every point. To compute its IQM over the sorted values, only
the counts cumulated up to each value and clipped at the two cut points are needed. If runs are drawn individually and
there are many, the cut points stay near the quartiles: values farther inside are always included, values farther
outside never (two matrix products for all points), and only the two windows between are cumulated. If a cut point
leaves its window, that resample is repeated over all values.

While they are summed, values are integers in units of a power of two, so every sum is exact in any order: the same
generator gives the same bytes on any number of threads and with any BLAS.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, choice, finite, level_of
from rollbook.stats.aggregates import iqm
from rollbook.stats.bootstrap import expanded_percentile, percentile
from rollbook.stats.draws import BLOCK, Counts, counts_of_block
from rollbook.system.brief import brief

_TOGETHER = 20
"""Blocks of draws processed at once: 1,000 draws fill matrices and stay in the cache."""
_MANY = 400
"""With at least this many runs, windows are cheaper than all values."""
_WIDE = 4_000
"""Counts in a row cumulated at once; shorter rows cost more in calls than in sums."""
_SDS = 3.5
"""Half a window, in standard deviations of a cut point. A wider one costs more than repeating the few resamples that
leave it."""


@brief
@dataclass(frozen=True)
class RefinedIqm:
    """The IQM at each point with a bootstrap interval that further draws refine.

    Attributes:
      centre_P: [points], the IQM of the sample.
      low_P: [points].
      high_P: [points].
      draws: resamples so far. The error of an end of a 95 % interval is 5 % of the width at 200 draws, 1.5 % at 2,000.
      preliminary: whether more will follow.
    """

    centre_P: Floats
    low_P: Floats
    high_P: Floats
    draws: int
    preliminary: bool


def refined_iqm(
    curves_NTP: ArrayLike,
    *,
    rng: np.random.Generator,
    stages: Sequence[int] = (200, 1_000, 2_000),
    resample: str = "runs",
    method: str = "percentile",
    level: float = 0.95,
    threads: int | None = 1,
) -> Iterator[RefinedIqm]:
    """An interval of the IQM at each point: at once from few draws, then refined.

    The resampled unit defines what the interval means. "runs" draws the runs of each task separately and assumes that
    seeds share nothing over tasks (as rliable does); "seeds" draws whole rows.

    Args:
      curves_NTP: [seeds, tasks, points] or [seeds, tasks], finite.
      rng: only its spawned children are used. The last stage equals a single stage with that many draws.
      stages: number of draws at each answer, increasing.
      resample: "runs" or "seeds".
      method: "percentile" or "expanded" (see `bootstrap`).
      level: nominal coverage.
      threads: number of threads; None for all cores. The result does not depend on it.

    Yields:
      One `RefinedIqm` per stage; the last is not preliminary.
    Raises:
      BadInput: `stages` that do not increase, curves of another shape, or too many runs.
    """
    level_of(level)
    choice(method, ("percentile", "expanded"), "bootstrap interval")
    goals = [int(stage) for stage in stages]
    if not goals or goals[0] < 1 or any(b <= a for a, b in pairwise(goals)):
        raise BadInput(f"stages={tuple(stages)} have to be increasing numbers of draws.")
    source = IqmReplicates(curves_NTP, rng=rng, resample=resample, threads=threads)
    parts: list[Floats] = []
    for goal in goals:
        parts.append(source.draw(goal - sum(map(len, parts))))
        drawn = parts[0] if len(parts) == 1 else np.concatenate(parts)
        ends = percentile(drawn, level) if method == "percentile" else expanded_percentile(drawn, source.seeds, level)
        yield RefinedIqm(source.centre_P, *ends, goal, goal < goals[-1])


class IqmReplicates:
    """A source of bootstrap replicates of the IQM; can be called repeatedly. For one thread at a time.

    Args:
      curves_NTP: [seeds, tasks, points] or [seeds, tasks], finite.
      rng: only its spawned children are used.
      resample: "runs" of each task separately, or whole "seeds".
      threads: number of threads; None for all cores.
    """

    def __init__(
        self, curves_NTP: ArrayLike, *, rng: np.random.Generator, resample: str = "runs", threads: int | None = 1
    ) -> None:
        choice(resample, ("runs", "seeds"), "resampling")
        curves = finite(curves_NTP, "curves_NTP")
        if curves.ndim == 2:
            curves = curves[:, :, None]
        if curves.ndim != 3 or 0 in curves.shape:
            raise BadInput(f"curves_NTP has the shape {curves.shape}; it has to be [seeds, tasks, points].")
        self.seeds, self.tasks, self.points = curves.shape
        self.centre_P: Floats = np.asarray(iqm(curves), dtype=np.float64)
        self._whole = resample == "seeds" and self.tasks > 1
        self._rng = rng
        self._threads = max(1, threads if threads is not None else (os.cpu_count() or 1))
        self._sorted = _Sorted(curves.reshape(-1, self.points), windows=not self._whole)
        self._spare: Counts = np.empty((0, self.seeds * (1 if self._whole else self.tasks)), np.int16)

    def draw(self, draws: int) -> Floats:
        """This many further replicates: [draws, points].

        Draws come in blocks of 50. The next call first uses the rest of a block, so 70 and then 30 draws equal 100
        draws.
        """
        if draws < 1:
            raise BadInput(f"draws={draws!r} has to be at least 1.")
        result = np.empty((draws, self.points))
        with _workers(self._threads) as run_all:
            begin = 0
            while begin < draws:
                counts = self._counts(min(draws - begin, BLOCK * _TOGETHER), run_all)
                self._sorted.iqm(counts, result[begin : begin + counts.shape[1]], self._threads, run_all)
                begin += counts.shape[1]
        return result

    def _counts(self, draws: int, run_all: _RunAll) -> Counts:
        """The next resamples: [V, draws]."""
        children = self._rng.spawn(max(0, -(-(draws - len(self._spare)) // BLOCK)))
        blocks: list[Counts] = [self._spare, *(np.empty((0, 0), np.int16) for _ in children)]
        tasks = 1 if self._whole else self.tasks

        def fill(i: int, child: np.random.Generator) -> None:
            blocks[i] = counts_of_block(self.seeds, tasks, child)

        run_all([partial(fill, i, child) for i, child in enumerate(children, 1)])
        counts = np.concatenate(blocks)
        self._spare = counts[draws:].copy()
        columns = np.ascontiguousarray(counts[:draws].T)
        return np.repeat(columns, self.tasks, axis=0) if self._whole else columns


_RunAll = Callable[[Sequence[Callable[[], None]]], None]


@contextmanager
def _workers(threads: int) -> Iterator[_RunAll]:
    """A function that processes a list of items on this many threads."""
    if threads == 1:

        def one_by_one(work: Sequence[Callable[[], None]]) -> None:
            for step in work:
                step()

        yield one_by_one
        return
    with ThreadPoolExecutor(threads) as pool:

        def together(work: Sequence[Callable[[], None]]) -> None:
            for done in [pool.submit(step) for step in work]:
                done.result()

        yield together


def iqm_of_counts(scores_NTP: ArrayLike, counts: Counts) -> Floats:
    """The IQM of each resample at each point.

    Args:
      scores_NTP: [seeds, tasks, points], finite.
      counts: [B, N] of whole seeds or [B, N * T] of runs; each row sums to its number of columns.

    Returns:
      [B, P].
    """
    scores = finite(scores_NTP, "scores_NTP")
    n, tasks, points = scores.shape
    if counts.shape[1] == n and tasks > 1:
        counts = np.repeat(counts, tasks, axis=1)
    if counts.shape[1] != n * tasks:
        raise BadInput(f"counts has {counts.shape[1]} columns; {n} seeds and {tasks} tasks need {n} or {n * tasks}.")
    ranked = _Sorted(scores.reshape(n * tasks, points), windows=tasks == 1)
    result = np.empty((len(counts), points))
    with _workers(1) as run_all:
        for begin in range(0, len(counts), BLOCK * _TOGETHER):
            part = slice(begin, begin + BLOCK * _TOGETHER)
            ranked.iqm(np.ascontiguousarray(counts[part].T, dtype=np.int16), result[part], 1, run_all)
    return result


class _Sorted:
    """The values of each point in order, as integers, and which of them are in and between the windows."""

    def __init__(self, values_VP: Floats, windows: bool) -> None:
        size, self.points = values_VP.shape
        self.size, self.cut = size, size // 4
        if size > np.iinfo(np.int16).max:
            raise BadInput(f"{size:,} runs are more than the 32,767 that resampling can count.")
        self.order = np.argsort(values_VP, axis=0, kind="stable")
        ordered = np.take_along_axis(values_VP, self.order, axis=0)
        self.shift = ordered[size // 2].copy()
        self.layers = [_Layer(*part) for part in _as_integers(ordered, self.shift, size)]
        reach = math.ceil(_SDS * math.sqrt(3 * size / 16)) + 1
        self.low = (self.cut - reach, self.cut + reach)
        self.high = (size - self.cut - reach, size - self.cut + reach)
        self.windows = windows and size >= _MANY and self.low[0] > 0 and self.low[1] < self.high[0]
        if self.windows:
            self._prepare()

    def _prepare(self) -> None:
        """Maps from runs to the values below the windows and between them, for all points."""
        rank = np.empty_like(self.order)
        np.put_along_axis(rank, self.order, np.arange(self.size)[:, None], axis=0)
        inner = (rank >= self.low[1]) & (rank < self.high[0])
        self.bits = self.size.bit_length()
        exact = np.float32 if (self.size << self.bits) + self.size < 1 << 24 else np.float64
        masks = np.where(inner, 1 << self.bits, 0) + (rank < self.low[0])
        self.masks_PV = np.ascontiguousarray(masks.T.astype(exact))  # both counts from one product
        for layer in self.layers:
            between = np.where(inner, np.take_along_axis(layer.units, rank, axis=0), 0.0)
            layer.between_PV = np.ascontiguousarray(between.T)

    def iqm(self, counts_VB: Counts, result_BP: Floats, threads: int, run_all: _RunAll) -> None:
        """Write the IQM of each resample into `result_BP`; threads share the points."""
        middle = self.size - 2 * self.cut
        width = max(1, -(-self.points // threads))
        products: dict[str, Floats] = {}
        if self.windows:
            products = {"draws_VB": counts_VB.astype(self.masks_PV.dtype), "between": counts_VB.astype(np.float64)}

        def some(points: slice) -> None:
            total = np.zeros((counts_VB.shape[1], points.stop - points.start))
            for layer in reversed(self.layers):  # the small part first
                sums = self._by_windows(layer, points, counts_VB, **products) if self.windows else None
                if sums is None:
                    sums = self._by_all(layer, points, counts_VB)
                total += sums * layer.unit[points] / middle
            result_BP[:, points] = total + self.shift[points]

        run_all([partial(some, slice(p, min(p + width, self.points))) for p in range(0, self.points, width)])

    def _by_all(self, layer: _Layer, points: slice, counts_VB: Counts) -> Floats:
        """Sums of the middle values from counts cumulated over all sorted values: [B, some points]."""
        draws = counts_VB.shape[1]
        totals = np.empty((draws, points.stop - points.start))
        together = max(1, _WIDE // draws)  # adjacent points, for long rows
        for begin in range(points.start, points.stop, together):
            chosen = slice(begin, min(begin + together, points.stop))
            inside = counts_VB[self.order[:, chosen]]  # [V, some points, B]
            _cumulated(inside.reshape(self.size, -1))
            for point in range(chosen.start, chosen.stop):
                totals[:, point - points.start] = self._sum_inside(layer.units[:, point], inside[:, point - begin])
        return totals

    def _sum_inside(self, units: Floats, cumulated_VB: Counts) -> Floats:
        low, high = np.int16(self.cut), np.int16(self.size - self.cut)
        inside = np.clip(cumulated_VB[:-1], low, high).astype(np.float64)
        # Every count is too large by `low`; over all steps this adds up to the range.
        return np.asarray(units[-1] * float(high) - units[0] * float(low) - np.diff(units) @ inside)

    def _by_windows(self, layer: _Layer, points: slice, counts_VB: Counts, draws_VB: object, between: Floats) -> Floats:
        """The same from the two windows and the values between them."""
        size, cut, (a0, a1), (b0, b1) = self.size, self.cut, self.low, self.high
        most = np.int16(size)
        zero = np.int16(0)
        totals = layer.between_PV[points] @ between
        both = (self.masks_PV[points] @ draws_VB).astype(np.int32)
        below_PB = ((both & ((1 << self.bits) - 1)) - cut).astype(np.int16)
        between_PB = ((both >> self.bits) - (size - 2 * cut)).astype(np.int16)
        for i, point in enumerate(range(points.start, points.stop)):
            units, order = layer.units[:, point], self.order[:, point]
            window_VB = counts_VB[order[a0:a1]]
            window_VB[0] += below_PB[i]
            last = _cumulated(window_VB)[-1].copy()
            np.clip(window_VB, zero, most, out=window_VB)
            gained = units[a1 - 1] * window_VB[-1] - np.diff(units[a0:a1]) @ window_VB[:-1].astype(np.float64)
            before = last + between_PB[i]
            missing = counts_VB[order[b0:b1]]
            missing[0] += before
            end = _cumulated(missing)[-1]
            lost = np.flatnonzero((below_PB[i] > 0) | (last < 0) | (before > 0) | (end < 0))
            np.clip(missing, -most, zero, out=missing)
            gained -= units[b0] * before + np.diff(units[b0:b1]) @ missing[:-1].astype(np.float64)
            totals[i] += gained
            if len(lost):
                totals[i, lost] = self._sum_inside(units, _cumulated(counts_VB[order[:, None], lost]))
        return totals.T


def _cumulated(counts: Counts) -> Counts:
    """The running sum down the rows, in place. On wide rows this is several times as fast as numpy's own."""
    if counts.shape[1] < 64:
        return np.add.accumulate(counts, axis=0, out=counts)
    rows = iter(counts)
    before = next(rows)
    for row in rows:
        row += before
        before = row
    return counts


class _Layer:
    """Sorted values as whole numbers of a unit, one unit per point."""

    def __init__(self, units: Floats, unit: Floats) -> None:
        self.units = units
        self.unit = unit
        self.between_PV: Floats = np.empty((0, 0))


def _as_integers(ordered_VP: Floats, shift_P: Floats, size: int) -> list[tuple[Floats, Floats]]:
    """(integers [V, P], their unit [P]): their sums over all runs stay below 2 ** 53 and are exact.

    One layer resolves the range of a point to 2 ** -(50 - log2 V). If this is too coarse for a middle half that is
    narrow within that range, a second layer holds the remainder.
    """
    bits = 50 - size.bit_length()
    rest = ordered_VP - shift_P
    largest = np.abs(rest).max(axis=0)
    middle = ordered_VP[size - size // 4 - 1] - ordered_VP[size // 4]
    layers = []
    for _ in range(2):
        exponent = np.where(largest > 0, np.frexp(np.maximum(largest, np.finfo(float).tiny))[1] - bits, 0)
        unit = np.ldexp(1.0, np.maximum(exponent, -1_000))
        units = np.rint(rest / unit)
        layers.append((units, unit))
        if (unit <= 2.0**-34 * middle).all():
            break
        rest = rest - units * unit
        largest = np.abs(rest).max(axis=0)
        if not largest.any():
            break
    return layers
