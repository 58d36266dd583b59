"""The interface a trainer sees: intervals, names, dicts, native files. Nothing of Tianshou is needed."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollbook.adapters.tianshou import (
    BaseLogger,
    DataScope,
    LazyLogger,
    LoggerFactory,
    RollbookLogger,
    TensorboardLogger,
)
from rollbook.errors import BadInput, RollbookWarning


class Plain(BaseLogger):
    """A logger of somebody's own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.written: list[tuple[str, int, dict[str, Any]]] = []

    def write(self, step_type: str, step: int, data: dict[str, Any]) -> None:
        self.written.append((step_type, step, data))

    def prepare_dict_for_logging(self, log_data: dict[str, Any]) -> dict[str, Any]:
        return dict(log_data)

    def finalize(self) -> None: ...

    def save_data(self, epoch: int, env_step: int, gradient_step: int, save_checkpoint_fn: Any = None) -> None: ...

    def restore_data(self) -> tuple[int, int, int]:
        return 1, 2, 3

    @staticmethod
    def restore_logged_data(log_path: str) -> dict[str, Any]:
        return {"path": log_path}


class Writer:
    """Stands for a SummaryWriter."""

    def __init__(self) -> None:
        self.scalars: list[tuple[str, Any, int]] = []
        self.histograms: list[tuple[str, list[float], int]] = []
        self.flushes = 0
        self.closed = False

    def add_scalar(self, tag: str, value: Any, global_step: int) -> None:
        self.scalars.append((tag, value, global_step))

    def add_histogram(self, tag: str, values: Any, global_step: int, bins: str) -> None:
        self.histograms.append((tag, list(values), global_step))

    def flush(self) -> None:
        self.flushes += 1

    def close(self) -> None:
        self.closed = True


# -- scopes and base class


def test_there_are_four_scopes_and_both_names_of_the_first() -> None:
    assert [str(scope) for scope in DataScope] == ["train", "test", "update", "info"]
    assert DataScope.TRAINING == "training"
    assert f"{DataScope.TEST}/x" == "test/x"


def test_a_logger_that_lacks_methods_cannot_be_made_and_the_error_names_them() -> None:
    class Half(BaseLogger):
        def write(self, step_type: str, step: int, data: dict[str, Any]) -> None: ...

    with pytest.raises(TypeError) as error:
        Half()  # type: ignore[abstract]
    for name in ("prepare_dict_for_logging", "finalize", "save_data", "restore_data", "restore_logged_data"):
        assert name in str(error.value)


@pytest.mark.parametrize(
    ("interval", "steps", "due"),
    [
        (1000, [0, 998, 999, 1500, 1998, 1999], [999, 1999]),
        (1, [0, 0, 1, 5, 3, -1, 6], [0, 1, 5, 6]),
        (0, [0, 0, 3, 2, 3], [0, 0, 3, 3]),
        (10, [9, 18, 19, 30], [9, 19, 30]),
    ],
)
def test_intervals_thin_by_the_rule_of_tianshou(interval: int, steps: list[int], due: list[int]) -> None:
    logger = Plain(train_interval=interval)
    for step in steps:
        logger.log_train_data({}, step)
    assert [step for _, step, _ in logger.written] == due


def test_defaults_are_those_of_the_documentation() -> None:
    logger = Plain()
    intervals = (logger.train_interval, logger.test_interval, logger.update_interval, logger.info_interval)
    assert intervals == (1000, 1, 1000, 1)
    assert logger.exclude_arrays is True
    assert logger.save_interval is None


def test_both_orders_of_arguments_and_both_names_are_understood() -> None:
    documented = Plain(1, 2, 3, 4, False)
    assert (documented.exclude_arrays, documented.save_interval) == (False, None)
    current = Plain(1, 2, 3, 4, 7, False)
    assert (current.exclude_arrays, current.save_interval) == (False, 7)
    named = Plain(training_interval=5)
    assert named.train_interval == named.training_interval == 5
    named.last_log_training_step = 8
    assert named.last_log_train_step == 8


def test_the_step_types_say_scope_and_counter() -> None:
    logger = Plain(0, 0, 0, 0)
    logger.log_train_data({}, 1)
    logger.log_training_data({}, 2)
    logger.log_test_data({}, 3)
    logger.log_update_data({}, 4)
    logger.log_info_data({}, 5)
    assert [(kind, step) for kind, step, _ in logger.written] == [
        ("train/env_step", 1),
        ("training/env_step", 2),
        ("test/env_step", 3),
        ("update/gradient_step", 4),
        ("info/epoch", 5),
    ]


def test_an_interval_that_is_none_is_named() -> None:
    with pytest.raises(BadInput, match="test_interval=-1"):
        Plain(test_interval=-1)


@pytest.mark.parametrize("arguments", [(), (1000, 1, 1000, 1, True)])
def test_the_lazy_logger_takes_no_arguments_or_the_documented_five(arguments: tuple[Any, ...]) -> None:
    logger = LazyLogger(*arguments)
    logger.write("train/env_step", 1, {"a": 1})
    logger.log_test_data({"a": 1}, 1)
    logger.save_data(1, 2, 3, None)
    logger.finalize()
    assert logger.restore_data() == (0, 0, 0)
    assert LazyLogger.restore_logged_data("anywhere") == {}
    assert logger.prepare_dict_for_logging({"x": 1}) == {"x": 1}


# -- dicts


def test_nested_dicts_become_flat_and_only_numbers_stay(run: Any) -> None:
    logger = RollbookLogger(run)
    nested = {
        "a": {"b": 1, "c": {3: 2.5}},
        "ok": np.bool_(True),
        "dec": Decimal("1.5"),
        "frac": Fraction(1, 4),
        "nan": math.nan,
        "text": "x",
        "none": None,
        "list": [1],
        "arr": np.arange(3),
        "complex": 1j,
        "empty": {},
    }
    found = logger.prepare_dict_for_logging(nested)
    assert set(found) == {"a/b", "a/c/3", "ok", "dec", "frac", "nan"}
    assert logger.prepare_dict_for_logging({"a": 1}, parent_key="p") == {"p/a": 1}
    assert set(logger.prepare_dict_for_logging({"arr": np.arange(3)}, exclude_arrays=False)) == {"arr"}


def test_a_delimiter_is_taken_off_as_a_whole_and_not_by_its_letters(run: Any) -> None:
    logger = RollbookLogger(run)
    assert logger.prepare_dict_for_logging({"banana": {"x": 1}}, delimiter="ab") == {"bananaabx": 1}
    assert logger.prepare_dict_for_logging({"/a": 1}) == {"a": 1}


def test_two_values_that_come_to_one_name_are_reported(run: Any) -> None:
    with pytest.warns(RollbookWarning, match="'a/b'"):
        RollbookLogger(run).prepare_dict_for_logging({"a/b": 1, "a": {"b": 2}})


# -- the book and the native file


def test_the_book_has_every_call_and_the_native_file_what_the_intervals_let_through(run: Any) -> None:
    writer = Writer()
    logger = RollbookLogger(run, writer=writer)
    for step in range(0, 3000, 100):
        logger.log_training_data({"n": step, "returns_stat": None}, step)
    steps = [step for tag, _, step in writer.scalars if tag == "training/env_step"]
    assert steps == [1000, 2000]
    table = run.book.metrics(["training/n", "training/env_step"], x="env_step")
    assert table.column("training/n").to_pylist() == list(range(0, 3000, 100))
    assert table.column("training/env_step").to_pylist() == list(range(0, 3000, 100))
    assert table.column("env_step").to_pylist() == list(range(0, 3000, 100))


def test_the_native_file_gets_what_tianshous_own_logger_writes(run: Any) -> None:
    writer = Writer()
    logger = RollbookLogger(run, 1, 1, 1, 1, False, writer=writer)
    logger.log_test_data({"a": {"mean": 1.5}, "lens": np.array([3, 4]), "name": "x"}, 30)
    assert writer.scalars == [("test/env_step", 30, 30), ("test/a/mean", 1.5, 30)]
    assert writer.histograms == [("test/lens", [3, 4], 30)]
    assert writer.flushes == 1
    logger.save_data(1, 30, 5, None)
    assert writer.scalars[2:] == [("save/epoch", 1, 1), ("save/env_step", 30, 30), ("save/gradient_step", 5, 5)]
    logger.finalize()
    assert writer.closed
    assert run.status == "running"


def test_tianshous_own_class_of_this_name_can_be_replaced_by_its_import(run: Any) -> None:
    native = Writer()
    logger = TensorboardLogger(native, 10, 1, 20, 1, 3, False, run=run)
    assert (logger.train_interval, logger.update_interval, logger.save_interval) == (10, 20, 3)
    logger.log_test_data({"returns_stat": {"mean": 2.0}}, 5)
    assert run.book.latest()["test/returns_stat/mean"][0] == 2.0
    assert logger.writer is native
    assert logger.prepare_dict_for_logging(input_dict={"a": {"b": 1}}, delimiter=".") == {"a.b": 1}
    logger.save_data(3, 30, update_step=7)
    assert logger.restore_data() == (3, 30, 7)


def test_the_run_it_opens_takes_the_arguments_of_init(tmp_path: Path) -> None:
    options = {"dir": tmp_path / "books", "sinks": (), "keeper": "inline", "tags": ["sweep"]}
    logger = RollbookLogger(project="cartpole", run_options=options)
    run = logger.run
    assert (run.project, run.folder.parent.parent) == ("cartpole", tmp_path / "books")
    logger.finalize()
    assert run.status == "finished"


def test_every_gradient_step_has_its_row_and_its_number(run: Any) -> None:
    """Tianshou 2 gives all gradient steps of an update step one number, and its own logger keeps the first alone."""
    logger = RollbookLogger(run)
    for update in (1, 2):
        for i in range(3):
            logger.log_update_data({"loss": update + i / 10}, update)
    table = run.book.metrics(["update/loss"], x="gradient_step")
    assert table.column("gradient_step").to_pylist() == [1, 2, 3, 4, 5, 6]
    assert table.column("step").to_pylist() == [1, 1, 1, 2, 2, 2]
    assert table.column("update/loss").to_pylist() == [1.0, 1.1, 1.2, 2.0, 2.1, 2.2]


def test_an_on_policy_update_moves_the_gradient_step_by_what_it_says(run: Any) -> None:
    logger = RollbookLogger(run)
    logger.log_update_data({"loss": {"mean": 1.0}, "gradient_steps": 40}, 1)
    logger.log_update_data({"loss": {"mean": 2.0}, "gradient_steps": 40}, 2)
    assert run.book.metrics(["update/loss/mean"]).column("gradient_step").to_pylist() == [40, 80]


def test_counters_beyond_a_32_bit_float_stay_exact(run: Any) -> None:
    RollbookLogger(run).log_test_data({"x": 16777217}, 16777217)
    table = run.book.metrics(["test/env_step"])
    assert table.column("test/env_step").to_pylist() == [16777217]
    assert table.column("env_step").to_pylist() == [16777217]


def test_episodes_that_a_collector_reports_have_rows_of_their_own(run: Any) -> None:
    logger = RollbookLogger(run)
    logger.log_training_data({"returns": np.array([1.5, 2.5]), "lens": np.array([10, 20])}, 30)
    logger.log_training_data({"returns": np.array([]), "lens": np.array([])}, 40)
    logger.log_test_data({"returns": np.array([9.0]), "lens": np.array([7])}, 40)
    rows = run.book.episodes().to_pylist()
    assert [(r["scope"], r["return"], r["length"], r["env_step"]) for r in rows] == [
        ("training", 1.5, 10, 30),
        ("training", 2.5, 20, 30),
        ("test", 9.0, 7, 40),
    ]
    assert len({r["episode_id"] for r in rows}) == 3


def test_arrays_are_kept_as_distributions_if_they_are_not_excluded(run: Any) -> None:
    RollbookLogger(run).log_test_data({"lens": np.array([1, 2])}, 1)
    assert "test/lens" not in run.book.histograms().column("key").to_pylist()
    RollbookLogger(run, exclude_arrays=False).log_test_data({"lens": np.array([1, 2])}, 2)
    assert "test/lens" in run.book.histograms().column("key").to_pylist()


def test_a_step_type_without_a_counter_is_reported_and_kept(run: Any) -> None:
    with pytest.warns(RollbookWarning, match="'mine'"):
        RollbookLogger(run).write("mine", 3, {"x": 1.0})
    assert run.book.metrics(["mine/x"]).column("step").to_pylist() == [3]


def test_a_broken_native_writer_does_not_stop_the_training(run: Any) -> None:
    class Broken(Writer):
        def add_scalar(self, tag: str, value: Any, global_step: int) -> None:
            raise OSError("no space left")

    logger = RollbookLogger(run, writer=Broken())
    with pytest.warns(RollbookWarning, match="no space left"):
        logger.log_test_data({"x": 1.0}, 1)
    assert run.book.metrics(["test/x"]).num_rows == 1


# -- checkpoints


def test_the_checkpoint_function_is_called_every_interval_of_epochs(run: Any, tmp_path: Path) -> None:
    calls: list[tuple[int, int, int]] = []

    def save(epoch: int, env_step: int, gradient_step: int) -> str:
        calls.append((epoch, env_step, gradient_step))
        path = tmp_path / f"model_{epoch}.pth"
        path.write_bytes(b"weights")
        return str(path)

    logger = RollbookLogger(run, save_interval=2)
    for epoch in range(1, 6):
        logger.save_data(epoch, epoch * 100, epoch * 10, save)
    assert calls == [(1, 100, 10), (3, 300, 30), (5, 500, 50)]
    table = run.book.metrics(["save/epoch", "save/env_step", "save/gradient_step"], x="epoch")
    assert table.column("save/gradient_step").to_pylist() == [10, 30, 50]
    assert run.book.checkpoints().num_rows == 3


def test_by_default_every_epoch_is_saved(run: Any) -> None:
    """Tianshou's default never calls the function it was given."""
    calls: list[int] = []
    logger = RollbookLogger(run)
    for epoch in (1, 2):
        logger.save_data(epoch, 1, 1, lambda epoch, *_: calls.append(epoch) or "")  # type: ignore[func-returns-value]
    assert calls == [1, 2]


def test_a_new_run_restores_zeros(run: Any) -> None:
    assert RollbookLogger(run).restore_data() == (0, 0, 0)


def test_an_error_while_restoring_gives_zeros_and_a_warning(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = RollbookLogger(run)

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(type(run), "restore", broken)
    with pytest.warns(RollbookWarning, match="the disk is gone"):
        assert logger.restore_data() == (0, 0, 0)


def test_a_wrapped_best_function_keeps_the_best_of_all_attempts(run: Any) -> None:
    """A resumed trainer calls save_best_fn at once, whatever was reached before."""
    saved: list[str] = []
    logger = RollbookLogger(run)
    logger._best = 5.0
    save = logger.save_best(saved.append)
    for name, score in (("resumed", 3.0), ("worse", 4.0), ("better", 6.0)):
        logger.log_test_data({"returns_stat": {"mean": score}}, 1)
        save(name)
    assert saved == ["better"]


def test_the_logger_and_the_factory_can_be_pickled(run: Any) -> None:
    logger = pickle.loads(pickle.dumps(RollbookLogger(run, 10, writer=Writer())))
    assert logger.train_interval == 10
    assert logger.writer is None
    logger.log_test_data({"x": 2.0}, 1)
    assert run.book.metrics(["test/x"]).column("test/x").to_pylist() == [2.0]
    factory = pickle.loads(pickle.dumps(LoggerFactory("proj", init={"tags": ["a"]})))
    assert factory.get_logger_class() is RollbookLogger
    assert "proj" in repr(factory)


def test_the_factory_opens_a_run_per_experiment_and_tianshous_folder_leads_to_it(tmp_path: Path) -> None:
    log_dir = tmp_path / "log" / "exp" / "exp_seed=42"
    factory = LoggerFactory("proj", init={"dir": tmp_path / "runs", "sinks": [], "keeper": "inline"})
    logger = factory.create_logger(str(log_dir), "a/b", None, {"lr": 0.1})
    assert (logger.run.name, logger.run.seed, dict(logger.run.config)) == ("a-b", 42, {"lr": 0.1})
    logger.log_test_data({"x": 1.5}, 10)
    logger.finalize()
    assert logger.run.status == "finished"
    found = RollbookLogger.restore_logged_data(str(log_dir))
    np.testing.assert_array_equal(found["test"]["x"], [1.5])
    np.testing.assert_array_equal(found["test"]["x"].steps, [10])
