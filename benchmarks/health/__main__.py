"""Health rules on trainings with known faults: which rule speaks of which fault, and how often of none.

python -m benchmarks.health --make FOLDER     the whole set, 5 algorithms x their faults x 5 seeds, 10 healthy seeds
python -m benchmarks.health --make FOLDER --cut        shorter, 2 seeds, 4 healthy ones, SAC healthy alone: minutes
python -m benchmarks.health --score FOLDER    the matrix rule x fault as text, with 95 % intervals (Wilson)

Making needs torch, stable-baselines3 and gymnasium. The trainings are recorded as anybody's would be, without rules;
scoring shows their rows to the rules, some at a time, as the keeper does. `silent` depends on the machine and is not
among them. Other tools can be scored on the same folders: each run's config names algorithm, fault and seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.health.scoring import score
from benchmarks.health.training import make


def main() -> None:
    """Make or score."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.health", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__
    )
    parser.add_argument("--make", type=Path, metavar="FOLDER")
    parser.add_argument("--score", type=Path, metavar="FOLDER")
    parser.add_argument("--cut", action="store_true", help="the shorter version")
    parser.add_argument("--only", default="", help="algorithms and faults, comma-separated")
    given = parser.parse_args()
    if given.make:
        make(given.make, given.cut, [word for word in given.only.split(",") if word])
    if given.score:
        print(score(given.score))
    if not given.make and not given.score:
        parser.error("--make FOLDER, --score FOLDER, or both")


if __name__ == "__main__":
    main()
