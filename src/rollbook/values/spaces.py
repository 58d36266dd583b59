"""The spaces of an environment as JSON text, and back: exports need them after the environment is gone.

    describe(Box(-1, 1, (3,)))   ->   {"type": "Box", "low": -1.0, "high": 1.0, "shape": [3], "dtype": "float32"}

Reading executes nothing: the text only names spaces from the list below.
"""

from __future__ import annotations

import json

from rollbook.errors import Damaged
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 16


def describe(space: object) -> str:
    """`space` as JSON text; "" for an unknown kind of space."""
    plain = _plain(space)
    return "" if plain is None else json.dumps(plain)


def space_from(text: str) -> Any:
    """The gymnasium space that `describe` wrote.

    Raises:
      Damaged: the text does not describe a space.
      MissingExtra: gymnasium is not installed.
    """
    spaces = need("gymnasium", extra="gym", why="reading a space").spaces
    try:
        return _space(json.loads(text), spaces, 0)
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError) as err:
        raise Damaged(f"{text!r:.120} describes no space ({type(err).__name__}: {err})") from None


def _plain(space: Any, depth: int = 0) -> dict[str, Any] | None:
    kind = type(space).__name__
    if depth > _DEEPEST:
        return None
    if kind == "Box":
        return {
            "type": kind,
            "low": _bound(space.low),
            "high": _bound(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if kind == "Discrete":
        return {"type": kind, "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if kind == "MultiDiscrete":
        start = getattr(space, "start", None)
        described = {"type": kind, "nvec": space.nvec.tolist(), "dtype": str(space.dtype)}
        return described if start is None or not start.any() else {**described, "start": start.tolist()}
    if kind == "MultiBinary":
        return {"type": kind, "n": list(space.shape)}
    if kind == "Text":
        charset = "".join(sorted(space.character_set))
        return {"type": kind, "min_length": space.min_length, "max_length": space.max_length, "charset": charset}
    if kind == "Dict":
        return _nested(kind, dict(space.spaces.items()), depth)
    if kind in ("Tuple", "OneOf"):
        return _nested(kind, dict(enumerate(space.spaces)), depth)
    if kind == "Sequence":
        inside = _plain(space.feature_space, depth + 1)
        return (
            None if inside is None else {"type": kind, "space": inside, "stack": bool(getattr(space, "stack", False))}
        )
    if kind == "Graph":
        nodes = _plain(space.node_space, depth + 1)
        edges = None if space.edge_space is None else _plain(space.edge_space, depth + 1)
        return None if nodes is None else {"type": kind, "nodes": nodes, "edges": edges}
    return None


def _nested(kind: str, parts: dict[object, object], depth: int) -> dict[str, object] | None:
    inner = {name: _plain(part, depth + 1) for name, part in parts.items()}
    if None in inner.values():
        return None
    return {"type": kind, "spaces": list(inner.values()) if kind != "Dict" else inner}


def _bound(array: Any) -> object:
    """One number if all are equal, otherwise nested lists. Infinities become texts, because JSON has none."""
    flat = array.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return _number(flat[0].item())
    return [_number(value) for value in flat.tolist()]


def _number(value: object) -> object:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    return value


def _array(bound: object, shape: tuple[int, ...], dtype: str) -> object:
    import numpy

    if isinstance(bound, list):
        return numpy.array([_value(item, dtype) for item in bound], dtype=dtype).reshape(shape)
    return numpy.full(shape, _value(bound, dtype), dtype=dtype)


def _value(value: Any, dtype: str) -> object:
    if isinstance(value, str):
        return float(value)
    return int(value) if "int" in dtype else float(value)


def _space(plain: dict[str, Any], spaces: Any, depth: int) -> object:
    kind = plain["type"]
    if depth > _DEEPEST:
        raise ValueError("spaces nest too deeply")
    if kind == "Box":
        shape, dtype = tuple(plain["shape"]), plain["dtype"]
        low, high = _array(plain["low"], shape, dtype), _array(plain["high"], shape, dtype)
        return spaces.Box(low, high, shape, dtype=_dtype(dtype))
    if kind == "Discrete":
        return spaces.Discrete(plain["n"], start=plain["start"])
    if kind == "MultiDiscrete":
        import numpy

        nvec = numpy.array(plain["nvec"], dtype=numpy.int64)
        more = {"start": numpy.array(plain["start"], dtype=numpy.int64)} if "start" in plain else {}
        return spaces.MultiDiscrete(nvec, dtype=_dtype(plain["dtype"]), **more)
    if kind == "MultiBinary":
        return spaces.MultiBinary(plain["n"][0] if len(plain["n"]) == 1 else plain["n"])
    if kind == "Text":
        return spaces.Text(plain["max_length"], min_length=plain["min_length"], charset=plain["charset"])
    if kind == "Dict":
        return spaces.Dict({name: _space(part, spaces, depth + 1) for name, part in plain["spaces"].items()})
    if kind in ("Tuple", "OneOf"):
        return getattr(spaces, kind)([_space(part, spaces, depth + 1) for part in plain["spaces"]])
    if kind == "Sequence":
        return spaces.Sequence(_space(plain["space"], spaces, depth + 1), stack=plain["stack"])
    if kind == "Graph":
        edges = plain["edges"]
        return spaces.Graph(
            _space(plain["nodes"], spaces, depth + 1), None if edges is None else _space(edges, spaces, depth + 1)
        )
    raise ValueError(f"no space is called {kind!r}")


def _dtype(name: str) -> object:
    import numpy

    dtype = numpy.dtype(name)
    if dtype.kind not in "biuf":
        raise ValueError(f"no space holds values of type {name!r}")
    return dtype.type


def is_picture(value: Any) -> bool:
    """Whether `value` looks like one rendered frame: uint8, height x width (x 1, 3 or 4)."""
    if getattr(value, "dtype", None) is None or str(value.dtype) != "uint8":
        return False
    shape = tuple(value.shape)
    return min(shape[:2], default=0) >= 8 and (len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4)))
