"""The states of the random number generators of a process, as JSON text, and back.

    text = dumps(take({"env": generator}))
    problems = restore(loads(text), {"env": generator})

Supported: Python's `random`, numpy's legacy global generator, torch's on the CPU and on CUDA devices in use, and any
`numpy.random.Generator`, `numpy.random.RandomState` or `random.Random` by name. Libraries that the process has not
loaded are not touched. JAX keeps its keys in the training state.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from rollbook.system.guard import handled_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def take(generators: Mapping[str, object] | None = None) -> dict[str, object]:
    """The current states by library; those of named generators under "generators"."""
    states: dict[str, object] = {}
    random = sys.modules.get("random")
    if random is not None:
        states["python"] = random.getstate()
    numpy = sys.modules.get("numpy")
    if numpy is not None:  # its generators load at first use, maybe after this checkpoint
        states["numpy"] = numpy.random.get_state(legacy=False)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = bytes(torch.get_rng_state().tolist())
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_initialized():
            states["torch_cuda"] = [bytes(state.tolist()) for state in cuda.get_rng_state_all()]
    if generators:
        states["generators"] = {str(name): _state_of(generator) for name, generator in generators.items()}
    return states


def restore(states: Mapping[str, Any], generators: Mapping[str, object] | None = None) -> list[str]:
    """Restore the states of the generators; each part separately.

    Args:
      generators: the objects whose states were taken under these names; their state is set in place.
    Returns:
      What could not be restored and why, one sentence each.
    """
    problems: list[str] = []

    def attempt(name: str, setting: Any) -> None:
        what = f"the random state of {name} could not be set"
        # a state of another version or a forged one; a library that is gone
        with handled_by(lambda err: problems.append(f"{what} ({type(err).__name__}: {err})"[:300])):
            setting()

    if "python" in states:
        attempt("python", lambda: _set_python(states["python"]))
    if "numpy" in states:
        attempt("numpy", lambda: _set_numpy(states["numpy"]))
    if "torch" in states:
        attempt("torch", lambda: _set_torch(states["torch"]))
    if "torch_cuda" in states:
        attempt("torch on CUDA", lambda: _set_cuda(states["torch_cuda"]))
    named = states.get("generators") or {}
    for name, generator in (generators or {}).items():
        if name in named:
            attempt(name, lambda generator=generator, name=name: _set_generator(generator, named[name]))
        else:
            problems.append(f"the checkpoint holds no random state of {name!r}; it has {sorted(named) or 'none'}")
    return problems


def dumps(states: Mapping[str, object]) -> str:
    """The states as JSON text. Arrays and bytes are base64 with their type; tuples are lists."""
    return json.dumps(states, default=_to_json, separators=(",", ":"))


def loads(text: str | None) -> dict[str, object]:
    """The states in a JSON text; empty for None, "" and JSON that is not an object.

    Raises:
      ValueError: it is not JSON, or an array in it is inconsistent.
    """
    states = json.loads(text, object_hook=_from_json) if text else {}
    return states if isinstance(states, dict) else {}


def _state_of(generator: Any) -> object:
    bits = getattr(generator, "bit_generator", None)
    if bits is not None:
        return bits.state
    if hasattr(generator, "getstate"):
        return generator.getstate()
    return generator.get_state(legacy=False)


def _set_generator(generator: Any, state: Any) -> None:
    bits = getattr(generator, "bit_generator", None)
    if bits is not None:
        bits.state = state
    elif hasattr(generator, "setstate"):
        generator.setstate(_python_state(state))
    else:
        generator.set_state(state)


def _set_python(state: object) -> None:
    import random

    random.setstate(_python_state(state))


def _python_state(state: Any) -> tuple[object, ...]:
    version, words, gauss = state
    return version, tuple(words), gauss


def _set_numpy(state: Any) -> None:
    import numpy

    numpy.random.set_state(state)


def _set_torch(state: bytes) -> None:
    import torch

    torch.set_rng_state(torch.tensor(list(state), dtype=torch.uint8))


def _set_cuda(states: list[bytes]) -> None:
    import torch

    if torch.cuda.device_count() != len(states):
        raise RuntimeError(f"{len(states)} devices then, {torch.cuda.device_count()} now")
    torch.cuda.set_rng_state_all([torch.tensor(list(state), dtype=torch.uint8) for state in states])


def _to_json(value: Any) -> object:
    from base64 import b64encode

    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if hasattr(value, "dtype") and value.shape:
        return {"base64": b64encode(value.tobytes()).decode(), "dtype": value.dtype.str, "shape": list(value.shape)}
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a random state holds a {type(value).__name__}")


def _from_json(value: Mapping[str, Any]) -> object:
    if "base64" not in value:
        return value
    from base64 import b64decode

    data = b64decode(value["base64"], validate=True)
    if "dtype" not in value:
        return data
    import numpy

    dtype = numpy.dtype(str(value["dtype"]))
    return numpy.frombuffer(data, dtype).reshape(value["shape"]).copy()
