"""An environment with rollbook-core alone: Python, msgspec and the sources of rollbook, nothing else to be imported."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

import rollbook

_SITE = """
import os, sys
own = os.path.dirname(os.path.abspath(__file__))
base = os.path.realpath(sys.base_prefix)
sys.path[:] = [own, *(path for path in sys.path if os.path.realpath(path).startswith(base) and "-packages" not in path)]
"""


def core_alone(folder: Path) -> dict[str, str]:
    """The environment variables for a Python process that finds msgspec and rollbook alone; `folder` is made."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_SITE)
    for package in (msgspec, rollbook):
        (folder / package.__name__).symlink_to(Path(package.__file__).parent)
    return {**os.environ, "PYTHONPATH": str(folder)}
