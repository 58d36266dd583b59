"""What TensorFlow writes is read from its files, whoever wrote them: here a stand-in with TensorFlow's own names."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorboard")

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

import rollbook
from rollbook.adapters import tensorboard
from waiting import until


class Tensor:
    """A value or the handle of a writer; a program may only hold the handle."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def numpy(self) -> Any:
        return self.value


class Operations(ModuleType):
    """tensorflow.python.ops.gen_summary_ops: writes files where Python sees no value."""

    def __init__(self) -> None:
        super().__init__("tensorflow.python.ops.gen_summary_ops")
        self.files: dict[int, RecordWriter] = {}

        def create_summary_file_writer(writer: Tensor, logdir: Tensor) -> None:
            folder = os.fsdecode(logdir.numpy())
            os.makedirs(folder, exist_ok=True)
            name = f"events.out.tfevents.1.host.{os.getpid()}.{len(self.files)}.v2"
            self.files[id(writer)] = RecordWriter(Path(folder, name).open("wb"))  # noqa: SIM115

        def flush_summary_writer(writer: Tensor) -> None:
            self.files[id(writer)].flush()

        def close_summary_writer(writer: Tensor) -> None:
            self.files[id(writer)].close()

        self.create_summary_file_writer = create_summary_file_writer
        self.flush_summary_writer, self.close_summary_writer = flush_summary_writer, close_summary_writer

    def write(self, writer: Tensor, tag: str, value: Any, step: int, plugin: str = "scalars") -> None:
        about = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
        one = Summary.Value(tag=tag, tensor=make_tensor_proto(value), metadata=about)
        event = Event(step=step, wall_time=1.8e9 + step, summary=Summary(value=[one]))
        self.files[id(writer)].write(event.SerializeToString())


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    operations = Operations()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    monkeypatch.setitem(sys.modules, operations.__name__, operations)
    own = dict(vars(operations))
    tensorboard.install(run_options={"sinks": [], "keeper": "inline"})
    yield operations
    tensorboard.uninstall()
    assert {name: vars(operations)[name] for name in own} == own, "TensorFlow's own functions are back"


def begin(operations: Any, folder: str) -> Tensor:
    writer = Tensor()
    operations.create_summary_file_writer(writer, Tensor(folder.encode()))
    return writer


def test_numbers_texts_and_histograms_of_tf_summary_are_in_a_run_that_ends_with_the_writer(
    operations: Any, tmp_path: Path
) -> None:
    writer = begin(operations, "logs/dqn")
    for step in range(30):
        operations.write(writer, "loss", np.float32(step / 2), step)
    operations.write(writer, "gin", np.array("a = 1", dtype=object), 0, "text")
    operations.write(writer, "weights", np.array([[0.0, 1.0, 3.0], [1.0, 2.0, 1.0]]), 4, "histograms")
    operations.close_summary_writer(writer)
    (book,) = rollbook.open(tmp_path / "runs")
    assert (book.name, book.status) == ("dqn", "finished")
    assert book.metrics(["loss"])["loss"].to_pylist() == [step / 2 for step in range(30)]
    assert [row["env_step"] for row in book.metrics(["loss"]).to_pylist()] == list(range(30))
    assert book.table("text").to_pylist()[0]["text"] == "a = 1"
    (histogram,) = book.table("histograms").to_pylist()
    assert (histogram["counts"], histogram["edges"], histogram["step"]) == ([3.0, 1.0], [0.0, 1.0, 2.0], 4)


@pytest.mark.parametrize("how", ["time goes by", "it is flushed", "nothing refers to it"])
def test_what_a_writer_of_tensorflow_holds_comes_while_the_program_goes_on(
    operations: Any, tmp_path: Path, how: str
) -> None:
    writer: Tensor | None = begin(operations, "logs/dqn")
    assert writer is not None
    operations.write(writer, "loss", 0.5, 1)
    if how == "it is flushed":
        operations.flush_summary_writer(writer)
    if how == "nothing refers to it":
        operations.flush_summary_writer.__wrapped__(writer)
        writer = None
        gc.collect()

    def book() -> Any:
        return rollbook.open(tmp_path / "runs").one()

    until(lambda: "loss" in book().latest(), "the value")
    if how == "nothing refers to it":
        until(lambda: book().status == "finished", "the end of the run")


def test_writers_of_training_and_evaluation_are_one_run(operations: Any, tmp_path: Path) -> None:
    training, evaluation = begin(operations, "logs/dqn/train"), begin(operations, "logs/dqn/eval")
    operations.write(training, "loss", 0.5, 1)
    operations.write(evaluation, "return", 7.0, 1)
    operations.close_summary_writer(training)
    operations.close_summary_writer(evaluation)
    (book,) = rollbook.open(tmp_path / "runs")
    assert {key: value for key, (value, *_) in book.latest().items()} == {"loss": 0.5, "eval/return": 7.0}


def test_what_is_evaluated_before_anything_is_trained_is_called_so(operations: Any, tmp_path: Path) -> None:
    """Keras makes the writer of validation/ first."""
    validation, training = begin(operations, "logs/validation"), begin(operations, "logs/train")
    operations.write(validation, "epoch_loss", 2.0, 0)
    operations.write(training, "epoch_loss", 1.0, 0)
    operations.close_summary_writer(training)
    operations.close_summary_writer(validation)
    latest = rollbook.open(tmp_path / "runs").one().latest()
    assert {key: value for key, (value, *_) in latest.items()} == {
        "validation/epoch_loss": 2.0,
        "train/epoch_loss": 1.0,
    }


def test_a_program_that_opens_many_writers_in_turn_has_one_thread_that_reads(operations: Any, tmp_path: Path) -> None:
    """Keras opens new ones with each `fit`."""
    before = set(threading.enumerate())
    for n in range(5):
        writer = begin(operations, f"logs/fit-{n}")
        operations.write(writer, "loss", 0.5, n)
        operations.close_summary_writer(writer)
    new = set(threading.enumerate()) - before
    assert len([thread for thread in new if thread.name == "rollbook-tensorflow"]) == 1
    assert sorted(book.latest()["loss"][0] for book in rollbook.open(tmp_path / "runs")) == [0.5] * 5
