"""Shared by the sinks of tracking services: configurations as flat, plain values."""

from __future__ import annotations

from rollbook.values import flatten, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def flat_config(config: Mapping[str, object]) -> dict[str, object]:
    """The leaves of a configuration by path: numbers, truth values and text unchanged, everything else as text."""
    flat: dict[str, object] = {}
    for key, value in flatten(config):
        plain = value if isinstance(value, (str, bool)) else scalar_of(value)
        flat[key] = str(value) if plain is None else plain
    return flat
