"""Scores of several tasks on one scale, and groups that have no point of the axis in common."""

from __future__ import annotations

from typing import Any

from rollbook import stats

__all__ = ["no_common_point", "scale_of"]


def scale_of(tasks: tuple[str, ...], normalise: Any) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """{task: (worth 0, worth 1)}, {} to leave scores as they are."""
    if normalise is None:
        several = len(tasks) > 1
        return {}, [
            f"Scores of {len(tasks)} tasks are not on one scale. Say normalise={{task: (random, human)}}."
        ] if several else []
    return dict(zip(tasks, stats.anchors_of(tasks, normalise), strict=True)), []


def no_common_point(a: str, of_a: tuple[float, float], b: str, of_b: tuple[float, float], axis: str) -> str:
    """The sentence about two groups, each with its first and last point."""
    return (
        f"{a} was measured from {of_a[0]:.6g} to {of_a[1]:.6g} {axis}, {b} from {of_b[0]:.6g} to {of_b[1]:.6g}: no "
        "common point, nothing is compared."
    )
