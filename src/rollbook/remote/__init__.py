"""Remotes: stores and folders outside this machine's run folders. The commit protocol, the stores, and reading from
them."""

from __future__ import annotations

from rollbook.remote.opening import claim, open_remote
from rollbook.remote.remote import Remote, perform

__all__ = ["Remote", "claim", "open_remote", "perform"]
