"""Health rules on trainings with known faults: which rule speaks of which fault, how soon, and how often of none.

python -m benchmarks.health --make FOLDER              the part on which rules are made; --cut a fifth of it
python -m benchmarks.health --make FOLDER --hold-out   the part for the end, of other seeds
python -m benchmarks.health --score FOLDER             the matrix rule x fault with counts and 95 % intervals
python -m benchmarks.health --score FOLDER --hold-out  of the part that is held out
python -m benchmarks.health --score FOLDER --after     each after five healthy trainings of the same settings
python -m benchmarks.health --score FOLDER --write docs  both, in health-matrix.md and between the marks of health.md;
                                                       their scores are kept in benchmarks/health/scores.jsonl.gz
python -m benchmarks.health --kept --write docs        the same from these scores; no rule is asked
python -m benchmarks.health --ceiling FOLDER           what an oracle could name that knows the healthy returns of each
                                                       task, beside what the rules name (of the kept scores)
python -m benchmarks.health --ship FOLDER              the healthy trainings of rollbook.testing.measure_rule
python -m benchmarks.health --runs FOLDER --to RUNS    run folders of the trainings in FOLDER, of project "health"
python -m benchmarks.health --peers FOLDER             other monitors on the held-out part (needs ray and SB3)
python -m benchmarks.health --make FOLDER --sb3        healthy trainings of Stable-Baselines3 (needs it, and torch)

The trainings are PPO, A2C, DQN and SAC in the shape of CleanRL's single files and GRPO on a language model of a few
tokens, all in numpy: seconds of one core each, some seeds side by side. Each becomes a file of JSON Lines: what was
trained, then its rows, so that other tools can be scored, too. A
training is healthy or harmed by the return it reached, not by what was done to it. `silent` is about the machine and
is not scored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.health.scoring import PARTS, RARE, keep, kept, matrix, report, score
from benchmarks.health.training import make, ship

_BEGIN = "<!-- made by python -m benchmarks.health -->\n"
_KEPT = Path(__file__).with_name("scores.jsonl.gz")


def main() -> None:
    """Make or score."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.health", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__
    )
    parser.add_argument("--make", type=Path, metavar="FOLDER")
    parser.add_argument("--score", type=Path, metavar="FOLDER")
    parser.add_argument("--kept", action="store_true", help="write from the scores that are kept")
    parser.add_argument("--ceiling", type=Path, metavar="FOLDER", help="what an oracle of the returns could name")
    parser.add_argument("--ship", type=Path, metavar="FOLDER", help="write rollbook's healthy trainings for tests")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="make run folders of its trainings")
    parser.add_argument("--to", type=Path, metavar="RUNS", default=Path("runs"), help="where --runs makes them")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="what other monitors say of the held-out part")
    parser.add_argument("--cut", action="store_true", help="one seed of each fault, two healthy ones of each task")
    parser.add_argument("--sb3", action="store_true", help="healthy trainings of Stable-Baselines3")
    parser.add_argument("--only", default="", help="algorithms, tasks and faults, comma-separated")
    parser.add_argument("--hold-out", action="store_true", help="make or score what is held out; else the rest")
    parser.add_argument("--all", action="store_true", help="score all trainings")
    parser.add_argument("--after", action="store_true", help="each after five healthy ones of the same settings")
    parser.add_argument("--without-rare", action="store_true", help=f"as if nobody had logged {', '.join(RARE)}")
    parser.add_argument("--write", type=Path, metavar="DOCS", help="write the scores of both parts into its pages")
    parser.add_argument("--verbose", action="store_true", help="print each false page and each fault that was missed")
    given = parser.parse_args()
    if given.make and given.sb3:
        from benchmarks.health.sb3 import make_healthy

        make_healthy(given.make)
    elif given.make:
        make(given.make, given.hold_out, given.cut, [word for word in given.only.split(",") if word])
    if given.runs:
        from benchmarks.health.runs import make_runs

        print(f"{make_runs(given.runs, given.to)} runs in {given.to}")
    if given.peers:
        from benchmarks.health.peers import table

        print(table(given.peers))
    if given.ceiling:
        from benchmarks.health.ceiling import ceiling

        for part, (hold_out, without, after) in PARTS.items():
            if hold_out is given.hold_out and after and not without:
                print(f"{part}:\n\n{ceiling(given.ceiling, kept(_KEPT)[part])}")
    if given.ship:
        from rollbook.testing.healthy import PATH

        print(f"{ship(given.ship, PATH)} trainings in {PATH}")
    if given.score and given.write:
        both = {how[:2]: score(given.score, *how[:2]) for how in PARTS.values()}
        scored = {part: runs for part, how in PARTS.items() if (runs := both[how[:2]][how[2]])}
        keep({**kept(_KEPT), **scored}, _KEPT)
    if given.write and (given.score or given.kept):
        matrices, health = given.write / "health-matrix.md", given.write / "health.md"
        before, begin, rest = health.read_text().partition(_BEGIN)
        old, end, after = rest.partition("<!-- end -->\n")
        counts, page = report(kept(_KEPT), old, matrices.read_text())
        matrices.write_text(page)
        health.write_text(f"{before}{begin}{counts}{end}{after}")
    elif given.score:
        runs = score(given.score, None if given.all else given.hold_out, RARE if given.without_rare else ())[
            given.after
        ]
        print(matrix(runs))
        for run in runs if given.verbose else ():
            if run.said if run.fault == "healthy" else run.is_harmful and not run.named():
                print(f"{run.name} ({run.config['outcome']}): {'; '.join(run.messages) or 'nothing said'}")
    asked = (given.make, given.score, given.runs, given.peers, given.ceiling, given.ship, given.kept and given.write)
    if not any(asked):
        parser.error("--make, --score, --runs, --peers, --ceiling, --ship with a FOLDER, or --kept --write DOCS")


if __name__ == "__main__":
    main()
