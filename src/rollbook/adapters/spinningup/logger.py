"""`Logger` and `EpochLogger` with Spinning Up's names and files, writing to a rollbook run.

    from rollbook.adapters.spinningup import EpochLogger     # was: from spinup.utils.logx import EpochLogger

    logger = EpochLogger(output_dir="data/vpg/vpg_s0", exp_name="vpg")
    logger.store(EpRet=21.0, EpLen=21)                       # many times an epoch
    logger.log_tabular("Epoch", 0)
    logger.log_tabular("EpRet", with_min_and_max=True)       # AverageEpRet, StdEpRet, MaxEpRet, MinEpRet
    logger.dump_tabular()

progress.txt and config.json are written to `output_dir` in the form that Spinning Up's plotter reads. The run gets:

- each dumped row under its native names, with the clocks epoch (from Epoch) and env_step (from TotalEnvInteracts);
- each stored value, raw, under `store/<key>`;
- stored episodes (EpRet with EpLen, TestEpRet with TestEpLen) as rows of `episodes`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from functools import partial

from rollbook.adapters._run import end_training, find_run, lies_beside, options_of, reported
from rollbook.adapters._table import GrowingTable
from rollbook.adapters._trackers import Trackers
from rollbook.adapters.spinningup import saving
from rollbook.adapters.spinningup.naming import colorize
from rollbook.adapters.spinningup.serialization import config_text, convert_json
from rollbook.adapters.spinningup.statistics import num_procs, old_statistics, proc_id, sample_statistics
from rollbook.errors import UnknownOption, did_you_mean
from rollbook.system.bill import Bill
from rollbook.system.files import replacing
from rollbook.system.guard import ours
from rollbook.system.tuning import TUNING
from rollbook.values.arrays import is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, ClassVar, Self

    from rollbook.run.run import Run
    from rollbook.run.scope import Scope


def _failed(self: Any, verb: str, err: Exception) -> None:
    if self.compat:
        raise err
    self._count.failed(f"logger_{verb}", f"{type(self).__name__}.{verb}()", err)


_counted = reported(_failed)
"""Decorates methods: failures are counted and reported once; with compat=True they raise, as in Spinning Up."""


class Logger:
    """Tables of diagnostics, a configuration and saved agents.

    Args:
      output_dir: where progress.txt, config.json and saved agents go. None: a new temporary folder.
      output_fname: name of the table.
      exp_name: name of the experiment, stored in config.json.
      neptune_experiment: a Neptune experiment or run that also gets every row and the configuration.
      trackers: further such objects (W&B, MLflow, a SummaryWriter, a function of (row, step) …).
      run: the rollbook run. None uses the current run or opens one; False records nothing.
      project: of a run that is opened here; default: the experiment's name.
      run_options: further arguments of `rollbook.init` for it.
      existing: what to do with an existing table: "append" to it, or "replace" it.
      compat: behave as Spinning Up, including its faults: float32 statistics, a fixed set of columns, an AssertionError
        for a key that is new or set twice, an IndexError for an epoch without values, a table that is emptied at the
        start.
    Threads: one, as in Spinning Up. Ranks above 0 write no files, take part in statistics and write to rank 0's run.
    Only the constructor raises, unless compat or strict is set; failures are counted (`run.bill()`) and reported once.

    Attributes:
      output_dir, output_file, exp_name, first_row, log_headers, log_current_row: as in Spinning Up.
      run: the run that also gets the rows.
    Raises:
      UnknownOption: `existing` has another value.
    """

    CLOCKS: ClassVar[Mapping[str, str]] = {"Epoch": "epoch", "TotalEnvInteracts": "env_step"}
    """Which logged keys are clocks of the row. Override it in a subclass for other names."""

    def __init__(
        self,
        output_dir: str | os.PathLike[str] | None = None,
        output_fname: str = "progress.txt",
        exp_name: str | None = None,
        neptune_experiment: object = None,
        *,
        trackers: Iterable[object] = (),
        run: object = None,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
        existing: str = "append",
        compat: bool = False,
    ) -> None:
        if existing not in ("append", "replace"):
            choices = ["append", "replace"]
            raise UnknownOption(
                f"existing={existing!r} is not one of the choices.", did_you_mean(str(existing), choices)
            )
        self.exp_name = exp_name
        self.first_row = True
        self.log_headers: list[str] = []
        self.log_current_row: dict[str, object] = {}
        self.compat = compat
        self.output_dir: str | None = None
        self.output_file: Any = None
        self._leads = proc_id() == 0
        self._table: GrowingTable | None = None
        self._epochs = 0
        if self._leads:
            self.output_dir = os.fspath(output_dir or tempfile.mkdtemp(prefix="experiment-"))
            if os.path.exists(self.output_dir) and output_dir:
                _print(f"Warning: Log dir {self.output_dir} already exists! Storing info there anyway.")
            os.makedirs(self.output_dir, exist_ok=True)
            path = os.path.join(self.output_dir, output_fname)
            self._table = GrowingTable(path, "\t", append=existing == "append" and not compat)
            self.output_file = self._table
            self.log_headers = list(self._table.columns)
        self.run, self._owned = self._find_run(run, project, run_options)
        self._count = Bill(to=self.run)
        lies_beside(self.run, self.output_dir)
        self._trackers = Trackers([neptune_experiment, *trackers] if self._leads else (), self._count)
        if self._table is not None:
            self.log(f"Logging data to {self._table.path}")

    # -- called by Spinning Up's programs

    @_counted
    def log(self, msg: str, color: str = "green") -> None:
        """Print a message, in colour if the output is a terminal; rank 0 only.

        Args:
          msg: the message.
          color: a name that `colorize` knows.
        """
        if self._leads:
            _print(self._coloured(msg, color))

    @_counted
    def log_tabular(self, key: str, val: object) -> None:
        """Set a value of the current row. If a key is set twice, the later value is used (reported once).

        Args:
          key: the column.
          val: a number, or anything whose text is to be shown.
        Raises:
          AssertionError: only with compat=True: a new key after the first row, or one that is set twice.
        """
        if self.compat:
            if not self.first_row and key not in self.log_headers:
                raise AssertionError(
                    f"Trying to introduce a new key {key} that you didn't include in the first iteration"
                )
            if key in self.log_current_row:
                raise AssertionError(f"You already set {key} this iteration. Maybe you forgot to call dump_tabular()")
        elif key in self.log_current_row:
            self._count(
                "set_twice",
                message=f"log_tabular({key!r}) was called twice before dump_tabular(); the later value was kept",
            )
        if key not in self.log_headers:
            self.log_headers.append(key)
        self.log_current_row[key] = val

    @_counted
    def save_config(self, config: Mapping[str, object]) -> None:
        """Store a configuration: print it, and write it to config.json, the run's config and the trackers.

        Args:
          config: name -> value; `convert_json` says how each is written. Its `seed` becomes that of a run without
            one: Spinning Up's algorithms save their arguments.
        """
        plain = convert_json(dict(config))
        if self.exp_name is not None:
            plain["exp_name"] = self.exp_name
        if not self._leads:
            return
        text = config_text(plain)
        _print(self._coloured("Saving config:\n", "cyan"))
        _print(text)
        self._count.guard("config_file", f"writing {self.output_dir}/config.json", lambda: self._write_config(text))
        run = getattr(self.run, "run", self.run)  # a scope has the configuration of its run
        if run is not None:
            self._count.guard("config", "keeping the configuration in the run", lambda: run.config.update(plain))
        self._trackers.config(plain)

    @_counted
    def save_state(self, state_dict: Mapping[str, object], itr: int | None = None) -> None:
        """Save `state_dict` (vars.pkl) and the objects of the savers. Each file is replaced atomically.

        Args:
          state_dict: the state of the experiment, such as {"env": env}.
          itr: number of this save; None overwrites the unnumbered one.
        """
        if not self._leads or self.output_dir is None:
            return
        folder, number = self.output_dir, saving.suffix(itr)
        paths: list[str | None] = []
        try:
            paths.append(saving.save_vars(state_dict, folder, itr))
        except ours(Exception) as err:
            self.log("Warning: could not pickle state_dict.", color="red")
            self._count("save_state", message=f"vars{number}.pkl was not written: {type(err).__name__}: {err}")
        guard = self._count.guard
        if hasattr(self, "tf_saver_elements"):
            paths.append(guard("save_state", "saving the TensorFlow graph", lambda: self._tf_simple_save(itr)))
        if hasattr(self, "pytorch_saver_elements"):
            paths.append(guard("save_state", "saving the PyTorch model", lambda: self._pytorch_simple_save(itr)))
        run = getattr(self.run, "run", self.run)
        if run is not None and paths and paths[-1]:
            clocks: dict[str, Any] = {"epoch": self._epochs}
            if itr is not None:
                clocks["gradient_step"] = itr
            # Tests and the row of an epoch come after its save.
            save = partial(run.save_checkpoint, path=paths[-1], through="epoch", **clocks)
            guard("checkpoint", "noting the checkpoint", save)

    @_counted
    def setup_tf_saver(self, sess: object, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Make `save_state` write tf1_save/. Only needs tensors with a `name`, not TensorFlow.

        Args:
          sess: the session.
          inputs, outputs: name -> tensor.
        """
        self.tf_saver_elements = {"session": sess, "inputs": inputs, "outputs": outputs}
        self.tf_saver_info = {
            "inputs": {key: value.name for key, value in inputs.items()},
            "outputs": {key: value.name for key, value in outputs.items()},
        }

    def setup_pytorch_saver(self, what_to_save: object) -> None:
        """Make `save_state` write pyt_save/model.pt.

        Args:
          what_to_save: a network, or any object that torch can pickle.
        """
        self.pytorch_saver_elements = what_to_save

    def dump_tabular(self) -> None:
        """Print the row, append it to the table, the run and the trackers, and begin a new one.

        A row without any value writes nothing.
        """
        row = self.log_current_row
        if self._leads and row:
            columns = list(self.log_headers)
            _print(render({key: row.get(key) for key in columns}, old_style=self.compat))
            table, guard = self._table, self._count.guard
            if table is not None:
                guard("progress_file", f"writing {table.path}", lambda: self._write_row(table, columns, row))
            clocks = self._clocks_of(row)
            if self.run is not None:
                run = self.run
                filled = {key: value for key, value in row.items() if value is not None and value != ""}
                guard("row", "keeping the row in the run", lambda: run.log(filled, **clocks))
            self._trackers.row(row, clocks.get("env_step"))
        if row:
            self._epochs += 1
        self.log_current_row.clear()
        self.first_row = False

    # -- additions to Spinning Up

    def close(self) -> None:
        """Close the table, and finish the run if this logger opened it. Calling it twice is fine."""
        if self._table is not None:
            self._count.guard("progress_file", f"closing {self._table.path}", self._table.close)
        end_training(self.run, self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        from rollbook.run.failure import status_of

        kind = exc[0]
        if self._owned and self.run is not None and isinstance(kind, type) and issubclass(kind, BaseException):
            end_training(self.run, self, status_of(kind))
        self.close()

    # -- parts

    def _find_run(
        self, run: object, project: str | None, options: Mapping[str, object] | None
    ) -> tuple[Run | None, bool]:
        folder = self.output_dir or ""
        seed = re.search(r"_s(\d+)$", os.path.basename(os.path.normpath(folder))) if folder else None
        if num_procs() > 1 and run is None:
            return _shared_run(lambda: self._open_run(project, options, folder, seed))
        if run is None:
            return self._open_run(project, options, folder, seed)
        return find_run(run, project="", name="", user=self)

    def _open_run(
        self, project: str | None, options: Mapping[str, object] | None, folder: str, seed: re.Match[str] | None
    ) -> tuple[Run | None, bool]:
        name = os.path.basename(os.path.normpath(folder)) or "spinningup"
        name = name[: -len(seed.group())] if seed is not None else name  # the same for all seeds
        return find_run(
            None,
            project=project or self.exp_name or "spinningup",
            name=name,
            seed=int(seed.group(1)) if seed else None,
            options=options_of(project or None, options),
            user=self,
        )

    def _clocks_of(self, row: Mapping[str, object]) -> dict[str, Any]:
        clocks: dict[str, object] = {"epoch": self._epochs}
        for key, clock in self.CLOCKS.items():
            if row.get(key) is not None and row[key] != "":
                clocks[clock] = row[key]
        return clocks

    def _write_row(self, table: GrowingTable, columns: list[str], row: Mapping[str, object]) -> None:
        table.add_columns(columns)
        cell = _old_cell if self.compat else _cell
        table.write({key: cell(value) for key, value in row.items()})

    def _write_config(self, text: str) -> None:
        path = os.path.join(self.output_dir or "", "config.json")
        with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
            file.write(text)

    def _tf_simple_save(self, itr: int | None = None) -> str:
        if not hasattr(self, "tf_saver_elements"):
            raise AssertionError("First have to setup saving with self.setup_tf_saver")
        return saving.save_tf_graph(self.tf_saver_elements, self.tf_saver_info, self.output_dir or "", itr)

    def _pytorch_simple_save(self, itr: int | None = None) -> str:
        if not hasattr(self, "pytorch_saver_elements"):
            raise AssertionError("First have to setup saving with self.setup_pytorch_saver")
        return saving.save_model(self.pytorch_saver_elements, self.output_dir or "", itr)

    def _coloured(self, text: str, color: str) -> str:
        is_terminal = getattr(sys.stdout, "isatty", lambda: False)()
        return colorize(text, color, bold=True) if is_terminal or self.compat else text


class EpochLogger(Logger):
    """A `Logger` that collects values during an epoch and logs their statistics over all ranks.

    Args:
      raw: also write each stored value to the run at once; with False it only gets the statistics.
    """

    def __init__(self, *args: Any, raw: bool = True, **kwargs: Any) -> None:
        """Same arguments as `Logger`. With raw=False the run only gets the statistics, not each stored value."""
        super().__init__(*args, **kwargs)
        self.epoch_dict: dict[str, list[object]] = {}
        self._scopes: dict[str, Scope] = {}
        self._raw = self.run.scope("store") if raw and self.run is not None else None

    def store(self, **kwargs: Any) -> None:
        """Collect numbers, arrays or tensors for the statistics of this epoch; each also goes to the run at once."""
        for key, value in kwargs.items():
            value = value.detach() if is_tensor(value) else value  # do not keep the graph of a loss alive
            stored = self.epoch_dict.get(key)
            if stored is None:
                stored = self.epoch_dict[key] = []
            elif len(stored) >= TUNING.stored_values:
                del stored[: TUNING.stored_values // 2]
                self._count(
                    "stored_but_not_logged",
                    message=f"{key!r} was stored {TUNING.stored_values} times and not logged since; older values "
                    "no longer count for its statistics. Log it every epoch, or do not store it",
                )
            stored.append(value)
        if self._raw is not None:
            self._keep_raw(kwargs)

    @_counted
    def log_tabular(
        self, key: str, val: object = None, with_min_and_max: bool = False, average_only: bool = False
    ) -> None:
        """Set a value or, without one, the statistics of the values stored under `key` since they were last logged.

        Args:
          key: the name; statistics are called Average<key>, Std<key>, Max<key>, Min<key>.
          val: a value. None: the statistics.
          with_min_and_max: also log the extremes.
          average_only: only log the mean, under the plain key.

        The standard deviation is the population's. If no rank stored a value (an epoch without a finished episode), the
        cells are empty and the run's row lacks these keys.
        """
        if val is not None:
            super().log_tabular(key, val)
        else:
            mean, std, low, high = self._statistics(key)
            super().log_tabular(key if average_only else f"Average{key}", mean)
            if not average_only:
                super().log_tabular(f"Std{key}", std)
            if with_min_and_max:
                super().log_tabular(f"Max{key}", high)
                super().log_tabular(f"Min{key}", low)
        self.epoch_dict[key] = []

    def get_stats(self, key: str) -> tuple[Any, Any]:
        """(mean, population standard deviation) of the values under `key`, which are kept; NaN if there are none.

        Args:
          key: the name.
        """
        mean, std, _, _ = self._statistics(key)
        return (float("nan"), float("nan")) if mean is None else (mean, std)

    def _statistics(self, key: str) -> tuple[object, object, object, object]:
        if self.compat:
            return old_statistics(self.epoch_dict[key])
        statistics = self._count.guard(
            "statistics", f"the statistics of {key!r}", lambda: sample_statistics(self.epoch_dict.get(key, []))
        )
        return statistics or (None, None, None, None)

    def _keep_raw(self, values: Mapping[str, object]) -> None:
        scope: Any = self._raw
        plain = {key: value if type(value) is float else _plain(value) for key, value in values.items()}
        scope.log(plain, epoch=self._epochs)
        for prefix, scope_name in (("", "train"), ("Test", "test")):
            if f"{prefix}EpRet" in values and f"{prefix}EpLen" in values:
                self._count.guard(
                    "episode", "keeping the episode", partial(self._keep_episode, prefix, scope_name, plain)
                )

    def _keep_episode(self, prefix: str, scope_name: str, values: Mapping[str, Any]) -> None:
        if self.run is not None:
            scope = self._scopes.get(scope_name)
            if scope is None:
                scope = self._scopes[scope_name] = self.run.scope(scope_name)
            result, length = float(values[f"{prefix}EpRet"]), int(values[f"{prefix}EpLen"])
            scope.log_episode(return_=result, length=length, epoch=self._epochs)


class DummyLogger:
    """Has the interface of a logger and does nothing; for ranks that do not log."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        return

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: None


def _plain(value: Any) -> Any:
    """A numpy array of one element as a number. Tensors stay unchanged: their device may be busy."""
    kind = type(value)
    return value.item() if kind.__module__ == "numpy" and value.size == 1 else value


def _cell(value: object) -> object:
    if isinstance(value, float) and type(value) is not float:
        return float(value)  # numpy's own text differs between its versions
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():
        return item()
    return value


def _old_cell(value: object) -> object:
    """The format of Spinning Up: the value's own text, which for a float32 has a float32's digits."""
    return value if isinstance(value, (int, float)) else str(value)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _shared_run(open_run: Any) -> tuple[Run | None, bool]:
    """One run for all ranks: rank 0 opens it and sends its folder to the others."""
    from rollbook.adapters.spinningup.statistics import broadcast_text
    from rollbook.run.session import attach

    run, owned = open_run() if proc_id() == 0 else (None, False)
    folder = broadcast_text(str(run.folder) if run is not None else "")
    if proc_id() == 0 or not folder:
        return run, owned
    return attach(folder), True


def render(row: Mapping[str, object], old_style: bool = False) -> str:
    """The row as a table of two columns, names and values, both right-aligned.

    Args:
      row: name -> value; None is shown as an empty cell.
      old_style: integers with three significant digits, and no wider column for long values.
    """
    cells = {key: _text(value, old_style) for key, value in row.items()}
    name_width = max(15, *map(len, cells)) if cells else 15
    value_width = 15 if old_style else max(15, *(len(text) for text in cells.values())) if cells else 15
    rule = "-" * (7 + name_width + value_width)
    lines = [f"| {key:>{name_width}} | {text:>{value_width}} |" for key, text in cells.items()]
    return "\n".join([rule, *lines, rule])


def _text(value: Any, old_style: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if old_style else value.replace("\n", "\\n").replace("\t", "\\t")
    if not old_style and isinstance(value, (bool, int)):
        return str(value)
    if hasattr(value, "__float__"):
        try:
            number = value.item() if getattr(value, "shape", None) == () else value
            if not old_style and isinstance(number, int):
                return str(number)
            return f"{float(number):8.3g}"
        except (TypeError, ValueError):
            return str(value)
    return str(value)
