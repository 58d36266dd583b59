#!/usr/bin/env python3
"""Builds the package and tries it as a stranger would: what `make release-check` runs before a release.

    python scripts/release_check.py OUT        OUT: an empty folder for the built files and an environment

Builds sdist and wheel, checks their metadata, that the wheel holds the page, the type marker and the skill and nothing
that belongs to tests, and that both bear one version; installs the wheel alone into a new environment, records and
reads a run there, trains the demo, and asks the page for its first answer. Exit status 0 if all of it works.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_LINES = """
import rollbook
with rollbook.init("check", "wheel", sinks=[]) as run:
    for step in range(100):
        run.log({"train/return": float(step)}, env_step=step)
book = rollbook.open("runs").one("check/wheel")
assert book.status == "finished" and book.metrics(["train/return"]).num_rows == 100
print("recorded and read:", rollbook.__version__)
"""
PAGE = """
import json, re, subprocess, sys, urllib.request
page = subprocess.Popen([sys.executable, "-m", "rollbook", "ui", "--port", "0", "--no-browser"], stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, text=True)
try:
    for line in page.stdout:
        found = re.search(r"http://[^\\s]+", line)
        if found:
            break
    answer = urllib.request.urlopen(found.group(0).rstrip("."), timeout=30).read().decode()
    assert "<script" in answer, answer[:200]
    print("the page answers:", len(answer), "characters")
finally:
    page.kill()
"""


def main(out: Path) -> int:
    """Build and try; the exit status."""
    run(sys.executable, "-m", "build", "--outdir", str(out), str(ROOT))
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    for wanted in ("rollbook/py.typed", "rollbook/server/page/index.html", "rollbook/cli/skill/SKILL.md"):
        assert wanted in names, f"the wheel lacks {wanted}"
    strange = [name for name in names if re.match(r"(tests|benchmarks|dashboard)/", name) or name.endswith(".tmp")]
    assert not strange, f"the wheel holds {strange[:5]}"
    version = wheel.name.split("-")[1]
    assert sdist.name == f"rollbook-{version}.tar.gz", (sdist.name, wheel.name)
    with tarfile.open(sdist) as packed_sources:
        inside = {name.partition("/")[2] for name in packed_sources.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "Makefile", "pyproject.toml"} <= inside
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), f"CHANGELOG.md has no {version}"

    python = out / "env" / "bin" / "python"
    venv.create(out / "env", with_pip=True)
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel))
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-c", FIRST_LINES, cwd=folder)
        run(python, "-m", "rollbook", "ls", cwd=folder)
        run(python, "-c", PAGE, cwd=folder)
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[gym]")
        run(python, "-m", "rollbook", "demo", cwd=folder)
    print(f"{wheel.name} and {sdist.name} can be released; for recipe/recipe.yaml: sha256 {sha256(sdist)}")
    return 0


def sha256(file: Path) -> str:
    """Of the bytes of a file, in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(*command: str | Path, cwd: str | None = None) -> None:
    """Run a command without this checkout in reach; raises if it fails."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ROLLBOOK", "PYTHONPATH"))}
    subprocess.run([str(word) for word in command], check=True, cwd=cwd, env=clean)


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    sys.exit(main(target))
