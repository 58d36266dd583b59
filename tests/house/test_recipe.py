"""The recipe for conda-forge and the distribution `rollbook` say what pyproject.toml, that of rollbook-core, says."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path

import yaml

import rollbook
from script_files import script

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
IN_CONDA = {"duckdb": "python-duckdb"}


def test_the_recipe_has_the_version_and_the_dependencies_of_both_packages() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == rollbook.__version__
    core, full = recipe["outputs"]
    (program,) = PROJECT["scripts"].items()
    assert core["build"]["python"]["entry_points"] == [" = ".join(program)]
    for output, lines in ((core, PROJECT["dependencies"]), (full, PROJECT["optional-dependencies"]["full"])):
        lowest: dict[str, str] = {"python": PROJECT["requires-python"]}
        if output is full:
            lowest["rollbook-core"] = "==${{ version }}"
        for line in lines:
            found = re.match(r"([\w-]+)(>=[\d.]+)", line)
            assert found is not None, line
            lowest.setdefault(IN_CONDA.get(found[1], found[1]), found[2])  # of two for some Pythons the first is lower
        assert dict(line.split(" ", 1) for line in output["requirements"]["run"]) == lowest


def test_rollbook_is_rollbook_core_of_its_own_version_with_all_packages_and_extras_and_no_file_of_code(
    tmp_path: Path,
) -> None:
    wheel = tmp_path / "core.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        about = f"Metadata-Version: 2.4\nVersion: {rollbook.__version__}\n\n# A page with ü"
        packed.writestr("rollbook_core-1.dist-info/METADATA", about)
    script("metapackage").write(wheel, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["LICENSE", "README.md", "pyproject.toml"]
    assert (tmp_path / "out" / "README.md").read_text("utf-8") == "# A page with ü"
    made = tomllib.loads((tmp_path / "out" / "pyproject.toml").read_text("utf-8"))["project"]
    assert (made["name"], made["version"]) == ("rollbook", rollbook.__version__)
    assert made["dependencies"] == [
        f"rollbook-core=={rollbook.__version__}",
        *PROJECT["optional-dependencies"]["full"],
    ]
    assert "scripts" not in made
    extras = PROJECT["optional-dependencies"]
    assert made["optional-dependencies"].keys() == extras.keys() - {"full", "contract", "dev", "docs", "page"}
    assert made["optional-dependencies"]["sb3"] == extras["sb3"]
    assert made["optional-dependencies"]["all"] == [line.replace("rollbook-core", "rollbook") for line in extras["all"]]


def test_rollbook_core_depends_on_msgspec_alone() -> None:
    assert [re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]] == ["msgspec"]  # type: ignore[index]
