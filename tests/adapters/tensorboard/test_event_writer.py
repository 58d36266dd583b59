"""rollbook's own event files: what each verb of a SummaryWriter leaves in them, read by TensorBoard's own code."""

from __future__ import annotations

import json
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util.tensor_util import make_ndarray

from rollbook.adapters.tensorboard import SummaryWriter
from rollbook.errors import RollbookWarning


@pytest.fixture
def writer(run: Any, tmp_path: Path) -> Any:
    return SummaryWriter(tmp_path / "logs", run=run)


def summaries(folder: Path) -> dict[str, Any]:
    """tag -> (step, summary value) of all event files of a folder."""
    found = {}
    for path in sorted(folder.glob("events.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                found[value.tag] = (event.step, value)
    return found


def test_a_number_is_written_whatever_holds_it(writer: Any, tmp_path: Path) -> None:
    for number, value in enumerate((5, 5.0, True, np.float32(5), np.array([5.0]), np.array([[5]]), np.int64(5))):
        writer.add_scalar(f"kind/{number}", value, 3)
    writer.add_scalar("kind/tensor", 5.0, 3, new_style=True)
    writer.add_scalar("kind/double", 0.1, 3, new_style=True, double_precision=True)
    writer.add_scalar("kind/titled", 5.0, 3, None, "A title", "what it is")
    writer.close()
    found = summaries(tmp_path / "logs")
    assert len(found) == 10
    assert {step for step, _ in found.values()} == {3}
    assert make_ndarray(found["kind/double"][1].tensor).item() == 0.1
    assert found["kind/titled"][1].metadata.display_name == "A title"
    assert writer.run.bill()["drops"] == {}


@pytest.mark.parametrize("bins", ["tensorflow", "auto", "fd", 7, [0.0, 50.0, 100.0], np.linspace(0, 100, 5)])
def test_a_histogram_counts_each_number_once_in_any_bins(writer: Any, tmp_path: Path, bins: Any) -> None:
    writer.add_histogram("h", np.arange(100.0), 1, bins=bins)
    writer.add_histogram("few", np.arange(100.0), 1, bins=bins, max_bins=4)
    writer.add_histogram("nothing", np.array([]), 1, bins=bins)
    writer.add_histogram("odd", [1.0, float("nan"), float("inf")], 1)
    writer.close()
    found = summaries(tmp_path / "logs")
    for tag in ("h", "few"):
        values = make_ndarray(found[tag][1].tensor)  # TensorBoard hands out rows of left, right, count
        assert values[:, 2].sum() == 100
    assert set(found) == {"h", "few", "odd"}


def test_numbers_outside_of_all_bins_get_bins_of_their_own(writer: Any, tmp_path: Path) -> None:
    writer.add_histogram("h", np.array([1e30, 2e30]), 1)
    writer.close()
    assert make_ndarray(summaries(tmp_path / "logs")["h"][1].tensor)[:, 2].sum() == 2


def test_hyper_parameters_have_a_beginning_and_an_end(writer: Any, tmp_path: Path) -> None:
    domain = {"lr": [0.1, 0.2]}
    writer.add_hparams(
        {"lr": 0.1, "fast": True, "algo": "ppo", "net": [64, 64], "none": None}, {"m": 1.0}, domain, "a", 5
    )
    writer.add_hparams({"lr": 0.2}, {"m": 2.0}, "b", 6)  # tensorboardX: name, global_step
    writer.add_hparams({"lr": 0.3}, {"m": 3.0}, name="c")
    writer.close()
    for name, expected in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        found = summaries(tmp_path / "logs" / name)
        parts = {
            tag: HParamsPluginData.FromString(value.metadata.plugin_data.content) for tag, (_, value) in found.items()
        }
        assert parts["_hparams_/session_end_info"].session_end_info.status == 1
        assert make_ndarray(found["m"][1].tensor).item() == expected
        if name == "a":
            began = parts["_hparams_/session_start_info"].session_start_info.hparams
            assert (began["lr"].number_value, began["fast"].bool_value) == (0.1, True)
            assert (began["algo"].string_value, began["net"].string_value) == ("ppo", "[64, 64]")
            infos = {info.name: info for info in parts["_hparams_/experiment"].experiment.hparam_infos}
            assert set(infos) == {"lr", "fast", "algo", "net"}
            assert [value.number_value for value in infos["lr"].domain_discrete.values] == [0.1, 0.2]
            assert found["m"][0] == 5
    assert (writer.run.config["lr"], writer.run.summary["m"]) == (0.3, 3.0)  # one pair, not the parts of two
    assert "fast" not in writer.run.config
    pairs = [(row["lr"], row["m"]) for row in writer.run.book.table("hparams").to_pylist()]
    assert pairs == [(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)]
    assert writer.run.bill()["drops"] == {}


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch writes these")
@pytest.mark.filterwarnings("ignore:.*not kept in the book")
def test_rare_verbs_need_torch_and_say_so_once_a_verb(writer: Any) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for step in range(2):
            writer.add_mesh("mesh", np.zeros((1, 4, 3)), global_step=step)
    (told,) = (str(each.message) for each in said if "pip install" in str(each.message))
    assert "add_mesh()" in told
    assert "torch" in told
    assert writer.run.bill()["drops"] == {"ignored_add_mesh": 2, "event_file_add_mesh_MissingExtra": 2}


def test_each_verb_and_kind_of_error_has_a_cause_of_its_own(writer: Any) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        writer.add_scalar("a", np.array([1.0, 2.0]), 1)
        writer.add_scalar("a", np.array([1.0, 2.0]), 2)
        writer.add_image("c", np.zeros((4,)), 1)
    causes = writer.run.bill()["drops"]
    assert causes["event_file_add_scalar_ValueError"] == 2
    assert causes["event_file_add_image_ValueError"] == causes["summary_writer_add_image_ValueError"] == 1
    assert sum("add_scalar() of the event file" in str(each.message) for each in said) == 1


@pytest.mark.filterwarnings("ignore:.*not kept in the book")
def test_a_verb_that_the_event_writer_lacks_is_named(writer: Any) -> None:
    with pytest.warns(RollbookWarning, match="event writer of rollbook has no add_openvino_graph"):
        writer.add_openvino_graph("net.xml")
    assert writer.run.bill()["drops"]["event_file_lacks_add_openvino_graph"] == 1


def test_an_argument_that_the_library_behind_lacks_costs_no_point(run: Any, rows: Any, native_writer: Any) -> None:
    calls: list[Any] = []

    class Native:
        def add_scalar(self, tag: str, value: Any, step: Any = None, walltime: Any = None) -> None:
            calls.append((tag, value, step))

    native_writer(Native())
    writer = SummaryWriter("x", run=run)
    with pytest.warns(RollbookWarning, match="takes no new_style="):
        writer.add_scalar("a", 1.0, 2, new_style=True)
    assert calls == [("a", 1.0, 2)]
    assert rows(run, "a") == [(1.0,)]


def test_steps_and_times_may_be_given_once_for_many_calls(writer: Any, rows: Any, tmp_path: Path) -> None:
    with writer.use_metadata(global_step=10, walltime=1_700_000_000.0) as same:
        same.add_scalar("a", 1.0)
        same.add_scalar("b", 2.0, 11)
        same.add_text("t", "hello")
    writer.add_scalar("a", 3.0, 12)
    writer.close()
    assert rows(writer.run, "a", x="step") == [(10, 1.0), (12, 3.0)]
    assert rows(writer.run, "b", x="step") == [(11, 2.0)]
    assert summaries(tmp_path / "logs")["t/text_summary"][0] == 10


def test_scalars_of_one_chart_are_exported_as_tensorboardx_does(writer: Any, tmp_path: Path) -> None:
    for step in range(2):
        writer.add_scalars("loss", {"train": step + 0.5, "test": 1.0}, step, walltime=1_700_000_000.0 + step)
    file = tmp_path / "all.json"
    writer.export_scalars_to_json(file)
    told = json.loads(file.read_text())
    folder = str(tmp_path / "logs" / "loss")
    assert told[f"{folder}/train"] == [[1_700_000_000.0, 0, 0.5], [1_700_000_001.0, 1, 1.5]]
    writer.add_scalars("loss", {"train": 9.0}, 2, walltime=1_700_000_009.0)
    writer.export_scalars_to_json(file)
    assert json.loads(file.read_text()) == {f"{folder}/train": [[1_700_000_009.0, 2, 9.0]]}
    writer.close()


def test_scalars_are_exported_without_a_book_too(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path / "logs", run=False)
    writer.add_scalars("loss", {"a": np.float32(0.5)}, 3, 7.0)
    writer.export_scalars_to_json(tmp_path / "all.json")
    assert json.loads((tmp_path / "all.json").read_text()) == {str(tmp_path / "logs" / "loss" / "a"): [[7.0, 3, 0.5]]}
    writer.close()


def test_a_list_of_pictures_is_a_batch(writer: Any, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    writer.add_images("batch", [np.zeros((3, 4, 6)), np.ones((3, 4, 6))], 1, dataformats="CHW")
    writer.close()
    (row,) = writer.run.book.media().to_pylist()
    assert (row["width"], row["height"]) == (12, 4)
    assert summaries(tmp_path / "logs")["batch"][0] == 1
    assert writer.run.bill()["drops"] == {}


def test_seed_and_total_come_from_the_table_of_hyper_parameters(run: Any) -> None:
    text = "|param|value|\n|-|-|\n|seed|7|\n|total_timesteps|500000|\n|exp_name|ppo|"
    SummaryWriter("x", run=run, events=False).add_text("hyperparameters", text)
    assert run.seed == 7
    assert (run.book.seed, run.book.info.total) == (7, {"env_step": 500_000})
    SummaryWriter("y", run=run, events=False).add_hparams({"seed": 8, "total_timesteps": 1}, {})
    assert (run.book.seed, run.book.info.total) == (7, {"env_step": 500_000})


def test_messages_made_elsewhere_can_be_written(tmp_path: Path, writer: Any) -> None:
    from tensorboard.compat.proto.summary_pb2 import Summary

    writer.file_writer.add_summary(Summary(value=[Summary.Value(tag="a", simple_value=1.0)]), 4)
    writer.close()
    assert summaries(tmp_path / "logs")["a"][0] == 4


def test_a_library_that_writes_event_files_without_a_summary_writer_is_recorded(run: Any, tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary import Writer
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from rollbook.adapters import tensorboard

    def write(number: float) -> None:
        bare = EventFileWriter(str(tmp_path / "bare"))  # as skrl does
        bare.add_event(Event(step=7, wall_time=1.7e9, summary=Summary(value=[{"tag": "loss", "simple_value": number}])))
        bare.close()
        newer = Writer(str(tmp_path / "newer"))
        newer.add_scalar("return", number, step=8)
        newer.close()
        ours = SummaryWriter(tmp_path / "ours", run=run)
        ours.add_scalar("once", number, 9)
        ours.close()

    tensorboard.install(run=run)
    try:
        write(0.5)
    finally:
        tensorboard.uninstall()
    write(1.5)
    book = run.book
    kept = {
        key: book.metrics([key]).to_pylist()
        for key in sorted(book.keys())
        if not key.startswith(("rollbook/", "host/"))
    }
    kept = {key.rpartition("/")[2]: [(row["step"], row[key]) for row in rows] for key, rows in kept.items()}
    assert kept == {"loss": [(7, 0.5)], "return": [(8, 0.5)], "once": [(9, 0.5), (9, 1.5)]}
