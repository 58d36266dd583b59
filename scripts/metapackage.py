#!/usr/bin/env python3
"""Writes the sources of the distribution `rollbook`: no code, but rollbook-core of the same version and all packages.

    python scripts/metapackage.py ROLLBOOK_CORE.whl OUT        then: python -m build OUT

All code is in rollbook-core, so two distributions never own one file: neither removing one of them nor upgrading one
alone can leave half of the code behind. pyproject.toml is that of rollbook-core; this makes the other one of it, with
the same extras, so that `pip install 'rollbook[gym]'` works.
"""

from __future__ import annotations

import email
import json
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OF_A_CHECKOUT = {"full", "contract", "dev", "docs", "page"}
"""Extras that `rollbook` does not have: it is the first, and the others are for those who change it."""


def fields(project: dict[str, Any], version: str) -> dict[str, Any]:
    """The table [project] of `rollbook`, of that of rollbook-core."""
    extras = project["optional-dependencies"]
    same = ("description", "license", "license-files", "authors", "requires-python", "keywords", "classifiers")
    return {
        "name": "rollbook",
        "version": version,
        "readme": "README.md",
        **{name: project[name] for name in same},
        "dependencies": [f"rollbook-core=={version}", *extras["full"]],
        "optional-dependencies": {
            name: [line.replace("rollbook-core[", "rollbook[") for line in lines]
            for name, lines in extras.items()
            if name not in OF_A_CHECKOUT
        },
    }


def write(wheel: Path, out: Path) -> None:
    """Write pyproject.toml, README.md and LICENSE; version and description are those of the built rollbook-core."""
    with zipfile.ZipFile(wheel) as packed:
        (about,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        core = email.message_from_bytes(packed.read(about))
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    table = fields(whole["project"], core["Version"])
    out.mkdir(parents=True)
    text = [
        "[build-system]",
        *(f"{name} = {_toml(value)}" for name, value in whole["build-system"].items()),
        "[project]",
        *(f"{name} = {_toml(value)}" for name, value in table.items()),
        "[tool.hatch.build.targets.wheel]",
        "bypass-selection = true",
    ]
    (out / "pyproject.toml").write_text("\n".join(text) + "\n", encoding="utf-8")
    (out / "README.md").write_text(str(core.get_payload(decode=True), "utf-8"), encoding="utf-8")
    shutil.copy(ROOT / "LICENSE", out / "LICENSE")


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # a JSON string is a TOML string


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]).resolve())
