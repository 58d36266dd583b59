"""The hook of hatch that makes the description on a package index of README.md.

An index shows one file, so what leads to other files of the repository is left out: pictures go, links become words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^<picture>\n.*?^</picture>\n+", re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r"^!\[[^\]]*\]\((?![a-z]+:)[^)]*\)\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:|#)[^)]*\)")


def alone(text: str) -> str:
    """A page of the repository without what lies beside it."""
    return _LINK.sub(r"\1", _IMAGE.sub("", _PICTURE.sub("", text)))


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatch when it gathers the metadata of the package."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": alone(text)}
