"""The items seen before, in bounded memory: exact for the first million, then a filter with a known error rate.

Items are identified by a 64-bit fingerprint of their content. The first million are in an open-addressing table (12
bytes a slot); the chance that any two of a million different items share a fingerprint is 3e-8. Later ones go into a
Bloom filter of fixed size. It never forgets an item, but may take a new one for a known one; `error` is the chance of
that.
"""

from __future__ import annotations

import math
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_HASHES = 4
_MASK = (1 << 64) - 1
_SIZES = (1 << 12, 1 << 16, 1_500_000)
"""Slots of the tables; the last has room for a million at a load of two thirds."""


class Seen:
    """A growing set of 64-bit fingerprints, which also stores a number (the batch) for each exact one.

    Args:
      exact: how many fingerprints are stored exactly; None for all of them, in memory that grows by 18 to 36 bytes
        each.
      filter_bytes: the size of the filter for the others, a power of two.
    Attributes:
      count: number of different items among those that could be distinguished.
    """

    __slots__ = (
        "_batches",
        "_bits",
        "_earlier",
        "_exact_count",
        "_filter",
        "_here",
        "_keys",
        "_slots",
        "count",
        "exact",
        "filter_bytes",
    )

    def __init__(self, exact: int | None = 1_000_000, filter_bytes: int = 16 * 1024 * 1024) -> None:
        self.exact = exact
        self.filter_bytes = 1 << max(6, (int(filter_bytes) - 1).bit_length())
        self._bits = self.filter_bytes * 8
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.count = self._exact_count = self._here = 0
        self._filter: bytearray | None = None
        self._earlier: list[tuple[Any, Any, int]] = []
        self._table(_SIZES[0])

    def _table(self, slots: int) -> None:
        self._slots = slots
        self._keys: Any = array("Q", [0]) * slots
        self._batches: Any = array("I", [0]) * slots

    @property
    def filtered(self) -> int:
        """How many items are in the filter."""
        return self.count - self._exact_count

    @property
    def error(self) -> float:
        """The current chance that a new item is taken for a known one."""
        if self._filter is None:
            return self.count / 2**64
        return (1.0 - math.exp(-_HASHES * self.filtered / self._bits)) ** _HASHES

    @property
    def bytes(self) -> int:
        """Memory held by the tables and the filter."""
        slots = self._slots + sum(slots for _, _, slots in self._earlier)
        return 12 * slots + (self.filter_bytes if self._filter is not None else 0)

    def add(self, fingerprint: int, batch: int = 0) -> int:
        """Add an item. Returns -1 if it is new, else the batch in which it was first seen; -2 if that batch is unknown.

        Args:
          fingerprint: 0 <= fingerprint < 2**64.
          batch: a number below 2**32 to store.
        """
        key = fingerprint or 1  # 0 marks an empty slot
        for keys, batches, slots in self._earlier:
            at = (key * slots) >> 64
            while (there := keys[at]) != 0:
                if there == key:
                    return batches[at]  # type: ignore[no-any-return]
                at += 1
                if at == slots:
                    at = 0
        keys, slots = self._keys, self._slots
        at = (key * slots) >> 64
        while (there := keys[at]) != 0:
            if there == key:
                return self._batches[at]  # type: ignore[no-any-return]
            at += 1
            if at == slots:
                at = 0
        if self.exact is not None and self._exact_count >= self.exact:
            return self._add_filtered(key)
        keys[at] = key
        self._batches[at] = batch
        self._exact_count += 1
        self._here += 1
        self.count += 1
        if 3 * self._here > 2 * slots:
            self._grow()
        return -1

    def __contains__(self, fingerprint: int) -> bool:
        """Whether `add` would find it. Adds nothing."""
        key = fingerprint or 1
        for keys, slots in [*((keys, slots) for keys, _, slots in self._earlier), (self._keys, self._slots)]:
            at = (key * slots) >> 64
            while (there := keys[at]) != 0:
                if there == key:
                    return True
                at += 1
                if at == slots:
                    at = 0
        bits = self._filter
        return bits is not None and all(bits[byte] & bit for byte, bit in self._bit_positions(key))

    def _bit_positions(self, key: int) -> Iterator[tuple[int, int]]:
        """The (byte, bit) positions of a fingerprint in the filter."""
        # Two independent halves of a scrambled fingerprint give the four bits (Kirsch and Mitzenmacher).
        mixed = (key * 0x9E3779B97F4A7C15 + 0x7F4A7C15) & _MASK
        mixed ^= mixed >> 32
        step = (mixed * 0xD6E8FEB86659FD93 & _MASK) >> 32 | 1
        mask = self._bits - 1
        for _ in range(_HASHES):
            bit = mixed & mask
            yield bit >> 3, 1 << (bit & 7)
            mixed += step

    def _grow(self) -> None:
        """Make room. Only small tables are moved (at most 15 ms); next to a large one, a second table is opened."""
        keys, batches, slots = self._keys, self._batches, self._slots
        if slots >= _SIZES[-1]:
            if self.exact is None or self._exact_count < self.exact:
                self._earlier.append((keys, batches, slots))
                self._table(slots * 2)
                self._here = 0
            return
        self._table(next(size for size in _SIZES if size > slots))
        slots, new_keys, new_batches = self._slots, self._keys, self._batches
        for key, batch in zip(keys, batches, strict=True):
            if key:
                at = (key * slots) >> 64
                while new_keys[at]:
                    at += 1
                    if at == slots:
                        at = 0
                new_keys[at] = key
                new_batches[at] = batch

    def _add_filtered(self, key: int) -> int:
        bits = self._filter
        if bits is None:
            bits = self._filter = bytearray(self.filter_bytes)
        known = True
        for byte, bit in self._bit_positions(key):
            there = bits[byte]
            if not there & bit:
                bits[byte] = there | bit
                known = False
        if known:
            return -2
        self.count += 1
        return -1
