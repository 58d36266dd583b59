"""Makes the two pictures of docs/compare.md from simulated runs: `python scripts/compare_pictures.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rollbook import compare

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def main() -> None:
    """Five seeds of two algorithms; one seed of the second never starts to learn."""
    rng = np.random.default_rng(7)
    x = np.arange(0, 100_000, 500)
    groups: dict[str, dict[str, compare.RunCurve]] = {"ppo": {}, "dqn": {}}
    entries = []
    for seed in range(5):
        for name, top, start in (("ppo", 460.0, 25_000), ("dqn", 30.0 if seed == 4 else 330.0, 45_000)):
            rise = top / (1 + np.exp(-(x - start - rng.normal(0, 6_000)) / 9_000))
            y = np.clip(rise + rng.normal(0, 18, len(x)), 8, 500)
            groups[name][f"{name} {seed}"] = compare.RunCurve(x, y)
            entries.append(compare.Entry(name, f"{name} {seed}", seed, "", float(y[-20:].mean())))
    IMAGES.mkdir(exist_ok=True)
    curves = compare.curves(groups, key="test/return", axis="env_step", by="config.algo")
    curves.plot().save(IMAGES / "compare-curves.svg")
    answer = compare.compare(entries, metric="test/return", by="config.algo", how="mean of the last 10%")
    answer.plot().save(IMAGES / "compare-intervals.svg")


if __name__ == "__main__":
    main()
