"""`rollbook demo`: opens a run or resumes one, lets the agent learn, and shows what was recorded.

    from rollbook.demo.train import main
    main(seed=3)                    # a new run in runs/cartpole
    main(resume="")                 # continues where the newest unfinished one stopped

The training loop is in loop.py.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import rollbook
from rollbook.demo.loop import CONFIG, GOAL, train
from rollbook.system.optional import need

PROJECT, NAME = "cartpole", "ppo"


def main(
    seed: int | None = None, resume: str | None = None, *, steps: int | None = None, dir: str | Path = "runs"
) -> int:
    """The command `rollbook demo`: train, then print where the run is, what is in it and which commands to try next.

    Args:
      seed: of agent and environments; None counts up from run to run, so that two demos are two different runs.
      resume: the id of an unfinished demo run, or "" for the newest; None starts a new one.
      steps: environment steps to train for; default 100,000.
      dir: the folder of runs.
    Returns:
      The exit status: 0, or 130 after Ctrl-C; then the run is closed as killed, and the command to resume it is
        printed.
    Raises:
      SystemExit: there is no run to go on with, or it is finished.
      MissingExtra: gymnasium is not installed.
    """
    need("gymnasium", extra="gym", why="rollbook demo")
    root = Path(dir)
    run = _begin(root, seed, steps) if resume is None else _continue(root, resume, steps)
    dir_option = "" if str(root) == "runs" else f" --dir {shlex.quote(str(root))}"
    folder = shlex.quote(_short(run.folder))
    print(f"{'Going on with' if run.resumed else 'Recording'} {folder}  (Ctrl-C stops it, safely)")
    try:
        with run:
            mean = train(run)
    except KeyboardInterrupt:
        print(f"\nStopped. What was logged is safe in {folder}")
        print(f"Go on from its last checkpoint with:  {_command()} demo --resume{dir_option}")
        return 130
    verdict = "solved" if mean >= GOAL else f"not solved, {GOAL:.0f} is the goal: try another --seed or more --steps"
    episodes = run.config["evaluation_episodes"]
    print(f"\nCartPole-v1: mean return {mean:.1f} over {episodes} evaluation episodes: {verdict}.")
    print(f"The book of this run is the folder {folder}\n")
    show = ["show", _short(run.folder)]
    print(f"$ {_command()} {shlex.join(show)}", flush=True)
    subprocess.run([sys.executable, "-c", "from rollbook.cli import main; main()", *show], check=False, timeout=120)
    print(f"\n{_what_next(dir_option)}")
    return 0


_QUICK_STEPS = 40_000
"""Environment steps for each of several seeds: enough to compare them, and quick."""


def several(seeds: int, *, steps: int | None = None, dir: str | Path = "runs") -> int:
    """Train one run for each of several seeds, one after the other, and name the commands that compare them.

    Args:
      seeds: how many; they are 0, 1, 2 …
      steps: environment steps of each; default 40,000.
      dir: the folder of runs.
    Returns:
      The exit status: 0, or 130 after Ctrl-C.
    Raises:
      MissingExtra: gymnasium is not installed.
    """
    need("gymnasium", extra="gym", why="rollbook demo")
    root = Path(dir)
    dir_option = "" if str(root) == "runs" else f" --dir {shlex.quote(str(root))}"
    means = []
    for seed in range(seeds):
        run = _begin(root, seed, steps or _QUICK_STEPS)
        folder = shlex.quote(_short(run.folder))
        print(f"Seed {seed}, {seed + 1} of {seeds}: {folder}  (Ctrl-C stops here, safely)", flush=True)
        try:
            with run:
                means.append(train(run))
        except KeyboardInterrupt:
            print(f"\nStopped. What was logged is safe in {folder}")
            return 130
    listed = ", ".join(f"{mean:.0f}" for mean in means)
    print(f"\nCartPole-v1, mean return of the last evaluation by seed: {listed}\n")
    print(_what_next_of_several(seeds, max(1, (steps or _QUICK_STEPS) // 2), dir_option))
    return 0


def _begin(root: Path, seed: int | None, steps: int | None) -> rollbook.Run:
    config = CONFIG if steps is None else {**CONFIG, "env_steps": steps}
    seed = len(list((root / PROJECT).glob(f"{NAME}-*"))) if seed is None else seed
    total = {"env_step": config["env_steps"]}
    return rollbook.init(PROJECT, NAME, seed=seed, config=config, total=total, dir=root, tags=["demo"])


def _continue(root: Path, which: str, steps: int | None) -> rollbook.Run:
    """Open the next attempt of the run `which`, or of the newest unfinished one."""
    books = _demos(root)
    wanted = [book for book in books if (book.id == which if which else book.status != "finished")]
    if not wanted or wanted[-1].status == "finished":
        asked = f"the run {which!r}" if which else "the newest unfinished run"
        candidates = ", ".join(f"{book.id} ({book.status})" for book in books) or "no run"
        raise SystemExit(
            f"rollbook demo --resume: asked for {asked} in {root / PROJECT}, found {candidates}. "
            "Start one with: rollbook demo"
        )
    config = None if steps is None else {**wanted[-1].config, "env_steps": steps}  # an attempt has all settings
    total = None if steps is None else {"env_step": steps}
    return rollbook.init(PROJECT, NAME, dir=root, resume="allow", run_id=wanted[-1].id, config=config, total=total)


def _demos(root: Path) -> list[rollbook.Book]:
    """The runs of this demo under `root`, oldest first."""
    if not (root / PROJECT).is_dir():
        return []
    books = [book for book in rollbook.open(root) if book.project == PROJECT and book.name == NAME]
    return sorted(books, key=lambda book: book.info.created or 0.0)


def _short(folder: Path) -> str:
    """A folder as one would type it in the working folder."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def _command() -> str:
    """The program as one would paste it into a shell here."""
    own = Path(sys.executable).absolute().with_name("rollbook")
    if shutil.which("rollbook") is None and own.exists():  # an environment that is not activated, as in `make demo`
        return shlex.quote(_short(own))
    return "rollbook"


def _what_next_of_several(seeds: int, shorter: int, dir_option: str) -> str:
    command = _command()
    return "\n".join(
        (
            "What to try next:",
            f"  {command} ls --metric test/return=best --sort -test/return{dir_option}",
            f"  {command} plot {PROJECT} --key test/return --text{dir_option}",
            f"  {command} plot {PROJECT} --key test/return -o curves.png{dir_option}",
            f"  {command} demo --seeds {seeds} --steps {shorter}{dir_option}",
            f"  {command} compare {PROJECT} --metric test/return --by config.env_steps{dir_option}",
            f"  {command} report {PROJECT} -o report.html{dir_option}",
        )
    )


def _what_next(dir_option: str) -> str:
    command = _command()
    return "\n".join(
        (
            "What to try next:",
            f"  {command} ui{dir_option}",
            f"  {command} ls{dir_option}",
            f"  {command} sql last 'select max(\"test/return\") from metrics'{dir_option}",
            f"  {command} plot last --key test/return --text{dir_option}",
            f"  {command} demo --seeds 5{dir_option}",
            f"  {command} export last --table episodes -o episodes.csv{dir_option}",
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
