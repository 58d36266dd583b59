"""Scores of several tasks on one scale, and groups without a common point of the axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollbook import stats
from rollbook.compare.facts import Fact
from rollbook.errors import RollbookError


def scale_of(
    tasks: tuple[str, ...], normalise: Any, scores: Iterable[float] | None = None
) -> tuple[dict[str, tuple[float, float]], list[Fact]]:
    """{task: (score worth 0, score worth 1)}; {} to leave scores unchanged.

    Args:
      scores: all of them, if known; shares from 0 to 1 are on one scale already.
    """
    if normalise is not None:
        return dict(zip(tasks, stats.anchors_of(tasks, normalise), strict=True)), []
    if len(tasks) < 2 or (scores is not None and all(0 <= score <= 1 for score in scores)):
        return {}, []
    table = next((name for name in stats.REFERENCES if _has(name, tasks)), None)
    return {}, [Fact("tasks not on one scale", values={"tasks": len(tasks), "table": table})]


def _has(table: str, tasks: tuple[str, ...]) -> bool:
    try:
        stats.anchors_of(tasks, table)
    except RollbookError:
        return False
    return True


def no_common_point(a: str, of_a: tuple[float, float], b: str, of_b: tuple[float, float], axis: str) -> Fact:
    """Two groups without a common point, with the first and last point of each."""
    return Fact("no common point", values={"a": a, "b": b, "span_a": of_a, "span_b": of_b, "axis": axis})
