"""RollbookLogger: a run as the logger of a Tianshou trainer.

    logger = RollbookLogger(rollbook.init("cartpole", "dqn", resume="allow", run_id="first"))
    params = OffPolicyTrainerParams(..., logger=logger, save_checkpoint_fn=save, resume_from_log=True)
    algorithm.run_training(params)

`save_checkpoint_fn` is called at the end of each epoch; the path it returns is registered with the run.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

from rollbook.adapters._run import end_training, find_run, go_on, keep_config, lies_beside, options_of
from rollbook.adapters.tianshou.base import BaseLogger, DataScope, SaveFn
from rollbook.adapters.tianshou.restore import restore_logged_data
from rollbook.adapters.tianshou.trainer import epochs_of, is_through, settings_of, trainer_that_calls
from rollbook.system.bill import Bill
from rollbook.system.guard import ours
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.run.scope import Scope


class RollbookLogger(BaseLogger):
    """Writes everything that a trainer logs to a run, under Tianshou's own names and at its own steps.

    The book has every call. The intervals only thin the native file: `writer` gets what Tianshou's TensorboardLogger
    would have written. Each gradient step of an off-policy trainer has a row (Tianshou writes the first of each update
    step). The clock `gradient_step` is counted here; the clock `step` is the trainer's update step. Episodes that a
    collector reports go to the table `episodes`, one row each.

    The algorithm and the trainer's settings go to the run's configuration. A run that is opened here ends with the
    trainer's last epoch; another training with the same logger is its next attempt.

    Args:
      run: a run. None uses the current run, or opens one.
      train_interval, training_interval, test_interval, update_interval, info_interval: for `writer`; see `BaseLogger`.
      exclude_arrays: leave arrays out; otherwise they are logged as distributions. Episodes are always recorded.
      save_interval: epochs between checkpoints; None never saves.
      writer: a TensorBoard SummaryWriter (any object with add_scalar, add_histogram, add_figure and flush), or None.
      write_flush: flush `writer` after each write.
      finish: finish the run when the trainer finalizes the logger. Default: if the run was opened here.
      project, run_options: of a run that is opened here; arguments of `rollbook.init`.
    """

    def __init__(
        self,
        run: object = None,
        train_interval: int = 1000,
        test_interval: int = 1,
        update_interval: int = 1000,
        info_interval: int = 1,
        exclude_arrays: bool = True,
        save_interval: int | None = 1,
        *,
        training_interval: int | None = None,
        writer: Any = None,
        write_flush: bool = True,
        finish: bool | None = None,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(
            train_interval,
            test_interval,
            update_interval,
            info_interval,
            exclude_arrays,
            save_interval,
            training_interval=training_interval,
        )
        options = options_of(project, run_options)
        self.run, opened_here = find_run(
            run, project="tianshou", name="run", options=options, user=self, host="tianshou"
        )
        self._bill = Bill(to=self.run) if self.run is not None else Bill(who="RollbookLogger")
        self.writer, self.write_flush = writer, write_flush
        for name in ("log_dir", "logdir"):  # of torch, of tensorboardX
            lies_beside(self.run, writer, name)
        self._finish = opened_here if finish is None else finish
        self._scopes: dict[str, Scope] = {}
        self._gradient_steps = 0
        self._checkpoint: Any = None
        self._best = float("-inf")
        self._last_test = float("nan")
        self._is_known = self._is_over = False

    # -- called by the trainer

    def write(self, step_type: str, step: int, data: Mapping[str, object]) -> None:
        """Write `data` to the book and to the native file, at `step`; `step_type` is e.g. "train/env_step"."""
        self._guard("training", self._follow)
        self._guard("write", lambda: self._to_book(step_type, step, data))
        self._guard("native", lambda: self._to_native(step_type, step, self.prepare_dict_for_logging(data)))

    def _log(self, scope: str, step_name: str, log_data: Mapping[str, object], step: int, kind: str) -> None:
        step_type = f"{scope}/{step_name}"
        if not self._is_known or self._is_over:
            self._guard("training", self._follow)
        if kind == "update":
            self._guard("update", lambda: self._count_steps(log_data))
        self._guard("write", lambda: self._to_book(step_type, step, log_data))
        if kind in ("train", "test"):
            self._guard("episodes", lambda: self._episodes(scope, log_data, step))
        if kind == "test":
            self._guard("best", lambda: self._remember_test(log_data))
        if self._bill.guard("tianshou_step", "comparing steps", self._is_due, kind, step) and self.writer is not None:
            self._guard("native", lambda: self._to_native(step_type, step, self.prepare_dict_for_logging(log_data)))
        if kind == "info":
            self._guard("training", lambda: self._end_with(step))

    def _follow(self) -> None:
        """Note what is trained; go on with a run that ended with an earlier training of this logger."""
        if self._is_over:
            self._is_over = self._is_known = False
            self.run = go_on(self.run)
            self._scopes.clear()
            self._bill = Bill(to=self.run)
        if not self._is_known and self.run is not None and (trainer := trainer_that_calls()) is not None:
            self._is_known = True
            keep_config(self.run, settings_of(trainer))
            self.run.run.internals.fill_in(total={"epoch": epochs_of(trainer)})

    def _end_with(self, epoch: int) -> None:
        """Finish a run that was opened for this training, if this is its last epoch."""
        trainer = trainer_that_calls()
        if trainer is not None and self.run is not None and is_through(trainer, epoch):
            self._is_over = True
            end_training(self.run, self)

    def _count_steps(self, log_data: Mapping[str, object]) -> None:
        steps = log_data.get("gradient_steps")  # an on-policy update reports how many it made
        self._gradient_steps += steps if isinstance(steps, int) and steps > 0 else 1

    def prepare_dict_for_logging(
        self,
        log_data: Mapping[str, object],
        parent_key: str = "",
        delimiter: str = "/",
        exclude_arrays: bool | None = None,
    ) -> dict[str, object]:
        """Flatten `log_data`: numbers (also numpy's bool and 0-d arrays), and arrays unless excluded."""
        exclude = self.exclude_arrays if exclude_arrays is None else exclude_arrays

        def clash(name: str) -> None:
            self._bill.report(
                "tianshou_clash", f"two values of one dict come to the name {name!r}; the later one counts"
            )

        return for_native(log_data, parent_key, delimiter, exclude_arrays=exclude, clash=clash)

    def finalize(self) -> None:
        """Close the native file; finish the run if it was opened here."""
        if self.writer is not None:
            self._guard("native", lambda: self.writer.close())
        end_training(self.run, self)
        if self._finish and self.run is not None and hasattr(self.run, "finish"):
            self.run.finish()

    # -- checkpoints

    def save_data(
        self,
        epoch: int,
        env_step: int,
        gradient_step: int = 0,
        save_checkpoint_fn: SaveFn | None = None,
        *,
        update_step: int | None = None,
    ) -> None:
        """Call `save_checkpoint_fn` if an interval of epochs has passed, and register the saved file with the run.

        Without a `save_checkpoint_fn`, only the counters are stored, so that they can be restored.
        Exceptions of `save_checkpoint_fn` are raised: it belongs to the program.
        """
        gradient_step = gradient_step if update_step is None else update_step
        if not self._bill.guard("tianshou_step", "comparing epochs", self._saves_at, epoch):
            return
        path = save_checkpoint_fn(epoch, env_step, gradient_step) if save_checkpoint_fn is not None else None
        marks = {"epoch": epoch, "env_step": env_step, "gradient_step": gradient_step}
        self._guard("save", lambda: self._register(marks, path))
        if self.writer is not None:
            for name, number in marks.items():
                self._guard("native", lambda n=name, v=number: self._to_native(f"save/{n}", v, {}))  # type: ignore[misc]

    def _saves_at(self, epoch: int) -> bool:
        if self.save_interval is None or epoch - self.last_save_step < self.save_interval:
            return False
        self.last_save_step = epoch
        return True

    def _register(self, marks: dict[str, int], path: object) -> None:
        if self.run is None:
            return
        clocks = {
            "epoch": marks["epoch"],
            "env_step": marks["env_step"],
            "gradient_step": self._gradient_steps,
            "step": marks["gradient_step"],
        }
        self._scope("save").log(marks, **clocks)
        exists = isinstance(path, (str, os.PathLike)) and os.path.exists(path)
        if path is not None and not exists:
            self._bill.report(
                "tianshou_no_file",
                f"save_checkpoint_fn returned {path!r:.200}, where there is no file; return the path of what it saved. "
                "The counters are kept",
            )
        run = getattr(self.run, "run", self.run)
        what: dict[str, Any] = {"path": path} if exists else {"state": marks, "keep": 2}
        what.update(clocks)
        self._checkpoint = run.save_checkpoint(**what)

    def restore_data(self) -> tuple[int, int, int]:
        """Return to the run's last checkpoint. Gives epoch, env_step and gradient_step as they were saved.

        Rows after that checkpoint are hidden (and kept), so that the continued run has one clean curve.
        Without a checkpoint, or after any failure, the result is (0, 0, 0), with a warning.
        """
        self._guard("training", self._follow)
        try:
            return self._restore()
        except ours(Exception) as err:
            reason = f"{type(err).__name__}: {err}"
            self._bill.report(
                "tianshou_restore", f"the counters could not be restored ({reason}); training begins at 0"
            )
            return 0, 0, 0

    def _restore(self) -> tuple[int, int, int]:
        run = getattr(self.run, "run", self.run)
        if run is None:
            return 0, 0, 0
        last_test = _last_test_step(run.book)
        restored = run.restore("last", random_states=False)
        if restored is None:
            return 0, 0, 0
        clocks = restored.clocks
        epoch, env_step = clocks.get("epoch", 0), clocks.get("env_step", 0)
        update_step = clocks.get("step", clocks.get("gradient_step", 0))
        self._gradient_steps = clocks.get("gradient_step", update_step)
        self._checkpoint = restored
        self.last_save_step = self.last_log_info_step = epoch
        self.last_log_train_step, self.last_log_update_step = env_step, update_step
        # A resumed trainer repeats the test. If that test was logged, the native file already has its point.
        self.last_log_test_step = min(env_step, last_test)
        self._best = _best_test(run.book)
        return epoch, env_step, update_step

    def save_best(self, save_best_fn: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap `save_best_fn`: it is called only for a model better than every earlier one, also those before a resume.

        A resumed trainer forgets its best score. It would call `save_best_fn` at once and overwrite the best model.
        Pass `save_best_fn=logger.save_best(fn)`; models are compared by the mean return of the test.

        Args:
          save_best_fn: the program's function of the algorithm.
        """

        def save(algorithm: object) -> None:
            score = self._last_test
            if not score <= self._best:
                self._best = score if score == score else self._best
                save_best_fn(algorithm)

        return save

    @staticmethod
    def restore_logged_data(log_path: str) -> dict[str, Any]:
        """The data logged under `log_path` (a run's folder, or one of Tianshou's), as nested dicts of arrays.

        Both `train` and `training` are present, and every array has its `steps` and `times`.
        """
        return restore_logged_data(log_path)

    # -- inside

    def _to_book(self, step_type: str, step: int, data: Mapping[str, object]) -> None:
        if self.run is None:
            return
        scope, _, counter = step_type.partition("/")
        if not counter or "/" in counter:
            self._bill.report(
                "tianshou_step_type",
                f"write(step_type={step_type!r}): a step type is '<scope>/<what the step counts>', such as "
                f"'train/env_step'; the data is kept under {scope!r} at step={step}",
            )
            counter = counter or "step"
        values: dict[str, object] = {counter: step}
        for name, value in flat(data):
            if value is None or (self.exclude_arrays and _is_array(value)):
                continue
            if hasattr(value, "savefig"):
                self._scope(scope).log_figure(name, value, **self._clocks(scope, counter, step))
            else:
                values[name] = value
        at = self._checkpoint
        if scope == DataScope.INFO and at is not None and at.clocks.get("epoch") == step:
            # Info comes after the epoch's checkpoint. Logged at the checkpoint's clocks, it stays when training resumes
            # from there.
            (getattr(self.run, "run", self.run)).scope(scope, at=at).log(values)
        else:
            self._scope(scope).log(values, **self._clocks(scope, counter, step))

    def _clocks(self, scope: str, counter: str, step: int) -> dict[str, int]:
        if counter in ("env_step", "epoch"):
            return {counter: step}
        if scope == DataScope.UPDATE:
            return {"gradient_step": self._gradient_steps or step, "step": step}
        return {"step": step}

    def _episodes(self, scope: str, data: Mapping[str, object], step: int) -> None:
        columns = episodes_of(data)
        if not columns or self.run is None:
            return
        n = len(columns["return"])
        batch = uuid.uuid4().hex[:12]
        columns["episode_id"] = [f"{batch}-{i}" for i in range(n)]
        self._scope(scope).record("episodes", columns, n=n, env_step=step)

    def _remember_test(self, data: Mapping[str, Any]) -> None:
        stat = data.get("returns_stat")
        if isinstance(stat, dict) and "mean" in stat:
            self._last_test = float(stat["mean"])
        elif "rew" in data:
            self._last_test = float(data["rew"])

    def _to_native(self, step_type: str, step: int, data: Mapping[str, Any]) -> None:
        writer, scope = self.writer, step_type.partition("/")[0]
        if writer is None:
            return
        writer.add_scalar(step_type, step, global_step=step)
        for name, value in data.items():
            if _is_array(value) and value.ndim:
                writer.add_histogram(f"{scope}/{name}", value, global_step=step, bins="auto")
            else:
                writer.add_scalar(f"{scope}/{name}", value, global_step=step)
        if self.write_flush:
            writer.flush()

    def _scope(self, name: str) -> Scope:
        scope = self._scopes.get(name)
        if scope is None:
            scope = self._scopes[name] = self.run.scope(str(name))  # type: ignore[union-attr]
        return scope

    def _guard(self, what: str, work: Callable[[], object]) -> None:
        self._bill.guard(f"tianshou_{what}", f"{what}: keeping a Tianshou record", work)

    def __getstate__(self) -> dict[str, Any]:
        """After unpickling, the run is another writer of the same run; a native writer stays in its process."""
        return {**self.__dict__, "writer": None, "_scopes": {}, "_finish": False}


def _is_array(value: object) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "__setitem__")


def _last_test_step(book: Book) -> int:
    """The env_step of the last test in the book, -1 if there is none."""
    steps = [clocks.get("env_step", -1) for key, (_, clocks, _) in book.latest().items() if key.startswith("test/")]
    return max(steps, default=-1)


def _best_test(book: Book) -> float:
    keys = [key for key in ("test/returns_stat/mean", "test/rew") if key in book.keys()]  # noqa: SIM118 - a method, no dict
    best = float("-inf")
    for key in keys:
        values = book.metrics([key]).column(key).drop_null().to_pylist()
        best = max([best, *values])
    return best


def flat(data: Mapping[Any, object], parent_key: str = "", delimiter: str = "/") -> Iterator[tuple[str, object]]:
    """The leaves of nested dicts with their keys joined; empty dicts are dropped."""
    for key, value in data.items():
        name = f"{parent_key}{delimiter}{key}" if parent_key else str(key)
        name = name.removeprefix(delimiter)
        if isinstance(value, Mapping):
            yield from flat(value, name, delimiter)
        else:
            yield name, value


def for_native(
    data: Mapping[Any, object],
    parent_key: str = "",
    delimiter: str = "/",
    *,
    exclude_arrays: bool,
    clash: Callable[[str], None],
) -> dict[str, object]:
    """What Tianshou's own loggers keep of `data`: numbers (of more types than there), and arrays unless excluded.

    Args:
      clash: called with the name that two values of one dict share; the later value counts.
    """
    plain: dict[str, object] = {}
    for name, value in flat(data, parent_key, delimiter):
        is_array = hasattr(value, "__array_interface__") and hasattr(value, "ndim") and _is_ndarray(value)
        if is_array:
            if exclude_arrays:
                continue
        elif (not isinstance(value, Number) and scalar_of(value) is None) or isinstance(value, complex):
            continue
        if name in plain:
            clash(name)
        plain[name] = value
    return plain


def episodes_of(data: Mapping[str, object]) -> dict[str, Any]:
    """The columns of the table `episodes`, from arrays in a collector's report; {} if it has none."""
    returns: Any = data.get("returns", data.get("rews"))
    lengths: Any = data.get("lens")
    if not _is_ndarray(returns) or not len(returns):
        return {}
    columns: dict[str, object] = {}
    if returns.ndim == 1:
        columns["return"] = returns.astype(float).tolist()
    else:  # one column per agent
        columns["return"] = returns.reshape(len(returns), -1).sum(axis=1).astype(float).tolist()
        columns["returns"] = [row.tolist() for row in returns]
    if _is_ndarray(lengths) and len(lengths) == len(returns):
        columns["length"] = lengths.astype(int).tolist()
    return columns


def _is_ndarray(value: object) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "astype") and hasattr(value, "__setitem__")
