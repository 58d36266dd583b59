"""LeRobot's statistics of the numbers in a folder, per episode and in total; many episodes are computed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rollbook.formats.datasets._lerobot_columns import FrameColumn
from rollbook.values.array_types import Floats

Stats = dict[str, Floats]
"""By name (min, max, mean, std, q01, …): [episodes, *shape]; count: [episodes, 1]."""

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_MANY_PARTS = 64


def episode_stats(column: FrameColumn, lengths: Sequence[int]) -> Stats:
    """The statistics of a column for each of several consecutive episodes.

    Images are measured per channel over all pixels, from 0 to 1, as [3, 1, 1]. As LeRobot reads them, grey images have
    three equal channels, and opacity is ignored.

    Args:
      lengths: [episodes] in frames, none of them 0.
    """
    edges = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))])
    stats = _of_pictures(column.cells, edges) if column.is_picture else _of_numbers(column.cells, edges)
    stats["count"] = np.asarray(lengths, dtype=np.float64)[:, None]
    return stats


def _of_numbers(cells: npt.NDArray[np.generic], edges: npt.NDArray[np.int64]) -> Stats:
    rows, shape = len(cells), cells.shape[1:] or (1,)
    values = cells.astype(np.float64).reshape(rows, -1)
    starts, sizes = edges[:-1], np.diff(edges)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.add.reduceat(values, starts) / sizes[:, None]
        spread = np.add.reduceat((values - np.repeat(mean, sizes, axis=0)) ** 2, starts) / sizes[:, None]
        stats = {
            "min": np.minimum.reduceat(values, starts),
            "max": np.maximum.reduceat(values, starts),
            "mean": mean,
            "std": np.sqrt(spread),
            **_quantiles(_sorted(values, edges), edges),
        }
    return {name: array.reshape(len(starts), *shape) for name, array in stats.items()}


def _sorted(values: Floats, edges: npt.NDArray[np.int64]) -> Floats:
    """The values of each part, sorted within each episode."""
    ordered = np.empty_like(values)
    if values.shape[1] > _MANY_PARTS:
        for start, stop in pairwise(edges.tolist()):
            ordered[start:stop] = np.sort(values[start:stop], axis=0)
        return ordered
    episode = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    for part in range(values.shape[1]):
        ordered[:, part] = values[np.lexsort((values[:, part], episode)), part]
    return ordered


def _quantiles(ordered: Floats, edges: npt.NDArray[np.int64]) -> Stats:
    starts, sizes = edges[:-1], np.diff(edges)
    quantiles: Stats = {}
    for name, share in QUANTILES.items():
        rank = share * (sizes - 1)
        below = np.floor(rank).astype(np.int64)
        above = np.minimum(below + 1, sizes - 1)
        low, high = ordered[starts + below], ordered[starts + above]
        quantiles[name] = np.where(low == high, low, low + (high - low) * (rank - below)[:, None])
    return quantiles


def _of_pictures(cells: npt.NDArray[np.generic], edges: npt.NDArray[np.int64]) -> Stats:
    flat = cells.reshape(len(cells), -1, cells.shape[3] if cells.ndim == 4 else 1)
    channels = [0, 1, 2] if flat.shape[2] > 1 else [0, 0, 0]
    rows: dict[str, list[list[float]]] = {}
    for start, stop in pairwise(edges.tolist()):
        by_channel = [_of_shades(np.bincount(flat[start:stop, :, k].reshape(-1), minlength=256)) for k in set(channels)]
        for name in by_channel[0]:
            rows.setdefault(name, []).append([by_channel[k][name] for k in channels])
    return {name: np.array(values)[:, :, None, None] / 255.0 for name, values in rows.items()}


def _of_shades(counts: npt.NDArray[np.intp]) -> dict[str, float]:
    """The statistics of pixels, of which `counts[shade]` have each shade."""
    shades, total = np.arange(256.0), int(counts.sum())
    there = np.flatnonzero(counts)
    mean = float((counts * shades).sum() / total)
    stats = {
        "min": float(there[0]),
        "max": float(there[-1]),
        "mean": mean,
        "std": float(np.sqrt((counts * (shades - mean) ** 2).sum() / total)),
    }
    upto = np.cumsum(counts)
    for name, share in QUANTILES.items():
        rank = share * (total - 1)
        below = int(rank)
        low, high = np.searchsorted(upto, [below, min(below + 1, total - 1)], side="right").tolist()
        stats[name] = low + (high - low) * (rank - below)
    return stats


def pooled(parts: Sequence[Mapping[str, Floats]]) -> Stats:
    """The statistics of all episodes, [1, *shape], from those of groups of episodes.

    Quantiles are the mean of the episodes' quantiles, weighted by frames, as LeRobot pools them.
    """
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    count = whole["count"]
    weight = count.reshape(-1, *[1] * (whole["mean"].ndim - 1)) / count.sum()
    with np.errstate(invalid="ignore", over="ignore"):
        mean = (whole["mean"] * weight).sum(0, keepdims=True)
        spread = ((whole["std"] ** 2 + (whole["mean"] - mean) ** 2) * weight).sum(0, keepdims=True)
        return {
            "min": whole["min"].min(0, keepdims=True),
            "max": whole["max"].max(0, keepdims=True),
            "mean": mean,
            "std": np.sqrt(spread),
            **{name: (whole[name] * weight).sum(0, keepdims=True) for name in QUANTILES},
            "count": count.sum(0, keepdims=True),
        }
