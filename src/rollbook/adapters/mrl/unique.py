"""Whether a sample was seen before, asked without taking it in."""

from __future__ import annotations

from typing import Any

from rollbook.capture._content import Contentless, canonical, fingerprint

__all__ = ["is_seen", "print_of"]

_HASHES = 4
_MASK = (1 << 64) - 1


def print_of(item: Any) -> int | None:
    """The fingerprint under which `run.log_samples` knows an item; None if it is known by none."""
    if isinstance(item, str):
        return fingerprint(item.encode("utf-8", "surrogatepass"))
    if isinstance(item, (bytes, bytearray, memoryview)):
        return fingerprint(bytes(item), b"bytes")
    try:
        return fingerprint(canonical(item), b"item")
    except (Contentless, RecursionError):
        return None


def is_seen(seen: Any, item: Any) -> bool:
    """Whether a `capture._seen.Seen` holds `item`: what its `add` would find, without adding."""
    key = print_of(item)
    if key is None:
        return False
    key = key or 1
    for keys, slots in [*((keys, slots) for keys, _, slots in seen._earlier), (seen._keys, seen._slots)]:
        at = (key * slots) >> 64
        while (there := keys[at]) != 0:
            if there == key:
                return True
            at += 1
            if at == slots:
                at = 0
    bits = seen._filter
    if bits is None:
        return False
    mixed = (key * 0x9E3779B97F4A7C15 + 0x7F4A7C15) & _MASK
    mixed ^= mixed >> 32
    step = (mixed * 0xD6E8FEB86659FD93 & _MASK) >> 32 | 1
    for _ in range(_HASHES):
        place = mixed & (seen._bits - 1)
        if not bits[place >> 3] & (1 << (place & 7)):
            return False
        mixed += step
    return True
