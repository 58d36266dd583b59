"""Remotes: stores and folders outside this machine's run folders. The commit protocol, the stores, and reading from
them."""

from __future__ import annotations

from rollbook.remote.opening import claim, open_place
from rollbook.remote.place import Place, perform

__all__ = ["Place", "claim", "open_place", "perform"]
