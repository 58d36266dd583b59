"""Places where runs are kept besides this machine's folders: the commit protocol, stores, and reading from them."""

from __future__ import annotations

from rollbook.remote.opening import claim, open_place
from rollbook.remote.place import Place, perform

__all__ = ["Place", "claim", "open_place", "perform"]
