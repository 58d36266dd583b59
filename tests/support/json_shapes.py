"""Whether an answer in JSON has the shape that `rollbook shapes` promises."""

from __future__ import annotations

from typing import Any

KINDS = {"text": (str,), "integer": (int, str), "number": (int, float, str), "boolean": (bool,)}
"""What may stand for a kind: numbers that JSON does not have are texts."""


def misfits(answer: Any, shape: Any, at: str = "answer") -> list[str]:
    """Where an answer differs from its shape, in words; empty if it fits."""
    if isinstance(shape, str):
        kind = shape.rstrip("?")
        if kind == "any" or (answer is None and shape.endswith("?")):
            return []
        fits = isinstance(answer, KINDS[kind]) and (kind == "boolean" or not isinstance(answer, bool))
        if isinstance(answer, str) and kind in ("integer", "number"):
            fits = answer in ("NaN", "Infinity", "-Infinity") or answer.lstrip("-").isdigit()
        return [] if fits else [f"{at}: {answer!r} is no {shape}"]
    if isinstance(shape, list):
        if not isinstance(answer, list):
            return [f"{at} is no list"]
        return [fault for n, item in enumerate(answer) for fault in misfits(item, shape[0], f"{at}[{n}]")]
    if not isinstance(answer, dict):
        return [f"{at} is no object"]
    known = {name.rstrip("?"): inner for name, inner in shape.items() if name != "*"}
    faults = [
        f"{at}.{name} is missing" for name in shape if name != "*" and not name.endswith("?") and name not in answer
    ]
    for name, value in answer.items():
        inner = known.get(name, shape.get("*"))
        faults += [f"{at}.{name} is not in the shape"] if inner is None else misfits(value, inner, f"{at}.{name}")
    return faults
