"""The recipe for conda-forge says what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import rollbook

ROOT = Path(__file__).resolve().parents[2]
IN_CONDA = {"duckdb": "python-duckdb"}


def test_the_recipe_has_the_version_and_the_dependencies_of_the_package() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert recipe["context"]["version"] == rollbook.__version__
    (program,) = project["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(program)]
    lowest: dict[str, str] = {"python": project["requires-python"]}
    for line in project["dependencies"]:
        found = re.match(r"([\w-]+)(>=[\d.]+)", line)
        assert found is not None, line
        lowest.setdefault(IN_CONDA.get(found[1], found[1]), found[2])  # of two for some Pythons the first is lower
    assert dict(line.split(" ", 1) for line in recipe["requirements"]["run"]) == lowest
