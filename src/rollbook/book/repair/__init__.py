"""Checks run folders and repairs them."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.repair.doctor import repair as repair
    from rollbook.book.repair.doctor import verify as verify
    from rollbook.book.repair.joining import join as join
    from rollbook.storage import seal as seal

__all__ = ["join", "repair", "seal", "verify"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.book.repair.doctor": ("repair", "verify"),
        "rollbook.book.repair.joining": ("join",),
        "rollbook.storage": ("seal",),
    },
)
