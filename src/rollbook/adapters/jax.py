"""Logging from inside `jax.jit`, `lax.scan`, `lax.while_loop` and `lax.cond`.

    from rollbook.adapters.jax import log

    @jax.jit
    def train(state):
        def update(state, step):
            state, loss = improve(state)
            log(run, {"update/loss": loss}, gradient_step=step)     # one row each time this is reached
            return state, None
        return jax.lax.scan(update, state, jnp.arange(1_000))

For vmapped seeds, use sibling runs, one per seed: `log(siblings, …)` inside `jax.vmap` over the seeds.

Rows arrive in order while the computation runs. Logging causes no recompilation: keys, texts and Python numbers are
constants of the compiled function; arrays and clocks are its operands.
"""

from __future__ import annotations

import weakref
from functools import lru_cache

from rollbook.adapters import _versions
from rollbook.errors import BadInput
from rollbook.system.bill import Bill
from rollbook.system.guard import handled_by, ours
from rollbook.values import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType
    from typing import Any

__all__ = ["SUPPORTED", "flush", "log"]

SUPPORTED = ">=0.4.31,<1"
"""The versions of JAX that this adapter supports."""

_Named = tuple[str, str]  # ("value" or "clock", its name)


def log(target: Any, values: Mapping[str, object], *, ordered: bool = True, **clocks: Any) -> None:
    """Log one row each time the computation reaches this call.

    Outside of any transformation this is `target.log(values, **clocks)`. After the first traced call, the run's
    `finish()` waits for rows that have not arrived yet (see `flush`).

    Args:
      target: a run or a scope; or `rollbook.siblings`, inside a `jax.vmap` over their seeds: each gets its own row. A
        compiled function keeps logging to the target it was traced with. The module `rollbook` stands for the run that
        is current when the row arrives.
      values: name -> number, 0-d array, text, or array (kept as a histogram); nested dicts are joined with "/".
      ordered: rows arrive in program order. With False the compiler may reorder them; use it where JAX supports no
        order (`pmap`, several devices).
      clocks: numbers or traced 0-d arrays.
    Raises:
      BadInput: `target` is not a run. While tracing, also if the call is mapped by `jax.vmap` and `target` is not
        siblings, or their number differs from that of the copies.
      MissingExtra, UnsupportedVersion: JAX is not installed, or not in a version of `SUPPORTED`.
    """
    jax = _jax()
    if not callable(getattr(target, "log", None)):
        raise BadInput(
            f"log({target!r:.100}, …): found a {type(target).__name__}, not a run. Pass what rollbook.init() returned, "
            "a scope of it, or the module rollbook for whichever run is current"
        )
    count = _bill(target)
    leaves: list[tuple[_Named, object]] = []
    with handled_by(_report, target):
        leaves = [(("value", name), value) for name, value in flatten(values)]
    leaves += [(("clock", name), value) for name, value in clocks.items()]
    traced = [value for _, value in leaves if isinstance(value, jax.core.Tracer)]
    if not traced and _is_eager(jax):
        with handled_by(_report, target):  # None is no row
            target.log(values, **clocks)
        return
    _wait_at_end(target)
    static, shapes, operands = _sorted(leaves, count)
    axes = tuple(int(getattr(operand, "ndim", 0)) for operand in operands)
    _emit(_Arrived(target, static, shapes, axes), ordered, operands)


def flush() -> None:
    """Wait until the rows of all computations that this thread started have arrived."""
    _jax().effects_barrier()


@lru_cache(maxsize=1)
def _jax() -> ModuleType:
    _versions.require("jax", SUPPORTED, extra="jax", why="rollbook.adapters.jax")
    import jax

    loaded: ModuleType = jax
    return loaded


def _is_eager(jax: ModuleType) -> bool:
    """Whether no transformation is active. If JAX does not report it, assume one is active: correct, but slower."""
    clean = getattr(jax.core, "trace_state_clean", None)
    return bool(clean()) if clean is not None else False


class _Arrived:
    """The callback of the computation: joins names and operands again and logs them.

    Two instances are equal if they do the same, so that tracing again finds the compiled function.
    """

    def __init__(
        self,
        target: Any,
        static: tuple[tuple[_Named, object], ...],
        groups: tuple[tuple[_Named, ...] | _Named, ...],
        axes: tuple[int, ...],
    ) -> None:
        self._target, self._static, self._groups, self._axes = target, static, groups, axes

    @property
    def seeds(self) -> int:
        """The number of siblings: how many copies of the call may be mapped. 0 for a run."""
        return len(self._target.runs) if hasattr(self._target, "seeds") else 0

    def _identity(self) -> tuple[object, ...]:
        return id(self._target), repr(self._static), self._groups

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrived) and self._identity() == other._identity()

    def __call__(self, *operands: object) -> None:
        """Called by JAX in its own thread. An exception here would end the computation, so none leaves."""
        import numpy as np

        with handled_by(_report, self._target):
            row: dict[str, object] = {}
            clocks: dict[str, object] = {}
            for (kind, name), value in self._static:
                (row if kind == "value" else clocks)[name] = value
            for names, axes, operand in zip(self._groups, self._axes, operands, strict=True):
                array = np.asarray(operand)
                if isinstance(names[0], str):  # a single array
                    row[str(names[1])] = array
                    continue
                numbers = array.T if array.ndim > axes else array.tolist()  # with a seed axis: all seeds of each
                for (kind, name), number in zip(names, numbers, strict=True):
                    (row if kind == "value" else clocks)[name] = number
            self._target.log(row, **clocks)


def _report(target: object, err: Exception) -> None:
    from rollbook.errors import LoggingFailed

    if isinstance(err, LoggingFailed):  # strict=True asked for it
        raise err
    _bill(target)(
        "jax", message=f"a row from inside a JAX computation could not be logged: {type(err).__name__}: {err}"
    )


def _bill(target: Any) -> Bill:
    """Where causes are counted; for siblings, at the first."""
    owner = target.runs[0] if hasattr(target, "seeds") else target
    return Bill(to=owner if callable(getattr(owner, "count", None)) else None)


def _sorted(
    leaves: list[tuple[_Named, object]], count: Bill
) -> tuple[tuple[tuple[_Named, object], ...], tuple[tuple[_Named, ...] | _Named, ...], list[object]]:
    """(what is known while tracing, the names of each operand, the operands).

    Numbers of one type are passed as one vector, because each operand costs one transfer.
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
    """The value as an array of booleans, integers or floats of a numpy type; None (counted) if it is none of these."""
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
    except ours(Exception) as err:  # of JAX, or of an object that refuses to be an array
        count(
            "unloggable",
            message=f"log({{{named[1]!r}: …}}) inside a JAX computation: a {type(value).__name__} cannot be logged "
            f"({err}); it was left out",
        )
        return None


def _emit(arrived: _Arrived, ordered: bool, operands: list[object]) -> None:
    """Make the computation call `arrived` with its operands, also where it is differentiated.

    JAX guarantees to run `io_callback`, but silently removes it from a loop that is differentiated. There only
    callbacks of `jax.debug` remain.
    """
    import jax
    from jax.experimental import io_callback

    @jax.custom_jvp  # type: ignore[untyped-decorator, unused-ignore]
    def emit(*operands: object) -> tuple[()]:
        io_callback(arrived, None, *_guarded(operands, arrived.seeds), ordered=ordered)
        return ()

    @emit.defjvp  # type: ignore[untyped-decorator, unused-ignore]
    def differentiated(primals: tuple[object, ...], _tangents: object) -> tuple[tuple[()], tuple[()]]:
        # Logged values are observed, not differentiated.
        jax.debug.callback(arrived, *_guarded(map(jax.lax.stop_gradient, primals), arrived.seeds), ordered=ordered)
        return (), ()

    emit(*operands)


def _guarded(operands: Iterable[object], seeds: int) -> list[object]:
    """Return the operands unchanged. If `jax.vmap` maps them over the seeds at any level, they get the seed axis in
    front; over
    any other axis it raises.
    """
    unmapped = tuple(operands)
    return list(_guard(seeds)(*unmapped)) if unmapped else []


@lru_cache(maxsize=64)
def _guard(seeds: int) -> Any:
    from jax import numpy as jnp
    from jax.custom_batching import custom_vmap

    @custom_vmap  # type: ignore[untyped-decorator, unused-ignore]
    def guard(*operands: object) -> tuple[object, ...]:
        return operands

    @guard.def_vmap  # type: ignore[untyped-decorator, unused-ignore]
    def mapped(axis_size: int, are_mapped: tuple[bool, ...], *operands: Any) -> object:
        if not seeds:
            raise BadInput(
                f"rollbook.adapters.jax.log() was asked to log inside jax.vmap, found {axis_size} copies of the call: "
                "they would be rows of one run that cannot be distinguished. Vmapped seeds: log to "
                "rollbook.siblings(n, seeds=…), a run each. Vmapped environments: return the values and log their mean "
                "outside, or use run.log_many()"
            )
        if axis_size != seeds:
            raise BadInput(
                f"rollbook.adapters.jax.log() was asked to log to {seeds} siblings inside a jax.vmap over {axis_size}: "
                "map as many seeds as there are siblings, and log outside of any other vmap"
            )
        # Reported as unmapped although the seed axis is still there: they only go to one callback for all seeds.
        whole = tuple(
            operand if is_mapped else jnp.broadcast_to(operand, (axis_size, *operand.shape))
            for operand, is_mapped in zip(operands, are_mapped, strict=True)
        )
        return whole, (False,) * len(whole)

    return guard


_waited_for: weakref.WeakSet[object] = weakref.WeakSet()


def _wait_at_end(target: Any) -> None:
    """Make the run's finish() wait for rows that have not arrived: JAX computes asynchronously."""
    first = target.runs[0] if hasattr(target, "seeds") else target
    run: Any = getattr(first, "run", None)
    if not callable(getattr(run, "on_finish", None)) or run in _waited_for:
        return
    _waited_for.add(run)

    def wait(status: str) -> None:
        if status == "finished":  # a killed process has no time to wait
            with handled_by(_report, run):  # a failed computation; the program gets its error elsewhere
                flush()

    run.on_finish(wait)
