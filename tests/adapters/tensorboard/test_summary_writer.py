"""A program written for `torch.utils.tensorboard.SummaryWriter`, with its import changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters.tensorboard import SummaryWriter
from rollbook.errors import MissingExtra, RollbookWarning, UnknownOption
from rollbook.run.current import current_run
from rollbook.schema import manifest


def events(folder: Path) -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder), size_guidance={"histograms": 0, "images": 0})
    found.Reload()
    return found


def test_a_number_is_in_the_book_at_its_step_under_both_clocks(run: Any, rows: Any, tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path / "logs", run=run)
    for step in range(3):
        writer.add_scalar("charts/episodic_return", step * 1.5, step)
    writer.close()
    assert rows(run, "charts/episodic_return", x="env_step") == [(0, 0.0), (1, 1.5), (2, 3.0)]
    assert rows(run, "charts/episodic_return", x="step") == [(0, 0.0), (1, 1.5), (2, 3.0)]
    assert run.status == "running"


def test_the_event_file_holds_the_same_numbers(run: Any, rows: Any, tmp_path: Path) -> None:
    with SummaryWriter(tmp_path / "logs", run=run) as writer:
        for step in range(5):
            writer.add_scalar("loss", step / 7, step)
    native = [(event.step, event.value) for event in events(tmp_path / "logs").Scalars("loss")]
    assert [(step, np.float32(value)) for step, value in rows(run, "loss", x="step")] == native


def test_which_clock_the_step_is_can_be_chosen(run: Any, rows: Any) -> None:
    SummaryWriter("a", run=run, events=False, clock="gradient_step").add_scalar("loss", 1.0, 7)
    SummaryWriter("a", run=run, events=False, clock=None).add_scalar("other", 1.0, 8)
    assert rows(run, "loss", x="gradient_step") == [(7, 1.0)]
    assert rows(run, "other", x="step") == [(8, 1.0)]
    with pytest.warns(RollbookWarning, match="clock='frames'"):
        SummaryWriter("a", run=run, events=False, clock="frames")


def test_only_the_book_is_written_without_events(run: Any, tmp_path: Path) -> None:
    for option in ({"events": False}, {"write_to_disk": False}):
        writer = SummaryWriter(logdir=tmp_path / "logs", run=run, **option)
        writer.add_scalar("loss", 1.0, 0)
        writer.flush()
        writer.close()
    assert not (tmp_path / "logs").exists()


def test_several_curves_of_one_chart_are_several_keys(run: Any, rows: Any, tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path / "logs", run=run)
    writer.add_scalars("loss", {"train": 1.0, "test": 2.0}, 3)
    writer.close()
    assert rows(run, "loss/train", "loss/test", x="step") == [(3, 1.0, 2.0)]
    assert [event.value for event in events(tmp_path / "logs" / "loss_train").Scalars("loss")] == [1.0]


def test_distributions_texts_and_pictures_are_kept_in_both(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    writer = SummaryWriter(tmp_path / "logs", run=run)
    values = np.arange(100.0)
    writer.add_histogram("weights", values, 1)
    writer.add_histogram_raw("raw", 0.0, 2.0, 3, 3.0, 5.0, [1.0, 2.0], [1, 2], 1)
    writer.add_text("note", "hello", 1)
    writer.add_image("picture", np.zeros((3, 4, 6), dtype=np.uint8), 1)
    writer.add_images("batch", np.zeros((10, 3, 4, 6)), 1)
    writer.add_video("film", np.zeros((1, 5, 3, 4, 6), dtype=np.uint8), 1, fps=10)
    writer.close()
    histograms = {row["key"]: row for row in run.book.histograms().to_pylist()}
    assert list(histograms["weights"]["values"]) == values.tolist()
    assert list(histograms["raw"]["counts"]) == [1.0, 2.0]
    assert [(row["key"], row["text"]) for row in run.book.text().to_pylist()] == [("note", "hello")]
    media = {row["key"]: row for row in run.book.media().to_pylist()}
    assert {key: row["kind"] for key, row in media.items()} == {"picture": "image", "batch": "image", "film": "video"}
    assert (media["picture"]["width"], media["picture"]["height"]) == (6, 4)
    assert (media["batch"]["width"], media["batch"]["height"]) == (48, 8)
    assert (media["film"]["frames"], media["film"]["fps"]) == (5, 10)
    native = events(tmp_path / "logs")
    assert native.Tags()["histograms"] == ["weights", "raw"]
    assert native.Histograms("weights")[0].histogram_value.sum == values.sum()
    assert set(native.Tags()["images"]) == {"picture", "batch", "film"}
    assert native.Tags()["tensors"] == ["note/text_summary"]


def test_figures_are_pictures_and_closed_if_asked(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    writer = SummaryWriter(tmp_path / "logs", run=run)
    kept, closed = pyplot.figure(), pyplot.figure()
    writer.add_figure("kept", kept, 1, close=False)
    writer.add_figure("closed", [closed], 2)
    writer.close()
    assert pyplot.get_fignums() == [kept.number]
    pyplot.close(kept)
    assert [row["kind"] for row in run.book.media().to_pylist()] == ["figure", "figure"]


def test_hyper_parameters_become_the_configuration(run: Any, rows: Any, tmp_path: Path) -> None:
    run.config["seed"] = 3
    writer = SummaryWriter(tmp_path / "logs", run=run)
    writer.add_hparams({"lr": 0.1, "seed": 5}, {"hparam/return": 7.0}, run_name="trial")
    writer.close()
    assert run.config["lr"] == 0.1
    assert run.config["seed"] == 3
    assert rows(run, "hparam/return") == [(7.0,)]
    assert run.summary["hparam/return"] == 7.0
    assert [event.value for event in events(tmp_path / "logs" / "trial").Scalars("hparam/return")] == [7.0]


def test_the_table_cleanrl_writes_becomes_the_configuration(run: Any) -> None:
    text = (
        "|param|value|\n|-|-|\n|learning_rate|0.00025|\n|seed|1|\n|cuda|True|\n|env_id|CartPole-v1|\n|target_kl|None|"
    )
    writer = SummaryWriter("x", run=run, events=False)
    writer.add_text("hyperparameters", text)
    writer.add_text("hyperparameters", "some other text")
    expected = {"learning_rate": 0.00025, "seed": 1, "cuda": True, "env_id": "CartPole-v1", "target_kl": None}
    assert dict(run.config) == expected


def test_a_layout_of_charts_is_kept_as_boards_whatever_the_verb(run: Any) -> None:
    writer = SummaryWriter("x", run=run, events=False)
    layout = {"Losses": {"both": ["Multiline", ["loss/policy", "loss/value"]]}, "Empty": {}}
    writer.add_custom_scalars(layout)
    writer.add_custom_scalars(layout)
    writer.add_custom_scalars_multilinechart(["loss/kl"], "Losses", "kl")
    writer.add_custom_scalars_marginchart(["return/mean", "return/low", "return/high"])
    assert run.bill()["drops"] == {}
    kept = {"Losses": [["loss/policy", "loss/value"], ["loss/kl"]]}
    kept["default"] = [["return/mean", "return/low", "return/high"]]
    assert manifest.look(run.folder).boards == kept


@pytest.mark.filterwarnings("ignore:SummaryWriter")
@pytest.mark.parametrize("layout", [{"a": {"b": "Multiline"}}, {"a": {"b": ["Multiline"]}}, {"a": 1}, None])
def test_a_layout_that_is_none_harms_nothing_and_is_counted(run: Any, layout: Any) -> None:
    writer = SummaryWriter("x", run=run, events=False)
    writer.add_custom_scalars(layout)
    writer.add_scalar("loss", 1.0, 1)
    assert any(cause.startswith("summary_writer_add_custom_scalars") for cause in run.bill()["drops"])
    assert run.bill()["rows"] == 1


def test_verbs_the_book_has_no_place_for_are_counted_and_reported_once(run: Any) -> None:
    writer = SummaryWriter("x", run=run, events=False)
    with pytest.warns(RollbookWarning, match="add_mesh"):
        writer.add_mesh("a", [])
    writer.add_mesh("a", [])
    assert run.bill()["drops"]["ignored_add_mesh"] == 2
    with pytest.raises(AttributeError, match="no attribute 'plot'"):
        writer.plot()


def test_verbs_a_further_library_has_reach_its_event_file(run: Any, native_writer: Any) -> None:
    calls: list[Any] = []

    class Native:
        def add_hologram(self, model: Any) -> None:
            calls.append(model)

        def close(self) -> None: ...

    native_writer(Native())
    writer = SummaryWriter("x", run=run)
    with pytest.warns(RollbookWarning, match="add_hologram"):
        writer.add_hologram("model")
    assert calls == ["model"]


def test_a_time_of_ones_own_is_kept(run: Any, tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path / "logs", run=run)
    writer.add_scalar("loss", 1.0, 1, walltime=1_700_000_000.5)
    writer.close()
    (row,) = (row for row in run.book.metrics(["loss"]).to_pylist() if row["loss"] is not None)
    assert row["time"].timestamp() == pytest.approx(1_700_000_000.5, abs=1e-3)
    assert events(tmp_path / "logs").Scalars("loss")[0].wall_time == 1_700_000_000.5


def test_a_program_without_a_run_gets_one_that_ends_with_its_writer(tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    writer = SummaryWriter(tmp_path / "CartPole-v1__ppo__1", events=False, project="ppo", run_options=options)
    run = writer.run
    assert (run.project, run.name) == ("ppo", "CartPole-v1__ppo__1")
    writer.close()
    writer.close()
    assert run.status == "finished"
    writer.add_text("note", "late")  # as torch's writer, which opens its file again
    assert (writer.run.id, writer.run.attempt) == (run.id, 1)
    writer.close()
    assert run.book.text()["text"].to_pylist() == ["late"]


def test_two_writers_of_one_process_share_a_run_without_mixing_keys(tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    first = SummaryWriter(tmp_path / "logs" / "train", events=False, run_options=options)
    second = SummaryWriter(tmp_path / "logs" / "test", events=False)
    third = SummaryWriter(tmp_path / "logs" / "train" / "inner", events=False)
    assert first.run is second.run is third.run
    for writer in (first, second, third):
        writer.add_scalar("loss", 1.0, 0)
    assert set(first.run.book.keys()) >= {"loss", "test/loss", "inner/loss"}
    first.close()
    assert first.run.status == "running"
    second.close()
    third.close()
    assert first.run.status == "finished"
    assert current_run() is None


def test_the_next_writer_after_the_last_was_closed_begins_a_new_run(tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    runs = []
    for seed in range(2):
        with SummaryWriter(tmp_path / f"seed{seed}", events=False, run_options=options) as writer:
            runs.append(writer.run)
    assert runs[0].id != runs[1].id


def test_purge_step_rewinds_a_resumed_run(tmp_path: Path, rows: Any) -> None:
    options = {"dir": tmp_path / "runs", "sinks": (), "keeper": "inline"}
    run = rollbook.init("p", "n", **options)
    with SummaryWriter("logs", run=run, events=False) as writer:
        for step in range(10):
            writer.add_scalar("loss", step, step)
    run.finish()
    run = rollbook.init("p", "n", resume="must", **options)
    with SummaryWriter("logs", run=run, events=False, purge_step=5) as writer:
        for step in range(5, 8):
            writer.add_scalar("loss", -step, step)
    assert [step for step, _ in rows(run, "loss", x="step")] == list(range(8))
    run.finish()


def test_event_files_without_the_package_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[tensorboard\]'.*events=False"):
        SummaryWriter(tmp_path, run=False)
    with pytest.raises(UnknownOption, match=r"events='torhc'.*Did you mean 'torch'"):
        SummaryWriter(tmp_path, run=False, events="torhc")


def test_an_event_file_that_fails_does_not_stop_the_training(run: Any, rows: Any, tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path / "logs", run=run)

    def full(*_args: Any) -> None:
        raise OSError("No space left on device")

    writer.native.add_scalar = full
    with pytest.warns(RollbookWarning, match="No space left"):
        writer.add_scalar("loss", 1.0, 1)
    writer.add_scalar("loss", 2.0, 2)
    writer.close()
    assert rows(run, "loss") == [(1.0,), (2.0,)]


def test_the_folder_is_named_as_the_libraries_do(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SummaryWriter(comment="_lr1", run=False, events=False)
    assert writer.get_logdir().startswith("runs")
    assert writer.get_logdir().endswith("_lr1")
    assert writer.file_writer is None


@pytest.mark.parametrize("clock", ["env_step", "gradient_step", None])
def test_cleanrls_evaluation_of_a_saved_model_stands_where_training_ended(clock: Any, run: Any, rows: Any) -> None:
    writer = SummaryWriter("a", run=run, events=False, clock=clock)
    for step in (100, 200):
        writer.add_scalar("charts/episodic_return", 1.0, step)
    for index in range(3):
        writer.add_scalar("eval/episodic_return", 10.0 + index, index)
    assert rows(run, "eval/episodic_return", x="step") == [(0, 10.0), (1, 11.0), (2, 12.0)]
    if clock is not None:
        assert rows(run, "test/return", x=clock) == [(200, 10.0), (200, 11.0), (200, 12.0)]


@pytest.mark.parametrize("steps", [[0, 100, 200], [100, 200], [1, 2, 3]])
def test_an_evaluation_at_steps_keeps_its_steps(steps: list[int], run: Any, rows: Any) -> None:
    writer = SummaryWriter("a", run=run, events=False)
    for step in steps:
        writer.add_scalar("eval/episodic_return", float(step), step)
        writer.add_scalar("charts/episodic_return", 1.0, step + 50)
    assert rows(run, "eval/episodic_return", x="env_step") == [(step, float(step)) for step in steps]


@pytest.mark.parametrize(("version", "name"), [("version_0", "walk_42"), ("version_3", "walk_42-version_3")])
def test_a_version_of_lightnings_writer_is_called_like_the_folder_above(
    tmp_path: Path, version: str, name: str
) -> None:
    options = {"dir": tmp_path / "books", "sinks": (), "keeper": "inline"}
    writer = SummaryWriter(f"runs/walk_42/{version}", events=False, run_options=options)
    assert writer.run is not None
    assert writer.run.name == name
    writer.close()


def test_cleanrls_seeds_share_a_name(tmp_path: Path) -> None:
    options = {"dir": tmp_path / "books", "sinks": (), "keeper": "inline"}
    for seed in (1, 2):
        writer = SummaryWriter(f"runs/CartPole-v1__ppo__{seed}__170000000{seed}", events=False, run_options=options)
        table = f"|param|value|\n|-|-|\n|env_id|CartPole-v1|\n|exp_name|ppo|\n|seed|{seed}|"
        writer.add_text("hyperparameters", table)
        writer.close()
    books = rollbook.open(tmp_path / "books")
    assert sorted((book.name, book.seed, book.config["seed"]) for book in books) == [
        ("CartPole-v1__ppo", 1, 1),
        ("CartPole-v1__ppo", 2, 2),
    ]
    writer = SummaryWriter("runs/CartPole-v1__ppo__1__short", events=False, run_options=options)
    assert writer.run is not None
    assert (writer.run.name, writer.run.seed) == ("CartPole-v1__ppo__1__short", None)
    writer.close()
    again = {**options, "resume": "allow"}  # what it resumes is found by the name
    writer = SummaryWriter("runs/CartPole-v1__ppo__1__1700000001", events=False, run_options=again)
    assert writer.run is not None
    assert (writer.run.name, writer.run.resumed) == ("CartPole-v1__ppo__1__1700000001", False)
    writer.close()
