"""Another machine for this process: files of the system that name it, with other content."""

from __future__ import annotations

import io
from typing import Any

import pytest

BOOT_ID, MACHINE_ID = "/proc/sys/kernel/random/boot_id", "/etc/machine-id"
STATUS, CGROUP = "/proc/self/status", "/proc/self/cgroup"


def system_file(monkeypatch: pytest.MonkeyPatch, path: str, content: str | None) -> None:
    """From now on the file has this content; None: it is missing."""
    before = open

    def opened(asked: Any, *how: Any, **options: Any) -> Any:
        if str(asked) != path:
            return before(asked, *how, **options)
        if content is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        mode = how[0] if how else options.get("mode", "r")
        return io.BytesIO(content.encode()) if "b" in mode else io.StringIO(content)

    monkeypatch.setattr("builtins.open", opened)
