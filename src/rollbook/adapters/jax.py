"""Logging from inside `jax.jit`, `lax.scan`, `lax.while_loop` and `lax.cond`.

    from rollbook.adapters.jax import log

    @jax.jit
    def train(state):
        def update(state, step):
            state, loss = improve(state)
            log(run, {"update/loss": loss}, gradient_step=step)     # one row each time this is reached
            return state, None
        return jax.lax.scan(update, state, jnp.arange(1_000))

The rows arrive while the computation runs, in order. Nothing is compiled again because of them: keys, texts and Python
numbers belong to the compiled function, arrays and clocks are its operands.
"""

from __future__ import annotations

import weakref
from functools import lru_cache

from rollbook.adapters import _versions
from rollbook.errors import BadInput
from rollbook.ground.bill import Bill
from rollbook.ground.foreign import handled_by
from rollbook.ground.values import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType
    from typing import Any

__all__ = ["SUPPORTED", "flush", "log"]

SUPPORTED = ">=0.4.31,<1"
"""The versions this adapter was written for."""

_Named = tuple[str, str]  # ("value" or "clock", its name)


def log(target: Any, values: Mapping[str, object], *, ordered: bool = True, **clocks: Any) -> None:
    """Append one row each time the computation comes by here.

    Outside of any transformation this is `target.log(values, **clocks)`. The first call waits, from then on, in the
    run's `finish()` for rows that are still under way (see `flush`).

    Args:
      target: a run or a scope. A compiled function goes on logging to the one it was traced with; the module
        `rollbook` itself stands for the run that is current when the row arrives.
      values: name -> number, 0-d array, text, or array (kept as a histogram); nested dicts are joined with "/".
      ordered: rows arrive in the order of the program. With False the compiler may reorder them, and it is allowed
        where JAX allows no order (`pmap`, several devices).
      clocks: numbers or traced 0-d arrays.
    Raises:
      BadInput: `target` is no run; while tracing: the call is mapped by `jax.vmap`, where one row would become many
        that nobody can tell apart.
      MissingExtra, UnsupportedVersion: JAX is not there, or not in a version of `SUPPORTED`.
    """
    jax = _jax()
    if not callable(getattr(target, "log", None)):
        raise BadInput(
            f"log({target!r:.100}, …): found a {type(target).__name__}, not a run. Pass what rollbook.init() returned, "
            "a scope of it, or the module rollbook for whichever run is current"
        )
    count = Bill(to=target if callable(getattr(target, "count", None)) else None)
    leaves = [(("value", name), value) for name, value in flatten(values)]
    leaves += [(("clock", name), value) for name, value in clocks.items()]
    traced = [value for _, value in leaves if isinstance(value, jax.core.Tracer)]
    if not traced and _is_eager(jax):
        target.log(values, **clocks)
        return
    _wait_at_end(target)
    static, shapes, operands = _sorted(leaves, count)
    _emit(_Arrived(target, static, shapes), ordered, operands)


def flush() -> None:
    """Wait until the rows of all computations that this thread has started have arrived."""
    _jax().effects_barrier()


@lru_cache(maxsize=1)
def _jax() -> ModuleType:
    _versions.require("jax", SUPPORTED, extra="jax", why="rollbook.adapters.jax")
    import jax

    loaded: ModuleType = jax
    return loaded


def _is_eager(jax: ModuleType) -> bool:
    """Whether no transformation is under way. Where JAX does not say, assume that one is: that is right, and slower."""
    clean = getattr(jax.core, "trace_state_clean", None)
    return bool(clean()) if clean is not None else False


class _Arrived:
    """What the computation calls: puts names and operands together again and logs them.

    Two of them are equal if they do the same, so that tracing again finds what was compiled before.
    """

    def __init__(
        self, target: Any, static: tuple[tuple[_Named, object], ...], groups: tuple[tuple[_Named, ...] | _Named, ...]
    ) -> None:
        self._target, self._static, self._groups = target, static, groups

    def _identity(self) -> tuple[object, ...]:
        return id(self._target), repr(self._static), self._groups

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrived) and self._identity() == other._identity()

    def __call__(self, *operands: object) -> None:
        """JAX calls this in a thread of its own; whatever went wrong here would end the computation."""
        import numpy as np

        with handled_by(_report, self._target):
            row: dict[str, object] = {}
            clocks: dict[str, object] = {}
            for (kind, name), value in self._static:
                (row if kind == "value" else clocks)[name] = value
            for names, operand in zip(self._groups, operands, strict=True):
                array = np.asarray(operand)
                if isinstance(names[0], str):  # an array by itself
                    row[str(names[1])] = array
                    continue
                for (kind, name), number in zip(names, array.tolist(), strict=True):
                    (row if kind == "value" else clocks)[name] = number
            self._target.log(row, **clocks)


def _report(target: object, err: Exception) -> None:
    from rollbook.errors import LoggingFailed

    if isinstance(err, LoggingFailed):  # strict=True asked for it
        raise err
    count = Bill(to=target if callable(getattr(target, "count", None)) else None)
    count("jax", message=f"a row from inside a JAX computation could not be logged: {type(err).__name__}: {err}")


def _sorted(
    leaves: list[tuple[_Named, object]], count: Bill
) -> tuple[tuple[tuple[_Named, object], ...], tuple[tuple[_Named, ...] | _Named, ...], list[object]]:
    """(what is known while tracing, the names of each operand, the operands).

    Numbers of one type travel together as one vector: each operand costs a transfer of its own.
    """
    import numpy as np
    from jax import numpy as jnp

    static: list[tuple[_Named, object]] = []
    vectors: dict[str, tuple[list[_Named], list[Any]]] = {}
    groups: list[tuple[_Named, ...] | _Named] = []
    operands: list[object] = []
    for named, value in leaves:
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
            value = value.item()
        if value is None or isinstance(value, (str, bool, int, float)):
            static.append((named, value))
            continue
        array = _as_array(named, value, count)
        if array is None:
            continue
        if array.size == 1 and (array.ndim == 0 or named[0] == "value"):
            names, numbers = vectors.setdefault(str(array.dtype), ([], []))
            names.append(named)
            numbers.append(array.reshape(()))
        elif named[0] == "clock":
            count("jax_clock", message=f"log({named[1]}=…): a clock is one number, not an array of shape {array.shape}")
        else:
            groups.append(named)
            operands.append(array)
    for names, numbers in vectors.values():
        groups.append(tuple(names))
        operands.append(jnp.stack(numbers))
    return tuple(static), tuple(groups), operands


def _as_array(named: _Named, value: Any, count: Bill) -> Any:
    """The value as an array of booleans, integers or floats that numpy knows too; None (counted) if it is none."""
    from jax import dtypes
    from jax import numpy as jnp

    try:
        array = value if hasattr(value, "aval") else jnp.asarray(value)
        if dtypes.issubdtype(array.dtype, dtypes.extended):
            raise TypeError(f"{array.dtype} holds no numbers")
        if array.dtype == bool or jnp.issubdtype(array.dtype, jnp.integer):
            return array
        if not jnp.issubdtype(array.dtype, jnp.floating):
            raise TypeError(f"{array.dtype} is not a kind of real number")
        return array.astype(jnp.float32) if jnp.finfo(array.dtype).bits < 32 else array  # exact
    except (TypeError, ValueError) as err:
        count(
            "unloggable",
            message=f"log({{{named[1]!r}: …}}) inside a JAX computation: a {type(value).__name__} cannot be logged "
            f"({err}); it was left out",
        )
        return None


def _emit(arrived: _Arrived, ordered: bool, operands: list[object]) -> None:
    """Let the computation call `arrived` with its operands, also where it is differentiated.

    `io_callback` is what JAX promises to run; but of a loop that is differentiated it leaves the callbacks out without
    a word, and only those of `jax.debug` stay.
    """
    import jax
    from jax.experimental import io_callback

    @jax.custom_jvp  # type: ignore[untyped-decorator, unused-ignore]
    def emit(*operands: object) -> tuple[()]:
        io_callback(arrived, None, *_not_mapped(operands), ordered=ordered)
        return ()

    @emit.defjvp  # type: ignore[untyped-decorator, unused-ignore]
    def differentiated(primals: tuple[object, ...], _tangents: object) -> tuple[tuple[()], tuple[()]]:
        # What is logged is looked at, not differentiated.
        jax.debug.callback(arrived, *_not_mapped(map(jax.lax.stop_gradient, primals)), ordered=ordered)
        return (), ()

    emit(*operands)


def _not_mapped(operands: Iterable[object]) -> list[object]:
    """The operands as they are. Mapped by `jax.vmap`, however far outside, it raises."""
    unmapped = tuple(operands)
    return list(_guard()(*unmapped)) if unmapped else []


@lru_cache(maxsize=1)
def _guard() -> Any:
    from jax.custom_batching import custom_vmap

    @custom_vmap  # type: ignore[untyped-decorator, unused-ignore]
    def guard(*operands: object) -> tuple[object, ...]:
        return operands

    @guard.def_vmap  # type: ignore[untyped-decorator, unused-ignore]
    def mapped(axis_size: int, *_: object) -> object:
        raise BadInput(
            f"rollbook.adapters.jax.log() was asked to log inside jax.vmap, found {axis_size} copies of the call: they "
            "would be rows of one run that nobody can tell apart. Return the values from the mapped function and log "
            "them outside: vmapped seeds with rollbook.siblings(n, seeds=…), whose log() takes arrays with the seed "
            "axis in front; vmapped environments as their mean or with run.log_many()"
        )

    return guard


_waited_for: weakref.WeakSet[object] = weakref.WeakSet()


def _wait_at_end(target: object) -> None:
    """Let the run's finish() wait for rows that are under way: JAX computes while the program has gone on."""
    run: Any = getattr(target, "run", None)
    if not callable(getattr(run, "on_finish", None)) or run in _waited_for:
        return
    _waited_for.add(run)

    def wait(status: str) -> None:
        if status == "finished":  # who is killed has no time to wait
            with handled_by(_report, run):  # a computation that failed; its own thread of the program hears of it
                flush()

    run.on_finish(wait)
