"""Which rows a file holds: ranges of sequence numbers, and what remains after others are taken away.

A cover is (table, writer, lane, group, first seq, last seq): the file holds all rows of that group from first to last.
Standard library only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Cover = tuple[str, str, int, str, int, int]
"""(table, writer, lane, group, first, last)"""

Held = dict[tuple[str, str, int, str], list[tuple[int, int]]]
"""(table, writer, lane, group) -> disjoint ranges, in order."""


def held_by(covers: Iterable[Cover]) -> Held:
    """The rows of all these covers."""
    held: Held = {}
    for table, writer, lane, group, first, last in covers:
        held.setdefault((table, writer, lane, group), []).append((first, last))
    for whose, ranges in held.items():
        ranges.sort()
        joined: list[tuple[int, int]] = []
        for first, last in ranges:
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        held[whose] = joined
    return held


def left_of(covers: Iterable[Cover], held: Mapping[tuple[str, str, int, str], list[tuple[int, int]]]) -> list[Cover]:
    """The parts of the covers that are not held."""
    left: list[Cover] = []
    for table, writer, lane, group, first, last in covers:
        at = first
        for begin, end in held.get((table, writer, lane, group), ()):
            if end < at:
                continue
            if begin > last:
                break
            if begin > at:
                left.append((table, writer, lane, group, at, begin - 1))
            at = end + 1
        if at <= last:
            left.append((table, writer, lane, group, at, last))
    return left


def are_inside(covers: Iterable[Cover], held: Mapping[tuple[str, str, int, str], list[tuple[int, int]]]) -> bool:
    """Whether all of the covers are held."""
    return not left_of(covers, held)


def contain(outer: Iterable[Cover], inner: Iterable[Cover]) -> bool:
    """Whether the outer covers contain every row of the inner ones."""
    return are_inside(inner, held_by(outer))


def overlap(some: Iterable[Cover], others: Iterable[Cover]) -> bool:
    """Whether any row may be in both."""
    held = held_by(others)
    for table, writer, lane, group, first, last in some:
        for begin, end in held.get((table, writer, lane, group), ()):
            if begin <= last and first <= end:
                return True
    return False
