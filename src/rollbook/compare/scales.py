"""Scores of several tasks on one scale, and groups without a common point of the axis."""

from __future__ import annotations

from typing import Any

from rollbook import stats
from rollbook.compare.facts import Fact


def scale_of(tasks: tuple[str, ...], normalise: Any) -> tuple[dict[str, tuple[float, float]], list[Fact]]:
    """{task: (score worth 0, score worth 1)}; {} to leave scores unchanged."""
    if normalise is None:
        return {}, [Fact("tasks not on one scale", values={"tasks": len(tasks)})] if len(tasks) > 1 else []
    return dict(zip(tasks, stats.anchors_of(tasks, normalise), strict=True)), []


def no_common_point(a: str, of_a: tuple[float, float], b: str, of_b: tuple[float, float], axis: str) -> Fact:
    """Two groups without a common point, with the first and last point of each."""
    return Fact("no common point", values={"a": a, "b": b, "span_a": of_a, "span_b": of_b, "axis": axis})
