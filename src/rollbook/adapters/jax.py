"""Logging from inside `jax.jit`, `lax.scan`, `lax.while_loop` and `lax.cond`.

    from rollbook.adapters.jax import log

    @jax.jit
    def train(state):
        def update(state, step):
            state, loss = improve(state)
            log(run, {"update/loss": loss}, gradient_step=step)     # one row each time this is reached
            return state, None
        return jax.lax.scan(update, state, jnp.arange(1_000))

Vmapped seeds are sibling runs, a run each: `log(siblings, …)` inside `jax.vmap` over as many seeds.

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
      target: a run or a scope; or `rollbook.siblings`, inside a `jax.vmap` over their seeds: each gets its own row. A
        compiled function goes on logging to the one it was traced with; the module `rollbook` itself stands for the
        run that is current when the row arrives.
      values: name -> number, 0-d array, text, or array (kept as a histogram); nested dicts are joined with "/".
      ordered: rows arrive in the order of the program. With False the compiler may reorder them, and it is allowed
        where JAX allows no order (`pmap`, several devices).
      clocks: numbers or traced 0-d arrays.
    Raises:
      BadInput: `target` is no run; while tracing: the call is mapped by `jax.vmap`, and `target` is no siblings, or
        others than as many as there are copies.
      MissingExtra, UnsupportedVersion: JAX is not there, or not in a version of `SUPPORTED`.
    """
    jax = _jax()
    if not callable(getattr(target, "log", None)):
        raise BadInput(
            f"log({target!r:.100}, …): found a {type(target).__name__}, not a run. Pass what rollbook.init() returned, "
            "a scope of it, or the module rollbook for whichever run is current"
        )
    count = _bill(target)
    leaves = [(("value", name), value) for name, value in flatten(values)]
    leaves += [(("clock", name), value) for name, value in clocks.items()]
    traced = [value for _, value in leaves if isinstance(value, jax.core.Tracer)]
    if not traced and _is_eager(jax):
        target.log(values, **clocks)
        return
    _wait_at_end(target)
    static, shapes, operands = _sorted(leaves, count)
    axes = tuple(int(getattr(operand, "ndim", 0)) for operand in operands)
    _emit(_Arrived(target, static, shapes, axes), ordered, operands)


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
        self,
        target: Any,
        static: tuple[tuple[_Named, object], ...],
        groups: tuple[tuple[_Named, ...] | _Named, ...],
        axes: tuple[int, ...],
    ) -> None:
        self._target, self._static, self._groups, self._axes = target, static, groups, axes

    @property
    def seeds(self) -> int:
        """How many copies of the call may be mapped: those of siblings; 0 for a run."""
        return len(self._target.runs) if hasattr(self._target, "seeds") else 0

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
            for names, axes, operand in zip(self._groups, self._axes, operands, strict=True):
                array = np.asarray(operand)
                if isinstance(names[0], str):  # an array by itself
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
    """Where causes are counted; those of siblings by the first."""
    owner = target.runs[0] if hasattr(target, "seeds") else target
    return Bill(to=owner if callable(getattr(owner, "count", None)) else None)


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
        io_callback(arrived, None, *_guarded(operands, arrived.seeds), ordered=ordered)
        return ()

    @emit.defjvp  # type: ignore[untyped-decorator, unused-ignore]
    def differentiated(primals: tuple[object, ...], _tangents: object) -> tuple[tuple[()], tuple[()]]:
        # What is logged is looked at, not differentiated.
        jax.debug.callback(arrived, *_guarded(map(jax.lax.stop_gradient, primals), arrived.seeds), ordered=ordered)
        return (), ()

    emit(*operands)


def _guarded(operands: Iterable[object], seeds: int) -> list[object]:
    """The operands as they are. Mapped by `jax.vmap`, however far outside, over the seeds: with the seed axis in front;
    over anything else it raises.
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
                "they would be rows of one run that nobody can tell apart. Vmapped seeds: log to "
                "rollbook.siblings(n, seeds=…), a run each. Vmapped environments: return the values and log their mean "
                "outside, or use run.log_many()"
            )
        if axis_size != seeds:
            raise BadInput(
                f"rollbook.adapters.jax.log() was asked to log to {seeds} siblings inside a jax.vmap over {axis_size}: "
                "map as many seeds as there are siblings, and log outside of any other vmap"
            )
        # Said to be unmapped with the seed axis still there: all that is done with them is one callback for all seeds.
        whole = tuple(
            operand if is_mapped else jnp.broadcast_to(operand, (axis_size, *operand.shape))
            for operand, is_mapped in zip(operands, are_mapped, strict=True)
        )
        return whole, (False,) * len(whole)

    return guard


_waited_for: weakref.WeakSet[object] = weakref.WeakSet()


def _wait_at_end(target: Any) -> None:
    """Let the run's finish() wait for rows that are under way: JAX computes while the program has gone on."""
    first = target.runs[0] if hasattr(target, "seeds") else target
    run: Any = getattr(first, "run", None)
    if not callable(getattr(run, "on_finish", None)) or run in _waited_for:
        return
    _waited_for.add(run)

    def wait(status: str) -> None:
        if status == "finished":  # who is killed has no time to wait
            with handled_by(_report, run):  # a computation that failed; its own thread of the program hears of it
                flush()

    run.on_finish(wait)
