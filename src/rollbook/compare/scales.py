"""Scores of several tasks on one scale, and groups without a common point of the axis."""

from __future__ import annotations

from typing import Any

from rollbook import stats


def scale_of(tasks: tuple[str, ...], normalise: Any) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """{task: (score worth 0, score worth 1)}; {} to leave scores unchanged."""
    if normalise is None:
        several = len(tasks) > 1
        return {}, [
            f"Scores of {len(tasks)} tasks are not on one scale. Say normalise={{task: (random, human)}}."
        ] if several else []
    return dict(zip(tasks, stats.anchors_of(tasks, normalise), strict=True)), []


def no_common_point(a: str, of_a: tuple[float, float], b: str, of_b: tuple[float, float], axis: str) -> str:
    """The message about two groups without a common point, with the first and last point of each."""
    return (
        f"{a} was measured from {of_a[0]:.6g} to {of_a[1]:.6g} {axis}, {b} from {of_b[0]:.6g} to {of_b[1]:.6g}: no "
        "common point, nothing is compared."
    )
