"""Does the whole true curve lie inside a band? Pointwise bands and the band for the whole curve of the mean.

python -m benchmarks.statistics.curves [studies]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from rollbook.stats import student_t, whole_curve_band

POINTS = 200
SEEDS = (5, 10, 20)
AT = np.linspace(0.0, 1.0, POINTS)


def smooth(rng: np.random.Generator, n: int) -> np.ndarray:
    """Luck that changes slowly: correlated over about 20 points."""
    kernel = np.exp(-0.5 * (np.arange(-40, 41) / 14.0) ** 2)
    noise = rng.normal(size=(n, POINTS + 80))
    return np.stack([np.convolve(row, kernel / np.linalg.norm(kernel), "valid") for row in noise])


def rough(rng: np.random.Generator, n: int, memory: float = 0.95) -> np.ndarray:
    """Evaluation noise that forgets within about 20 points."""
    noise = rng.normal(size=(n, POINTS))
    noise[:, 1:] *= np.sqrt(1 - memory**2)
    for p in range(1, POINTS):
        noise[:, p] += memory * noise[:, p - 1]
    return noise


def learning(rng: np.random.Generator, n: int) -> np.ndarray:
    """A random start and a random plateau; 20 % of the seeds never start."""
    start = rng.lognormal(np.log(0.3), 0.4, (n, 1))
    plateau = np.where(rng.random((n, 1)) < 0.2, 0.05, rng.normal(1.0, 0.1, (n, 1)))
    rise = 1 / (1 + np.exp(-(AT - start) / 0.05))
    return plateau * rise * (1 + 0.05 * rough(rng, n, 0.8)) + 0.02 * rough(rng, n, 0.8)


CURVES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "smooth": smooth,
    "rough": rough,
    "learning": learning,
}


def row(kind: str, n: int, studies: int) -> str:
    rng = np.random.default_rng([n, *kind.encode()])
    true = CURVES[kind](rng, 20_000).mean(axis=0) if kind == "learning" else np.zeros(POINTS)
    held = {"point": 0, "whole": 0}
    widths: dict[str, list[float]] = {"point": [], "whole": []}
    for _ in range(studies):
        curves = CURVES[kind](rng, n)
        band = whole_curve_band(curves)
        for name, (low, high) in {"point": student_t(curves), "whole": (band.low_P, band.high_P)}.items():
            held[name] += bool(((low <= true) & (true <= high)).all())
            widths[name].append(float(np.mean(high - low)))
    cells = [f"{100 * held[name] / studies:.0f} ({np.median(widths[name]):.2g})" for name in ("point", "whole")]
    return f"| {kind}, {n} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print("| curve, seeds | pointwise t: whole curve inside, % (width) | band for the whole curve |")
    print("|---|---|---|")
    for name in CURVES:
        for count in SEEDS:
            print(row(name, count, asked), flush=True)
