#!/usr/bin/env python3
"""Environments in which the real frameworks run, one per group of pins that go together, and their tests.

    python scripts/framework_env.py --list             groups, and whether each is ready
    python scripts/framework_env.py main rllib         make .venvs/main and .venvs/rllib (cached)
    python scripts/framework_env.py --allow-missing    make all, and name those that cannot be made
    python scripts/framework_env.py --test             make what is missing, then run tests/frameworks, group by group
    python scripts/framework_env.py --test main -- -k sb3     only one group; what follows -- goes to pytest
    python scripts/framework_env.py --test -- -m core         of each group only the short training that stands for it
    python scripts/framework_env.py --test --allow-missing    name the environments that cannot be made, test the others
    python scripts/framework_env.py --test --minutes 12       begin no group after that; name those that were left out

One environment cannot hold all frameworks: their pins contradict each other. torch goes in first; pip fetches it, so
that the wheel pip is told of (a local one, or `PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu`) is the one
used. The rest is resolved by uv, because only uv has overrides for pins that are stricter than they need to be.

A test file in tests/frameworks says which groups it runs in by a line `GROUPS = ("main",)`; it is run by the
interpreter of each of them, with this checkout's `src` on the path. Standard library only: nothing has to be installed
to run this file.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venvs"
TESTS = ROOT / "tests" / "frameworks"

TORCH = "torch==2.13.0"
OURS = ("msgspec", "numpy", "pyarrow", "duckdb")
"""What rollbook itself needs; rollbook is not installed, its sources are put on the path."""
TOOLS = ("pytest>=8", "pytest-timeout")


@dataclass(frozen=True)
class Group:
    """One environment.

    Attributes:
      packages: requirements, resolved together with rollbook's own and the test tools.
      overrides: requirements that replace whatever any package demands.
      bare: requirements installed afterwards without their dependencies.
      torch: whether torch is needed.
      modules: what must import for the environment to count as made.
      checkout: a folder of $ROLLBOOK_UPSTREAM that its tests need; without it the group is named as not tested.
      python: the interpreter's minor version the group's wheels exist for, None for the one that runs this file.
    """

    packages: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    torch: bool = True
    modules: tuple[str, ...] = ()
    checkout: str = ""
    python: str | None = None


GROUPS: dict[str, Group] = {
    "main": Group(
        packages=(
            "stable-baselines3>=2.9,<2.10",
            "sb3-contrib>=2.9,<2.10",
            "tianshou>=2.0,<2.1",
            "dm-acme==0.2.4",
            "gymnasium[classic-control]>=1.2,<1.3",
            "tensorboard>=2.20",
            "tensorboardX>=2.6",
            "pandas>=2.2",
            "matplotlib",
            "scipy",
        ),
        modules=("stable_baselines3", "tianshou", "acme", "gymnasium", "tensorboard", "tensorboardX", "pandas"),
    ),
    # The documented names of its trainers and loggers; it wants a numpy of before.
    "tianshou1": Group(
        packages=("tianshou>=1.2,<2", "tensorboard>=2.20", "pandas>=2.2", "pyarrow<22"),
        modules=("tianshou", "tensorboard"),
    ),
    # 0.4.0 imports `launchpad`, which cannot be had everywhere and which loops, observers and loggers do not use:
    # tests put an empty module of that name in sys.modules before they import acme.
    "acme": Group(
        packages=("dm-env", "dm-tree", "absl-py", "typing-extensions", "pandas", "gymnasium"),
        bare=("dm-acme==0.4.0",),
        torch=False,
        modules=("dm_env", "tree"),
    ),
    # An agent of dm-acme itself. Those with a replay buffer (DQN, SAC, …) need dm-reverb, which needs a TensorFlow of
    # 2023, and dm-launchpad, whose wheels end at Python 3.10; behaviour cloning learns from given transitions.
    # dm-acme 0.4.0 is of 2022: the newest JAX that it runs with, but for two names that its tests put back.
    "acmejax": Group(
        packages=(
            "jax[cpu]==0.4.20",
            "dm-haiku==0.0.11",
            "optax==0.1.9",
            "chex<0.1.87",
            "rlax<0.2",
            "tensorflow-probability<0.24",
            "scipy<1.12",
            "numpy<2",
            "gym<0.27",
            "pillow",
            "dm-env",
            "dm-tree",
            "absl-py",
            "typing-extensions",
            "pandas<3",
            "pyarrow<22",
        ),
        bare=("dm-acme==0.4.0",),
        torch=False,
        modules=("dm_env", "haiku", "optax", "tensorflow_probability"),
    ),
    "lightzero": Group(
        packages=("DI-engine==0.5.3", "LightZero==0.2.0", "tensorboard", "pandas"),
        overrides=("setuptools>=60", "numpy<2.3", "gym==0.25.1"),
        modules=("ding", "lzero", "zoo"),
    ),
    "mrl": Group(
        packages=("mrl-pypi==0.1.5", "pandas<2", "pyarrow<22"),  # later ones need numpy 2
        overrides=("setuptools>=60,<81", "numpy<2", "pandas<2"),
        modules=("torch", "pandas", "rdkit"),
    ),
    # Its repository is on no registry: tests look for a checkout in $ROLLBOOK_SPINNINGUP. mpich brings mpiexec.
    "spinningup": Group(
        packages=("mpi4py>=4", "mpich", "joblib", "scipy", "pandas", "gymnasium[classic-control]>=1.2,<1.3"),
        modules=("torch", "mpi4py.MPI", "gymnasium", "joblib"),
    ),
    "rllib": Group(
        packages=(
            "ray[rllib,tune]==2.60.0",
            "gymnasium[classic-control]>=1.2,<1.3",
            "tensorboardX>=2.6",
            "pandas",
            "pillow",  # videos of episodes; TensorBoard images of its own logger
            "obstore",  # with moto: the store of `python -m benchmarks.scale`
            "moto[server]>=5.1",
        ),
        modules=("ray.rllib", "ray.tune", "gymnasium"),
    ),
    # gymnasium before and after its statistics of vectors were mended: "main" and "rllib" hold releases in between.
    "gym100": Group(packages=("gymnasium[classic-control]==1.0.0",), torch=False, modules=("gymnasium",)),
    "gym110": Group(packages=("gymnasium[classic-control]>=1.1,<1.2",), torch=False, modules=("gymnasium",)),
    "gym122": Group(packages=("gymnasium[classic-control]==1.2.2",), torch=False, modules=("gymnasium",)),
    "data": Group(
        packages=(
            "minari[hdf5]>=0.5.4,<0.6",
            "pettingzoo>=1.27,<1.28",
            "mpe2>=1.1",
            "gymnasium[classic-control]>=1.4",
            "pillow",
        ),
        torch=False,
        modules=("minari", "h5py", "pettingzoo", "mpe2", "gymnasium"),
    ),
    # LeRobot asks for a torch and a torchvision of before. Only the Python part of torchvision is needed. Where numbers
    # are asked for it writes arrays of one element, which numpy 2.4 no longer takes.
    "lerobot": Group(
        packages=("lerobot==0.4.4", "gymnasium>=1.2"),
        overrides=("torchvision==0.28.0", "numpy<2.4"),
        modules=("torch", "datasets", "huggingface_hub"),
    ),
    "trackers": Group(
        packages=("wandb>=0.31,<0.32", "mlflow-skinny>=3.17,<3.18", "trackio>=0.43,<0.44"),
        torch=False,
        modules=("wandb", "mlflow", "trackio"),
    ),
    # Tools that write runs, for their importers. Aim has no wheel for Python 3.13.
    "formats": Group(
        packages=(
            "aim>=3.29,<3.30",
            "swanlab>=0.10.3,<0.11",
            "goodseed>=0.4,<0.5",
            "mlflow-skinny>=3.17,<3.18",  # Aim brings the SQLAlchemy that its database needs
            "pandas",
        ),
        torch=False,
        modules=("aim", "swanlab", "goodseed", "mlflow", "sqlalchemy"),
    ),
    "neptune": Group(
        packages=("neptune==1.14.0", "setuptools<81", "gymnasium[classic-control]>=1.2,<1.3"),
        torch=False,
        modules=("neptune", "gymnasium"),
    ),
    # TRL and transformers ask for no particular torch; the override keeps the CPU wheel that pip was told of.
    "trl": Group(
        packages=("trl>=1.16,<1.17", "transformers", "pandas", "wandb>=0.31,<0.32"),
        modules=("torch", "transformers", "trl"),
    ),
    # Its training needs a serving engine (vLLM or SGLang) and GPUs: only its logger and its dumps are tested.
    # Its trainers import packages that it does not ask for.
    "verl": Group(
        packages=("verl==0.9.1", "TransferQueue>=0.1.10", "cachetools", "uvicorn", "fastapi"),
        modules=("verl.utils.tracking", "verl.trainer.ppo.ray_trainer", "verl.trainer.ppo.v1.trainer_base"),
    ),
    # Adapters of one file each, for packages whose pins go together.
    "loggers": Group(
        packages=(
            "lightning>=2.6,<2.7",
            "pytorch-lightning>=2.6,<2.7",
            "rsl-rl-lib>=5.5,<5.6",
            "optuna>=5,<6",
            "hydra-core>=1.3,<1.4",
            "wandb>=0.31,<0.32",
        ),
        modules=("lightning", "pytorch_lightning", "rsl_rl.runners", "optuna", "hydra"),
    ),
    # Libraries of loops whose loggers are joined by adapters of one file. d3rlpy pins a gymnasium of before; rl_games
    # asks for the old gym beside it.
    "loops": Group(
        packages=(
            "skrl>=2.1,<2.2",
            "rl-games>=1.6.5,<1.7",
            "d3rlpy>=2.8,<2.9",
            "torchrl",
            "elements>=3.22",
            "tensorboard",
            "tensorboardX",
            "wandb>=0.31,<0.32",
        ),
        overrides=("gymnasium>=1.2,<1.3",),
        modules=("skrl", "rl_games.torch_runner", "d3rlpy", "torchrl", "elements", "gymnasium"),
    ),
    # The part of PufferLib that is on the registry as a wheel; its advantage kernel needs CUDA, its loop does not.
    # It calls wandb.util.generate_id, which wandb 0.31 no longer has.
    "puffer": Group(
        packages=("pufferlib-core==3.0.23", "gymnasium[classic-control]>=1.2,<1.3", "wandb>=0.21,<0.22"),
        modules=("pufferlib.pufferl", "gymnasium"),
    ),
    # CleanRL is a repository of single files; they want a gymnasium of before, and that a numpy of before.
    "cleanrl": Group(
        packages=(
            "gymnasium[classic-control]==0.29.1",
            "tyro",
            "tensorboard>=2.20",
            "wandb>=0.31,<0.32",
            "numpy<2",
            "pyarrow<22",
        ),
        modules=("gymnasium", "tyro", "tensorboard", "wandb"),
        checkout="cleanrl",
    ),
    # Stoix is on no registry. Its own list names six repositories; these are the packages that its DQN needs.
    "stoix": Group(
        packages=(
            "jax[cpu]>=0.6",
            "gymnax<0.1",
            "stoa-env>=0.1,<0.2",
            "flashbax",
            "distrax",
            "rlax",
            "jumanji",
            "orbax-checkpoint",
            "tfp-nightly",
            "hydra-core>=1.3,<1.4",
            "colorama",
            "rich",
            "pandas",
            "neptune<2",
            "wandb",
            "tensorboard_logger",
            "setuptools<81",
        ),
        torch=False,
        modules=("jax", "stoa", "flashbax", "gymnax"),
        checkout="Stoix",
    ),
    # Numbers only: what rollbook.stats is compared with. Its own pins are older than what it needs.
    "rliable": Group(
        packages=("rliable>=1.2,<1.3", "pandas<3", "arch<8", "scipy", "colorama"),
        bare=("id-marl-eval==0.0.4",),  # its pins are of 2022; what it makes of a file needs colorama alone
        torch=False,
        modules=("rliable.metrics", "marl_eval.utils.data_processing_utils"),
    ),
    # What shows recorded episodes: half a gigabyte, for rerun-sdk brings its viewer.
    "viewers": Group(packages=("mcap>=1.2,<2", "rerun-sdk>=0.41,<1"), torch=False, modules=("mcap.reader", "rerun")),
    # 1.8 gigabytes: TensorFlow alone.
    "tensorflow": Group(
        packages=("tensorflow-cpu>=2.21,<2.22", "tensorboard>=2.20", "click"),
        torch=False,
        modules=("tensorflow", "tensorboard"),
    ),
    "jax": Group(packages=("jax[cpu]>=0.6", "keras>=3.15,<3.16"), torch=False, modules=("jax",)),
    # Brax 0.14 uses what JAX has taken out since.
    "brax": Group(packages=("jax[cpu]>=0.6,<0.8", "brax>=0.14,<0.15"), torch=False, modules=("brax",)),
}


class Failed(SystemExit):
    """Ends the program with a sentence."""


def say(text: str) -> None:
    """Progress goes to stderr, at once."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def interpreter(name: str) -> Path:
    """The interpreter of an environment, whether or not it exists yet."""
    return HOME / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp_of(group: Group) -> str:
    """Changes when anything that decides the environment's contents changes."""
    text = json.dumps([repr(group), TORCH, OURS, TOOLS, sys.version_info[:2]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_ready(name: str) -> bool:
    """Whether the environment exists and was made from today's pins."""
    stamp = HOME / name / "rollbook-env.json"
    try:
        return bool(json.loads(stamp.read_text())["stamp"] == stamp_of(GROUPS[name])) and interpreter(name).exists()
    except (OSError, ValueError, KeyError):
        return False


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """One builder per environment at a time; a second one waits and then finds the work done."""
    HOME.mkdir(exist_ok=True)
    with (HOME / f"{name}.lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # Windows: builders are not run side by side there
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


DEADLINE = [float("inf")]
"""When to give up making environments, by time.monotonic()."""


def call(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command; on failure, or after a quarter of an hour at most, show what it said and stop."""
    words = [str(word) for word in command]
    seconds = max(0.0, min(900.0, DEADLINE[0] - time.monotonic()))
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"this command did not end within {seconds:.0f} s:\n  {' '.join(words)}") from None
    if done.returncode:
        tail = (done.stdout + done.stderr)[-6000:]
        raise Failed(f"this command failed with status {done.returncode}:\n  {' '.join(words)}\n{tail}")


def find_uv(python: Path) -> Path:
    """uv from the path, from beside this interpreter, or freshly installed into the environment."""
    beside = Path(sys.executable).parent
    found = (
        shutil.which("uv") or shutil.which("uv", path=str(beside)) or shutil.which("uv", path=str(ROOT / ".venv/bin"))
    )
    if found:
        return Path(found)
    call(python, "-m", "pip", "install", "-q", "uv")
    return python.parent / "uv"


def version_of(python: Path, package: str) -> str:
    """The installed version, local part included ("2.13.0+cpu")."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def torch_wheel(python: Path) -> Path:
    """The wheel that pip finds, fetched once. From it uv links the files into each environment; pip copies them."""
    folder = HOME / ".wheels" / f"{TORCH}-py{sys.version_info.major}{sys.version_info.minor}"
    if not any(folder.glob("torch-*.whl")):
        call(python, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, TORCH)
    return next(folder.glob("torch-*.whl"))


def build(name: str) -> Path:
    """Make the environment unless it is there; return its interpreter."""
    group, python = GROUPS[name], interpreter(name)
    if group.checkout and not (Path(os.environ.get("ROLLBOOK_UPSTREAM", "")) / group.checkout).is_dir():
        raise Failed(f"{group.checkout} is on no registry: put a checkout into $ROLLBOOK_UPSTREAM/{group.checkout}")
    with alone(name):
        if is_ready(name):
            return python
        began = time.monotonic()
        say(f"{name}: making {python.parent.parent.relative_to(ROOT)} …")
        shutil.rmtree(HOME / name, ignore_errors=True)
        call(sys.executable, "-m", "venv", HOME / name)
        overrides = list(group.overrides)
        if group.torch:
            call(find_uv(python), "pip", "install", "-q", "--python", python, torch_wheel(python))
            overrides.append(f"torch=={version_of(python, 'torch')}")
        install(python, [*group.packages, *OURS, *TOOLS], overrides)
        for requirement in group.bare:
            call(python, "-m", "pip", "install", "-q", "--no-deps", requirement)
        for module in group.modules:
            call(python, "-c", f"import {module}")
        seconds = round(time.monotonic() - began, 1)
        stamp = {"stamp": stamp_of(group), "python": sys.version.split()[0], "seconds": seconds}
        (HOME / name / "rollbook-env.json").write_text(json.dumps(stamp, indent=1) + "\n")
        say(f"{name}: ready after {seconds} s")
    return python


def install(python: Path, requirements: Sequence[str], overrides: Sequence[str]) -> None:
    """Resolve and install everything at once."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "overrides.txt"
        file.write_text("\n".join(overrides) + "\n")
        extra = ["--override", str(file)] if overrides else []
        call(find_uv(python), "pip", "install", "-q", "--python", python, *extra, *requirements)


def groups_of(path: Path) -> tuple[str, ...]:
    """The groups a test file names in its `GROUPS = (…)` line, read without importing the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "GROUPS" for t in node.targets):
            names = ast.literal_eval(node.value)
            unknown = [n for n in names if n not in GROUPS]
            if unknown:
                raise Failed(f"{path.name}: GROUPS names {unknown[0]!r}; there are {', '.join(GROUPS)}")
            return tuple(names)
    raise Failed(f"{path.name} has no line GROUPS = (…): say in which environments it runs ({', '.join(GROUPS)})")


def run_tests(
    wanted: Sequence[str], pytest_args: Sequence[str], *, allow_missing: bool = False, minutes: float = float("inf")
) -> int:
    """Run every test file of tests/frameworks with the interpreters of its groups; 0 if all passed.

    Two groups are tested at a time, while the next environment is made: most trainings and installers keep one core
    busy. What a group prints comes when it is done, or at once if it is the only one. An environment that cannot be
    made ends everything, or, where that is allowed, is named at the end with the reason, and its tests are not run; so
    are the groups whose turn has not come after `minutes`.
    """
    files: dict[str, list[Path]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in groups_of(path):
            if not wanted or name in wanted:
                files.setdefault(name, []).append(path)
    worst, told, missing = 0, [], {}
    DEADLINE[0] = time.monotonic() + minutes * 60
    with ThreadPoolExecutor(1) as builder, ThreadPoolExecutor(2) as testers:
        made = {name: builder.submit(build, name) for name in files}
        done = {
            name: testers.submit(_tested, name, made[name], paths, pytest_args, len(files) == 1)
            for name, paths in files.items()
        }
        for name, result in done.items():
            try:
                tested = result.result()
            except (Failed, OSError, subprocess.SubprocessError) as error:
                missing[name] = str(error)
                if allow_missing:
                    continue
                builder.shutdown(cancel_futures=True)
                testers.shutdown(cancel_futures=True)
                raise
            if tested is None:
                missing[name] = f"Its turn had not come after {minutes:g} minutes."
                continue
            status, seconds = tested
            word = {0: "passed", 5: "no test chosen"}.get(status, "FAILED")  # 5: a -k or -m matched nothing here
            told.append(f"{name:<10} {word} {seconds:6.1f} s")
            if status not in (0, 5):
                worst = status
    say("\n== frameworks\n" + "\n".join(told))
    for name, reason in missing.items():
        say(f"\n{name:<10} NOT TESTED. {reason}")
    left = f": {', '.join(missing)}" if missing else ""
    say(f"\nframeworks: {len(told)} of {len(files)} groups tested, {len(missing)} not{left}")
    return worst


def _tested(
    name: str, made: Future[Path], paths: Sequence[Path], pytest_args: Sequence[str], live: bool
) -> tuple[int, float] | None:
    """Test one group when its environment is made: exit status and seconds; None if its turn came too late."""
    if time.monotonic() > DEADLINE[0]:
        made.cancel()
        return None
    python = made.result()
    began = time.monotonic()
    title = f"\n== {name}: {len(paths)} files"
    if live:
        say(title)
    status, printed = test_group(name, python, paths, pytest_args, live)
    if not live:
        say(f"{title}\n{printed}")
    return status, time.monotonic() - began


def test_group(
    name: str, python: Path, paths: Sequence[Path], pytest_args: Sequence[str], live: bool
) -> tuple[int, str]:
    """Run these test files in one environment: pytest's exit status and what it printed, unless it went out live."""
    env = dict(os.environ, PYTHONPATH=str(ROOT / "src"), ROLLBOOK_FRAMEWORK_GROUP=name)
    env.setdefault("OMP_NUM_THREADS", "1")  # small networks; several threads on a busy machine wait for each other
    # The project's own pytest options name plugins that these environments do not hold.
    command = [python, "-m", "pytest", "-c", TESTS / "pytest.ini", "--rootdir", ROOT, *pytest_args, *paths]
    done = subprocess.run(
        [str(c) for c in command],
        cwd=ROOT,
        env=env,
        check=False,
        stdout=None if live else subprocess.PIPE,
        stderr=None if live else subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode, done.stdout or ""


def main(argv: Sequence[str]) -> int:
    """Parse, act, return the exit status."""
    ours, _, theirs = (list(argv), None, []) if "--" not in argv else _split(argv)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"some of {', '.join(GROUPS)} (none: all)")
    parser.add_argument("--list", action="store_true", help="show the groups and stop")
    parser.add_argument("--test", action="store_true", help="run the tests of these groups after making them")
    parser.add_argument(
        "--allow-missing", action="store_true", help="an environment that cannot be made is named and no failure"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no group after that")
    parser.add_argument("--force", action="store_true", help="make the environments anew")
    args = parser.parse_args(ours)
    for name in args.groups:
        if name not in GROUPS:
            parser.error(f"there is no group {name!r}; there are {', '.join(GROUPS)}")
    if args.list:
        for name in GROUPS:
            say(f"{name:<10} {'ready' if is_ready(name) else 'not made':<9} {interpreter(name).relative_to(ROOT)}")
        return 0
    if args.force:
        for name in args.groups or GROUPS:
            shutil.rmtree(HOME / name, ignore_errors=True)
    if args.test:
        return run_tests(args.groups, theirs, allow_missing=args.allow_missing, minutes=args.minutes)
    DEADLINE[0] = time.monotonic() + args.minutes * 60
    for name in args.groups or GROUPS:
        try:
            build(name)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            if not args.allow_missing:
                raise
            say(f"{name}: NOT MADE. {error}")
    return 0


def _split(argv: Sequence[str]) -> tuple[list[str], str, list[str]]:
    at = list(argv).index("--")
    return list(argv[:at]), "--", list(argv[at + 1 :])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
