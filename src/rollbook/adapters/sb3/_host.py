"""Stable-Baselines3's classes if it is installed, else equivalent ones; the supported versions."""

from __future__ import annotations

from rollbook.adapters import _versions
from rollbook.errors import MissingExtra
from rollbook.system.optional import to_install

TYPE_CHECKING = False

SUPPORTED = ">=2.3,<3"
"""The versions whose logger and callbacks this adapter supports."""

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50

VERSION = _versions.installed("stable-baselines3")
"""The installed version, or None."""

if VERSION is not None:
    _versions.check("stable-baselines3", VERSION, SUPPORTED)

if TYPE_CHECKING or VERSION is None:
    from rollbook.adapters.sb3.interfaces import (
        Figure,
        HParam,
        Image,
        KVWriter,
        SeqWriter,
        Video,
    )
else:
    from stable_baselines3.common.logger import (
        Figure,
        HParam,
        Image,
        KVWriter,
        SeqWriter,
        Video,
    )

__all__ = [
    "DEBUG",
    "DISABLED",
    "ERROR",
    "INFO",
    "SUPPORTED",
    "VERSION",
    "WARN",
    "Figure",
    "HParam",
    "Image",
    "KVWriter",
    "SeqWriter",
    "Video",
    "excluded_from",
    "require",
]


def require(why: str) -> None:
    """Raise MissingExtra, with the pip command, if Stable-Baselines3 is not installed."""
    if VERSION is None:
        raise MissingExtra(
            f"{why} needs stable-baselines3 {SUPPORTED}, which is not installed: pip install {to_install('sb3')}"
        )


def excluded_from(excluded: object, *names: str) -> bool:
    """Whether a key's exclusion (None, one name, or a collection of names) names one of these formats."""
    if not excluded:
        return False
    words = (excluded,) if isinstance(excluded, str) else tuple(excluded) if hasattr(excluded, "__iter__") else ()
    return any(name in words for name in names)
