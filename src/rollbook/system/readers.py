"""Loads the packages for reading and sealing; if one is missing or broken, the error names it and what to do.

Entry modules (`rollbook.book.book`, `rollbook.storage.sealing.folder`) import this first. The training process does not
need it.
"""

from __future__ import annotations

from importlib import import_module

from rollbook.errors import MissingExtra
from rollbook.system.optional import core_alone


def _load(*modules: str) -> None:
    for module in modules:
        try:
            import_module(module)
        except ImportError as err:
            if (missing := core_alone("reading or sealing a run", err)) is not None:
                raise missing from None
            raise MissingExtra(
                f"reading and sealing runs need {module}, which does not load here: {err}. Found: "
                f"{_versions(modules)}. Install versions that fit each other: pip install --upgrade rollbook. What was "
                "logged is safe; after that, rollbook repair seals it"
            ) from err


def _versions(packages: tuple[str, ...]) -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


_load("numpy", "pyarrow")
