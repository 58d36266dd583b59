"""`record_rewards`: wraps reward functions so that they also write a row per completion to the run."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
import weakref

from rollbook.adapters._run import find_run
from rollbook.adapters.trl.batches import KEEP, Batch, link_of, write
from rollbook.errors import BadInput
from rollbook.schema.tables import TABLES
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from rollbook.run.scope import Scope

_SPECIAL = frozenset(
    ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments")
)
_TAKEN = frozenset(
    (
        *TABLES["rollouts"].columns,
        *TABLES["fates"].columns,
        *("messages", "prompt", "prompts", "completion", "rewards", "tokens", "logprobs", "mask", "entropy"),
        *("tools", "metrics", "policy_version", "gradient_step", "train_iter"),
    )
)


def record_rewards(reward_funcs: object, run: Scope | None = None, *, columns: bool | Iterable[str] = True) -> object:
    """Wrap reward functions so that every completion becomes a rollout.

    The functions get the same arguments, return the same values, and keep their names (TRL names its metrics after
    them); async ones stay async. A rollout is written when the last function has answered; `RollbookCallback` writes
    its fate after the update.

    Args:
      reward_funcs: a function, or a list of them. Names of models and modules are passed on unchanged. Their rewards
        come from the trainer's record after the micro-batch, and the rollouts are written then.
      run: a run or a scope of a run. None: the current one at the first call for rewards.
      columns: whether further columns of the dataset are stored with each row, or which ones.
    Returns:
      The same in the same shape, for `GRPOTrainer(reward_funcs=…)` or `RLOOTrainer(reward_funcs=…)`.
    Raises:
      BadInput: an element is not a function, a name or a module; or `run` is not a run.
    """
    if run is not None:
        find_run(run, project="", name="")
    listed = list(reward_funcs) if isinstance(reward_funcs, (list, tuple)) else [reward_funcs]
    for func in listed:
        if not isinstance(func, str) and not callable(func):
            raise BadInput(
                f"record_rewards({reward_funcs!r:.200}): found a {type(func).__name__} among the reward functions. "
                "Pass a function, a callable object, a module or a model's name, or a list of these"
            )
    wanted = [_is_function(func) for func in listed]
    names = _names([func for func, wraps in zip(listed, wanted, strict=True) if wraps])
    gathering = _Gathering(run, names, columns if isinstance(columns, bool) else frozenset(columns), all(wanted))
    fresh = iter(names)
    wrapped = [
        _wrap(func, next(fresh), gathering) if wraps else func for func, wraps in zip(listed, wanted, strict=True)
    ]
    return wrapped if isinstance(reward_funcs, (list, tuple)) else wrapped[0]


def _is_function(func: object) -> bool:
    return callable(func) and not hasattr(func, "forward")  # torch.nn.Module has one


def _plain_name(function: object) -> str:
    """The name that TRL uses: the function's own, that of a partial's function, or the class of a callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _names(functions: Sequence[object]) -> list[str]:
    names: list[str] = []
    for function in functions:
        name = own = _plain_name(function)
        number = 2
        while name in names:
            name, number = f"{own}_{number}", number + 1
        names.append(name)
    return names


def _is_async(function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _wrap(function: object, name: str, gathering: _Gathering) -> Callable[..., object]:
    return (_AsyncRecorded if _is_async(function) else _Recorded)(function, name, gathering)


class _Recorded:
    """A reward function with its recorder. An object, not a closure, so that it can be sent to another process."""

    def __init__(self, function: Any, name: str, gathering: _Gathering) -> None:
        self.__wrapped__, self._name, self.gathering = function, name, gathering
        self.__name__ = _plain_name(function)
        self.__doc__ = getattr(function, "__doc__", None)

    def __call__(self, *args: object, **kwargs: object) -> object:
        batch, began = self.gathering.begin(kwargs), time.monotonic()
        try:
            rewards = self.__wrapped__(*args, **kwargs)
        except BaseException:
            self.gathering.failed(batch)
            raise
        return self.gathering.answered(batch, self._name, rewards, time.monotonic() - began)

    def __repr__(self) -> str:
        return f"<recorded {self.__wrapped__!r}>"


class _AsyncRecorded(_Recorded):
    """The same for a coroutine function."""

    async def __call__(self, *args: object, **kwargs: object) -> object:
        batch, began = self.gathering.begin(kwargs), time.monotonic()
        try:
            rewards = await self.__wrapped__(*args, **kwargs)
        except BaseException:
            self.gathering.failed(batch)
            raise
        return self.gathering.answered(batch, self._name, rewards, time.monotonic() - began)


class _Gathering:
    """Collects the rewards of several functions about one batch.

    All functions of a batch get the same list object of completions, which identifies the batch.
    """

    def __init__(self, run: Any, names: list[str], columns: bool | frozenset[str], is_all: bool = True) -> None:
        self._given = self._run = run
        self._names, self._columns, self._is_all = names, columns, is_all
        self._lock = threading.Lock()
        self._open: tuple[object, Batch] | None = None
        self._last: dict[str | None, tuple[int, int]] = {}
        self._count: Bill | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _Gathering, (self._given or self._run, self._names, self._columns, self._is_all)

    def begin(self, kwargs: dict[str, object]) -> Batch | None:
        """The batch of these arguments; None (counted) if they are not a batch."""
        with self._lock:
            if self._given is None:
                run = _run_of_the_trainer(kwargs)
                if run is not self._run:
                    self._run, self._count, self._open = run, None, None
            if self._count is None:
                self._count = Bill(to=self._run)
            if self._run is None:
                self._count(
                    "trl_no_run",
                    message="record_rewards(): no run is open, so no completion is kept. Give the trainer a "
                    "RollbookCallback, or call rollbook.init() before train()",
                )
                return None
            batch: Batch | None = self._count.guard(
                "trl_rollouts", "taking in completions", lambda: self._begin(kwargs)
            )
            return batch

    def _begin(self, kwargs: dict[str, Any]) -> Batch:
        given = kwargs["completions"]
        if self._open is not None and self._open[0] is given:
            self._take_extra(kwargs, self._open[1])
            return self._open[1]
        if self._open is not None:
            self._write(self._open[1])  # a function was never called; the other rewards are kept
        completions = list(given)
        n = len(completions)
        prompts = list(kwargs["prompts"]) if kwargs.get("prompts") is not None else [""] * n
        state, log_extra = kwargs.get("trainer_state"), kwargs.get("log_extra")
        step = int(getattr(state, "global_step", 0) or 0)
        trainer = getattr(log_extra, "__self__", None)
        link = link_of(self._run)
        if trainer is not None and link.trainer is None:
            link.trainer = weakref.ref(trainer)
        mode = _mode(trainer)
        last, count = self._last.get(mode, (-1, 0))
        number = count + 1 if last == step else 0
        self._last[mode] = step, number
        tokens = kwargs.get("completion_ids")
        batch = Batch(
            step,
            number,
            mode,
            prompts,
            completions,
            tokens if tokens is not None and len(tokens) == n else None,
            dict(self._further(kwargs, n)),
            _of_the_trainer("sampling_per_token_logps_list", n),
            _of_the_trainer("tool_mask_list", n),
            any(getattr(trainer, name, None) for name in ("tools", "environments", "rollout_func")),
            names=self._names,
        )
        if batch.mixed and batch.masks is None and self._count is not None:
            self._count.report(
                "trl_masks",
                "record_rewards(): which tokens tools or an environment added could not be seen, so no token is kept. "
                "They can be seen where some reward function is not async, with TRL 1.x",
            )
        self._open = (given, batch)
        self._take_extra(kwargs, batch)
        return batch

    def _weights(self) -> tuple[dict[str, float] | None, bool]:
        """(the weight of each name in the trainer's reward, whether all of these are our functions).

        The first part is None if the weights are not known.
        """
        link = link_of(self._run)
        trainer: Any = link.trainer() if link.trainer is not None else None
        functions = getattr(trainer, "reward_funcs", None)
        if functions is None:
            if not self._is_all or (link.weights is not None and len(link.weights) != len(self._names)):
                return None, self._is_all
            return dict(zip(self._names, link.weights or [1.0] * len(self._names), strict=True)), True
        ours = [getattr(function, "gathering", None) is self for function in functions]
        theirs, weights = getattr(trainer, "reward_func_names", None), getattr(trainer, "reward_weights", None)
        if weights is None or theirs is None or not len(ours) == len(weights) == len(theirs):
            return None, all(ours)
        fresh = iter(self._names)  # functions with the same name are numbered here
        if sum(ours) != len(self._names):
            return None, False
        names = [next(fresh) if own else str(name) for own, name in zip(ours, theirs, strict=True)]
        return dict(zip(names, map(float, weights), strict=True)), all(ours)

    def _write(self, batch: Batch) -> None:
        """Write the batch now, or leave it to the callback if the trainer has rewards that are unknown here."""
        found = None if self._count is None else self._count.guard("trl_rollouts", "reading weights", self._weights)
        batch.weights, is_whole = found or (None, True)
        link = link_of(self._run)
        if is_whole or not link.joined:
            write(self._run, batch)
        with link.lock:
            if batch.mode != "eval":
                link.current = batch
            link.waiting.append(batch)
            old = link.waiting[:-KEEP]
            del link.waiting[:-KEEP]
        for each in old:
            write(self._run, each)

    def _further(self, kwargs: dict[str, object], n: int) -> Iterable[tuple[str, list[object]]]:
        """Columns of the dataset that a table can store: text, numbers, and lists of these."""
        for name, values in kwargs.items():
            if name in _SPECIAL or self._columns is False:
                continue
            if self._columns is not True and name not in self._columns:
                continue
            if isinstance(values, list) and len(values) == n and all(_is_plain(value) for value in values):
                yield (f"dataset/{name}" if name in _TAKEN else name), values
            elif self._count is not None:
                self._count.report(
                    f"trl_column_{name}",
                    f"record_rewards(): the column {name!r} of the dataset is not kept: a cell must be text, a number, "
                    "or a list of these",
                )

    def _take_extra(self, kwargs: dict[str, Any], batch: Batch) -> None:
        """Also store the columns that a function reports with `log_extra(column, values)`."""
        log_extra = kwargs.get("log_extra")
        if log_extra is None:
            return
        n = len(batch.completions)

        def log_extra_and_keep(column: str, values: Iterable[object]) -> object:
            listed = list(values)
            if len(listed) == n and not batch.written and all(_is_plain(value) for value in listed):
                batch.columns[f"extra/{column}"] = listed
            elif self._count is not None:
                self._count.report(
                    f"trl_extra_{column}",
                    f"log_extra({column!r}): {len(listed)} values for {n} completions are not kept in the run. Give "
                    "one cell per completion (text, a number or a list of these), from a reward function that has not "
                    "answered yet",
                )
            return log_extra(column, listed)

        kwargs["log_extra"] = log_extra_and_keep

    def answered(
        self, batch: Batch | None, name: str, rewards: Iterable[object], seconds: float = 0.0
    ) -> Iterable[object]:
        """Take the rewards of one function; the last one completes the batch. Returns the rewards."""
        if batch is None or self._count is None:
            return rewards
        listed: list[object] | None = self._count.guard(
            "trl_rollouts", f"taking the rewards of {name}", lambda: list(rewards)
        )
        if listed is None:
            return rewards
        with self._lock:
            batch.seconds += seconds
            batch.rewards[name] = listed if len(listed) == len(batch.completions) else []
            if not batch.rewards[name]:
                batch.rewards[name] = [None] * len(batch.completions)  # TRL will reject it next
            if len(batch.rewards) == len(self._names):
                self._close(batch)
        return rewards if isinstance(rewards, (list, tuple)) or hasattr(rewards, "shape") else listed

    def failed(self, batch: Batch | None) -> None:
        """A function raised, which ends the training: keep the data so far."""
        if batch is not None:
            with self._lock:
                self._close(batch)
                link = link_of(self._run)
                with link.lock:
                    link.current = None
                    link.waiting = [each for each in link.waiting if each is not batch]
                write(self._run, batch)
                if batch.ids:
                    self._run.run.rollouts.dropped(batch.ids, reason="error")
                    batch.ids = []

    def _close(self, batch: Batch) -> None:
        self._write(batch)
        if self._open is not None and self._open[1] is batch:
            self._open = None


def _mode(trainer: object) -> str | None:
    training = getattr(getattr(trainer, "model", None), "training", None)
    return None if training is None else "train" if training else "eval"


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool)) or hasattr(value, "__array_interface__")


def _of_the_trainer(name: str, n: int) -> list[Any] | None:
    """A variable of the trainer's method that requests rewards, a list with one part per completion; None without it.

    No argument contains it. Async functions are called in another thread and do not see it.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_generate_and_score_completions":
            value = frame.f_locals.get(name)
            return value if isinstance(value, list) and len(value) == n else None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _run_of_the_trainer(kwargs: Mapping[str, Any]) -> Any:
    """The run of the RollbookCallback of the trainer that asks for rewards, also before `train`; else the current."""
    trainer: Any = getattr(kwargs.get("log_extra"), "__self__", None)
    for callback in getattr(getattr(trainer, "callback_handler", None), "callbacks", ()):
        join = getattr(callback, "join", None)
        is_ours = type(callback).__module__ == "rollbook.adapters.trl.callback"
        if is_ours and join is not None and join(trainer.args, trainer.state, trainer.control):
            callback.knows(trainer)
            return callback.run
    from rollbook.run.current import current_run

    return current_run()
