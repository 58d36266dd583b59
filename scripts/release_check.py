#!/usr/bin/env python3
"""Builds both distributions and tries them as a stranger would: what `make release-check` runs before a release.

    python scripts/release_check.py OUT        OUT: an empty folder for the built files and the environments

Builds sdist and wheel of rollbook-core, and of rollbook, which has no code (scripts/metapackage.py). Checks their
metadata, that the wheel holds the page, the type marker and the skill and nothing that belongs to tests, and that all
bear one version. Then, in new environments: rollbook-core alone records a run; `pip install rollbook` beside it reads
that run, records and reads one more, trains the demo and shows the page; without rollbook everything still works, as
all files are rollbook-core's. Prints the sizes. Exit status 0 if all of it works.
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

from metapackage import write

ROOT = Path(__file__).resolve().parents[1]
RECORD = """
import sys, rollbook
with rollbook.init("check", sys.argv[1], sinks=["jsonl"]) as run:
    for step in range(100):
        run.log({"train/return": float(step)}, env_step=step)
    run.save_checkpoint({"step": 100}, env_step=99)
beyond = {name.partition(".")[0] for name in sys.modules} & {"numpy", "pyarrow", "click", "duckdb", "scipy"}
assert not beyond, beyond
print("recorded:", rollbook.__version__, run.bill()["keeper"]["troubles"])
"""
REFUSED = """
import rollbook
try:
    rollbook.open("runs")
except rollbook.errors.MissingExtra as err:
    print("refused:", err)
else:
    raise SystemExit("rollbook.open works with rollbook-core alone")
"""
READ = """
import sys, rollbook
book = rollbook.open("runs").one("check/" + sys.argv[1])
assert book.status == "finished" and book.metrics(["train/return"]).num_rows == 100
print("read:", book.name, book.problems())
"""
PAGE = """
import json, re, subprocess, sys, urllib.request
page = subprocess.Popen([sys.executable, "-m", "rollbook", "ui", "--port", "0", "--no-open"], stdout=subprocess.PIPE,
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
IMPORT = "import time; t = time.process_time(); import rollbook; rollbook.init; print(time.process_time() - t)"


def main(out: Path) -> int:
    """Build and try; the exit status."""
    core, sdist = build(ROOT, out / "core")
    write(core, out / "sources")
    full, full_sdist = build(out / "sources", out / "full")
    run(sys.executable, "-m", "twine", "check", "--strict", core, sdist, full, full_sdist)
    names = check_files(core, sdist, full)
    check_recipe()

    with tempfile.TemporaryDirectory() as folder:
        python = environment(out / "alone", core)
        run(python, "-c", RECORD, "alone", cwd=folder)
        run(python, "-c", REFUSED, cwd=folder)
        said = subprocess.run([out / "alone/bin/rollbook", "ls"], capture_output=True, text=True, cwd=folder)
        assert said.returncode == 1, said
        assert "pip install 'rollbook-core[full]'" in said.stderr, said
        seconds = min(float(subprocess.check_output([python, "-c", IMPORT], cwd=folder)) for _ in range(5))
        alone = mebibytes(out / "alone")

        run(python, "-m", "pip", *QUIETLY, "--find-links", core.parent, full)
        for name in ("alone", "full"):
            if name == "full":
                run(python, "-c", RECORD, name, cwd=folder)
            run(python, "-c", READ, name, cwd=folder)
        run(python, "-m", "rollbook", "repair", "check/alone", cwd=folder)
        run(python, "-c", READ, "alone", cwd=folder)
        run(python, "-m", "rollbook", "ls", cwd=folder)
        run(python, "-c", PAGE, cwd=folder)
        whole = mebibytes(out / "alone")
        run(python, "-m", "pip", *QUIETLY, "--find-links", core.parent, f"{full}[gym]")
        run(python, "-m", "rollbook", "demo", cwd=folder)
        run(python, "-m", "pip", "uninstall", "-qy", "rollbook")
        run(python, "-c", READ, "full", cwd=folder)  # its files are rollbook-core's
    size, whole_size = (file.stat().st_size // 1000 for file in (core, full))
    print(
        f"rollbook-core: {size:,} kB, {len(names)} files, {alone:.1f} MiB with msgspec, imported in "
        f"{seconds * 1000:.0f} ms of processor time; rollbook: {whole_size:,} kB, {whole:.0f} MiB with all packages.\n"
        f"{core.name}, {full.name} and their sdists can be released; for recipe/recipe.yaml: sha256 {sha256(sdist)}"
    )
    return 0


QUIETLY = ("install", "-q", "--disable-pip-version-check")


def build(sources: Path, out: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of a project."""
    run(sys.executable, "-m", "build", "--outdir", out, sources)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def check_files(core: Path, sdist: Path, full: Path) -> list[str]:
    """The names in the wheel of rollbook-core."""
    with zipfile.ZipFile(core) as packed:
        names = packed.namelist()
    for wanted in ("rollbook/py.typed", "rollbook/server/page/index.html", "rollbook/cli/skill/SKILL.md"):
        assert wanted in names, f"the wheel lacks {wanted}"
    strange = [name for name in names if re.match(r"(tests|benchmarks|dashboard)/", name) or name.endswith(".tmp")]
    assert not strange, f"the wheel holds {strange[:5]}"
    version = core.name.split("-")[1]
    assert sdist.name == f"rollbook_core-{version}.tar.gz", (sdist.name, core.name)
    assert full.name == f"rollbook-{version}-py3-none-any.whl", full.name
    with zipfile.ZipFile(full) as packed:
        own = [name for name in packed.namelist() if ".dist-info/" not in name]
    assert not own, f"rollbook has files of its own, which another version may not have: {own[:5]}"
    with tarfile.open(sdist) as packed_sources:
        inside = {name.partition("/")[2] for name in packed_sources.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "Makefile", "pyproject.toml"} <= inside
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), f"CHANGELOG.md has no {version}"
    return names


def check_recipe() -> None:
    """conda-forge's builder reads the recipe as these packages. It builds none: that needs packages of conda-forge."""
    from rattler_build import Stage0Recipe

    made = [each.recipe.package.name for each in Stage0Recipe.from_file(str(ROOT / "recipe/recipe.yaml")).render()]
    assert made == ["rollbook-core", "rollbook"], made


def environment(folder: Path, *packages: str | Path) -> Path:
    """The Python of a new environment with these packages."""
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", *QUIETLY, *packages)
    return folder / "bin" / "python"


def mebibytes(folder: Path) -> float:
    """The size of what is installed in an environment, without pip and setuptools, which come with it."""
    (place,) = folder.glob("lib/python*/site-packages")
    files = (path for path in place.rglob("*") if path.is_file() and path.relative_to(place).parts[0][:3] not in OF_PIP)
    return sum(path.stat().st_size for path in files) / 2**20


OF_PIP = ("pip", "set", "pkg", "_di")


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
