"""Several runs that one program trains in parallel, such as vmapped seeds: arrays in, one slice per run.

    with rollbook.siblings(8, seeds=range(8), project="cartpole", name="ppo", config=cfg) as seeds:
        for _ in range(updates):
            state, metrics = update(state)                     # metrics: {"loss": [8], …}
            seeds.scope("update").log(metrics, env_step=step)  # one row in each of the eight runs
        seeds.log_many(history, env_step=steps)                # {"train/return": [8, T]}, steps: [T] or [8, T]

Logging does not work inside `jax.vmap`. Let the function return its metrics, with the seed axis first.
"""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.run.ending import finish_together
from rollbook.run.failure import status_of
from rollbook.values.devices import is_deferred

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self


def siblings(n: int, *, seeds: Iterable[int] | int | None = None, **init_arguments: Any) -> Siblings:
    """Open n runs that differ in their seed, and log to all of them at once: arrays with a leading seed axis.

    Only the first is shown in the terminal.

    Args:
      n: number of runs.
      seeds: n seeds; a number s for s, s + 1, …; None for 0, 1, ….
      init_arguments: arguments for each run, see `rollbook.init`. With `run_id`, each run's id ends with its seed.
    Raises:
      BadInput: n and seeds do not fit.
      Any exception of `rollbook.init`; runs opened before it are ended.
    """
    from rollbook.run.session import init
    from rollbook.sinks import without_live

    def unseen(sinks: Any = None, **others: Any) -> Any:
        return init(sinks=without_live(sinks), **others)

    return open_siblings(n, seeds=seeds, open_run=init, open_others=unseen, **init_arguments)


def open_siblings(
    n: int,
    *,
    seeds: Iterable[int] | int | None = None,
    open_run: Callable[..., object],
    open_others: Callable[..., object] | None = None,
    **init_arguments: object,
) -> Siblings:
    """`siblings`, with the functions that open the first run and the others (None: the same)."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise BadInput(f"siblings({n!r}): the number of runs to open must be an integer of 1 or more")
    if seeds is None or isinstance(seeds, int):
        chosen = [int(seeds or 0) + i for i in range(n)]
    else:
        chosen = [int(seed) for seed in seeds]
    if len(chosen) != n or len(set(chosen)) != n:
        raise BadInput(f"siblings({n}, seeds={chosen}): found {len(set(chosen))} different seeds. Pass {n}")
    opened: list[Any] = []
    try:
        for seed in chosen:
            arguments = {**init_arguments, "seed": seed}
            if arguments.get("run_id") is not None:
                arguments["run_id"] = f"{arguments['run_id']}-{seed}"
            opened.append((open_others if opened and open_others else open_run)(**arguments))
    except BaseException:
        finish_together(opened, "crashed")
        raise
    return Siblings(opened, chosen)


class Siblings:
    """n runs, or one scope of each, that take arrays with a leading seed axis.

    A value without a seed axis (a number, a text, a 0-d array) goes to all runs as it is. An array or list whose first
    axis is not n is counted as `sibling_axis` and left out. Device arrays are split on their device, without waiting.

    Attributes:
      runs: the runs or scopes, in the order of `seeds`. Each can be used separately.
      seeds: their seeds.
    """

    def __init__(self, runs: Sequence[Any], seeds: Sequence[int]) -> None:
        self.runs, self.seeds = tuple(runs), tuple(seeds)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.runs)

    def __getitem__(self, index: int) -> Any:
        return self.runs[index]

    def log(self, values: Mapping[str, object], **clocks: object) -> None:
        """Append one row to each run. Values and clocks: [n, …], or the same for all."""
        shares = self._shares(values, 1)
        for run, own, at in zip(self.runs, shares, self._shares(clocks, 1), strict=True):
            run.log(own, **at)

    def log_many(self, columns: Mapping[str, object], **clocks: object) -> None:
        """Append T rows to each run. Columns and clocks: [n, T], or [T] for the same in all."""
        shares = self._shares(columns, 2)
        for run, own, at in zip(self.runs, shares, self._shares(clocks, 2), strict=True):
            run.log_many(own, **at)

    def store(self, values: Mapping[str, object] | None = None, /, **more: object) -> None:
        """Store in each run for its next dump; [n, …], or the same for all."""
        for run, own in zip(self.runs, self._shares({**(values or {}), **more}, 1), strict=True):
            run.store(own)

    def dump(self, *args: Any, **kwargs: Any) -> list[dict[str, float]]:
        """Dump each run with the same arguments; returns their rows."""
        return [run.dump(*args, **kwargs) for run in self.runs]

    def clock(self, **clocks: object) -> None:
        """Set the current clocks of each run; [n], or the same for all."""
        for run, at in zip(self.runs, self._shares(clocks, 1), strict=True):
            run.clock(**at)

    def note(self, text: str, **clocks: object) -> None:
        """Store a note in each run."""
        for run, at in zip(self.runs, self._shares(clocks, 1), strict=True):
            run.note(text, **at)

    def timer(self, name: str) -> _Timers:
        """Measure a stage that all runs share; each run gets the row. A context manager."""
        return _Timers([run.timer(name) for run in self.runs])

    def scope(self, name: str, at: Sequence[object] | None = None) -> Siblings:
        """The scope of this name in each run. `at`: one checkpoint per run."""
        if at is None:
            return Siblings([run.scope(name) for run in self.runs], self.seeds)
        return Siblings([run.scope(name, at=position) for run, position in zip(self.runs, at, strict=True)], self.seeds)

    def finish(self, status: str = "finished") -> None:
        """End all runs, at once: it takes little longer than the end of one."""
        finish_together(self.runs, status)

    def _shares(self, values: Mapping[str, Any], axes: int) -> list[dict[str, object]]:
        """What each run gets; an array with fewer than `axes` axes has no seed axis."""
        n = len(self.runs)
        shares: list[dict[str, object]] = [{} for _ in range(n)]
        for key, value in values.items():
            if hasattr(value, "items") and hasattr(value, "keys"):
                inner = self._shares(value, axes)
                for share, part in zip(shares, inner, strict=True):
                    share[key] = part
                continue
            if _axes(value) < axes:
                for share in shares:
                    share[key] = value
                continue
            if len(value) != n:
                self.runs[0].count(
                    "sibling_axis",
                    1,
                    f"{key!r} has {len(value)} entries along its first axis where there are {n} runs; it was left out. "
                    "Pass one entry for each run",
                )
                continue
            for share, part in zip(shares, _parts(value), strict=True):
                share[key] = part
        return shares

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(status_of(kind))

    def __repr__(self) -> str:
        return f"<Siblings of seeds {list(self.seeds)}>"


class _Timers:
    """One stage in several runs."""

    __slots__ = ("_stages",)

    def __init__(self, stages: list[Any]) -> None:
        self._stages = stages

    def __enter__(self) -> _Timers:
        for stage in self._stages:
            stage.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        for stage in reversed(self._stages):
            stage.__exit__(*exc)


def _axes(value: object) -> int:
    shape: tuple[int, ...] | None = getattr(value, "shape", None)
    if shape is not None:
        return len(shape)
    if not isinstance(value, (list, tuple)):
        return 0
    inside: int = max((_axes(inner) for inner in value), default=0)
    return 1 + inside


def _parts(value: Any) -> Iterable[Any]:
    """The entries along the first axis."""
    unbind = getattr(value, "unbind", None)
    if unbind is not None:  # torch, also on a device: views, no wait
        parts: Iterable[object] = unbind(0)
        return parts
    if hasattr(value, "tolist") and len(value.shape) == 1 and not is_deferred(value):
        numbers: list[object] = value.tolist()  # Python's own numbers take the quick path of log()
        return numbers
    entries: Iterable[object] = iter(value)
    return entries
