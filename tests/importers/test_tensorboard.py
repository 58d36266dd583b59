"""Event files come over with every value that TensorBoard's own reader finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rollbook
import wild
from rollbook.formats import importers
from rollbook.protocols import Row
from rollbook.sinks.event_files import Messages
from rollbook.values import Histogram

ALL = {"scalars": 0, "histograms": 0, "tensors": 0, "images": 0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What several generations of writers put into one folder."""
    messages, rng = Messages("the tests"), np.random.default_rng(3)
    made = tmp_path / "tb"
    made.mkdir()
    for part in range(2):
        with open(made / f"events.out.tfevents.{part}.host", "wb") as file:
            file.write(messages.framed(messages.version(1.6e9)))
            for n in range(300):
                step, moment = 300 * part + n, 1.6e9 + 300 * part + n + float(rng.random())
                values = [
                    messages.scalar("train/loss", float(rng.normal())),
                    messages.scalar("train/odd", [float("nan"), float("inf"), -0.0, 1e-30][n % 4]),
                    messages.tensor_scalar("new/double", float(rng.normal()), double=True),
                    messages.tensor_scalar("new/float", float(rng.normal())),
                ]
                if n % 50 == 0:
                    values += [
                        messages.text("notes/text", f"line {n}\nüñí"),
                        messages.distribution("weights", rng.normal(size=500)),
                        messages.image("film", b"no picture", 2, 2),
                    ]
                file.write(messages.framed(messages.event(moment, step, values)))
    return made


def rows_of(folder: Path) -> tuple[list[Row], dict[str, int]]:
    (run,) = importers.make("tensorboard").runs(folder)
    return list(run.rows()), run.left_out


def test_every_value_step_and_time_is_the_one_that_tensorboards_own_reader_finds(folder: Path) -> None:
    theirs = EventAccumulator(str(folder), size_guidance=ALL, purge_orphaned_data=False).Reload()
    rows, left_out = rows_of(folder)
    ours: dict[str, list[Any]] = {}
    for row in rows:
        for tag, value in row.values.items():
            ours.setdefault(tag, []).append((row.time, row.clocks["step"], value))
    tags = theirs.Tags()
    compared = 0
    for tag in tags["scalars"]:
        expected = [(event.wall_time, event.step, event.value) for event in theirs.Scalars(tag)]
        assert repr(ours.pop(tag)) == repr(expected)
        compared += len(expected)
    for tag in tags["tensors"]:
        from tensorboard.util.tensor_util import make_ndarray

        expected = [(event.wall_time, event.step, make_ndarray(event.tensor_proto)) for event in theirs.Tensors(tag)]
        mine = ours.pop(tag)
        assert [cell[:2] for cell in mine] == [cell[:2] for cell in expected]
        for (*_, value), (*_, array) in zip(mine, expected, strict=True):
            content = array.reshape(-1)[0]
            assert value == (content.decode() if isinstance(content, bytes) else content.item())
        compared += len(expected)
    for tag in tags["histograms"]:
        mine = ours.pop(tag)
        for (moment, step, value), event in zip(mine, theirs.Histograms(tag), strict=True):
            told = event.histogram_value
            assert (moment, step) == (event.wall_time, event.step)
            assert isinstance(value, Histogram)
            assert (list(value.edges[1:]), list(value.counts)) == (told.bucket_limit, told.bucket)
            assert (value.low, value.high, value.total, value.total_squares) == (
                told.min,
                told.max,
                told.sum,
                told.sum_squares,
            )
            compared += 1
    assert not ours, "we read tags that TensorBoard does not"
    assert compared == 600 * 4 + 12 * 2
    assert left_out == {"images that are no PNG, JPEG, GIF or WebP": 12}


def test_an_imported_run_holds_every_value_and_took_place_when_its_rows_did(folder: Path, tmp_path: Path) -> None:
    (done,) = importers.import_runs(folder, dir=tmp_path / "runs", clock="env_step")
    assert (done.rows, done.left_out) == (600, {"images that are no PNG, JPEG, GIF or WebP": 12})
    book = rollbook.open(tmp_path / "runs").one("tb/tb")
    rows, _ = rows_of(folder)
    for tag in ("train/loss", "new/double"):
        table = book.metrics([tag])
        assert table[tag].to_pylist() == [row.values[tag] for row in rows]
        assert table["env_step"].to_pylist() == list(range(600))
    assert book.text().num_rows == 12
    assert book.table("histograms").num_rows == 12
    assert book.status == "finished"
    assert book.info.created == rows[0].time
    assert book.info.ended == rows[-1].time
    assert importers.import_runs(folder, dir=tmp_path / "runs", clock="env_step")[0].rows == 0
    assert len(rollbook.open(tmp_path / "runs").one("tb/tb").attempts) == 1, "nothing new begins no further attempt"


def test_a_source_that_has_grown_brings_what_is_new(folder: Path, tmp_path: Path) -> None:
    importers.import_runs(folder, dir=tmp_path / "runs")
    messages = Messages("the tests")
    with open(folder / "events.out.tfevents.1.host", "ab") as file:
        file.write(messages.framed(messages.event(1.65e9, 900, [messages.scalar("train/loss", 0.5)])))
    (done,) = importers.import_runs(folder, dir=tmp_path / "runs")
    assert done.rows == 1
    assert rollbook.open(tmp_path / "runs").one("tb/tb").metrics(["train/loss"]).num_rows == 601


def test_behind_damage_in_a_file_the_rest_is_named_and_other_files_are_read(folder: Path) -> None:
    first = folder / "events.out.tfevents.0.host"
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 0xFF
    first.write_bytes(bytes(data[:-7]))
    rows, left_out = rows_of(folder)
    assert sum(left_out.values()) - left_out["images that are no PNG, JPEG, GIF or WebP"] in (1, 2)
    assert any("checksum" in what or "damage" in what for what in left_out)
    assert [row.clocks["step"] for row in rows][-300:] == list(range(300, 600))
    assert len(rows) < 600


def test_events_of_one_number_have_the_steps_and_times_that_tensorboard_finds(tmp_path: Path) -> None:
    """Most events are such; they are read by their shape, whatever their step is."""
    messages = Messages("the tests")
    steps = [0, 1, 127, 128, 16_384, 2**31, 2**53 + 1, 2**63 - 1, -1, -(2**63), 5, 5]
    with open(tmp_path / "events.out.tfevents.1.host", "wb") as file:
        file.write(messages.framed(messages.version(1.6e9)))
        for n, step in enumerate(steps):
            for tag in ("a", "a/b", "ä" * 80):
                file.write(messages.framed(messages.event(1.6e9 + n / 7, step, [messages.scalar(tag, n / 3)])))
    theirs = EventAccumulator(str(tmp_path), size_guidance=ALL, purge_orphaned_data=False).Reload()
    rows, left_out = rows_of(tmp_path)
    assert left_out == {}
    for tag in ("a", "a/b", "ä" * 80):
        expected = [(event.wall_time, event.step, event.value) for event in theirs.Scalars(tag)]
        assert [(row.time, row.clocks["step"], row.values[tag]) for row in rows if tag in row.values] == expected
        assert [step for _time, step, _value in expected] == steps


def tensorboards_images(folder: Path) -> list[tuple[str, int, float, bytes]]:
    """(tag, step, time, bytes) of each image that TensorBoard's own reader finds, old and new form."""
    theirs = EventAccumulator(str(folder), size_guidance=ALL, purge_orphaned_data=False).Reload()
    tags = theirs.Tags()
    found = [
        (tag, event.step, event.wall_time, event.encoded_image_string)
        for tag in tags["images"]
        for event in theirs.Images(tag)
    ]
    for tag in tags["tensors"]:
        if theirs.SummaryMetadata(tag).plugin_data.plugin_name == "images":
            found += [
                (tag, event.step, event.wall_time, image)
                for event in theirs.Tensors(tag)
                for image in event.tensor_proto.string_val[2:]
            ]
    return found


@pytest.mark.parametrize(("writer", "images"), [("torch", 4), ("tensorboardx", 2), ("tensorflow", 6)])
def test_images_and_videos_are_files_of_the_run_with_the_bytes_that_tensorboard_finds(
    writer: str, images: int, tmp_path: Path
) -> None:
    source = Path(__file__).parent / "samples" / "pictures" / writer
    (done,) = importers.import_runs(source, dir=tmp_path / "runs", clock="env_step")
    book = rollbook.open(tmp_path / "runs").one(str(done.folder.name))
    ours = [
        (row["key"], row["env_step"], row["time"].timestamp(), (book.path / row["file"]).read_bytes())
        for row in book.media().to_pylist()
    ]
    theirs = tensorboards_images(source)
    assert [(*row[:2], row[3]) for row in sorted(ours)] == [(*row[:2], row[3]) for row in sorted(theirs)]
    assert [row[2] for row in sorted(ours)] == pytest.approx([row[2] for row in sorted(theirs)], abs=1e-6, rel=0)
    assert len(ours) == images
    assert {(row["width"], row["height"]) for row in book.media().to_pylist()} == {(8, 6)}
    assert done.left_out == {}
    assert book.problems() == []
    assert importers.import_runs(source, dir=tmp_path / "runs", clock="env_step")[0].rows == 0


def test_a_video_has_its_frames_and_their_rate(tmp_path: Path) -> None:
    (run,) = importers.make("tensorboard").runs(Path(__file__).parent / "samples" / "pictures" / "torch")
    films = [row.values for row in run.rows() if row.values.get("kind") == "video"]
    assert [(film["key"], film["frames"], film["fps"]) for film in films] == [("film", 5, 10.0)]


def written(
    folder: Path, began: int, steps: list[int], tags: tuple[str, ...] = ("loss",), *, seconds: float = 1.0
) -> None:
    """An event file as a process leaves it that began at some second and wrote a value of each tag at each step."""
    messages = Messages("the tests")
    folder.mkdir(exist_ok=True)
    names = [file.name for file in folder.iterdir()]
    with open(folder / f"events.out.tfevents.{began}.host.{len(names) + 100}.0", "wb") as file:
        file.write(messages.framed(messages.version(float(began))))
        for n, step in enumerate(steps):
            values = [messages.scalar(tag, began + step) for tag in tags]
            file.write(messages.framed(messages.event(began + n * seconds, step, values)))


def trainings(folder: Path) -> dict[str, list[int]]:
    return {run.part: [row.clocks["step"] for row in run.rows()] for run in importers.make("tensorboard").runs(folder)}


FIRST, SECOND, THIRD = 1_700_000_000, 1_700_001_000, 1_700_002_000
STARTS = {"from 0": [0, 10, 20], "from the first interval": [2048, 4096, 6144], "with another interval": [50, 100]}


@pytest.mark.parametrize("later", STARTS)
@pytest.mark.parametrize("earlier", STARTS)
def test_trainings_that_left_their_files_in_one_folder_are_a_run_each(earlier: str, later: str, tmp_path: Path) -> None:
    for began, name in ((FIRST, earlier), (SECOND, later), (THIRD, later)):
        written(tmp_path / "tb", began, STARTS[name])
    assert trainings(tmp_path / "tb") == {
        "2023-11-14_22-13-20": STARTS[earlier],
        "2023-11-14_22-30-00": STARTS[later],
        "": STARTS[later],
    }
    runs = rollbook.open(tmp_path)
    assert len({row["name"] for row in runs.rows()}) == len(runs) == 3


def test_what_one_training_writes_into_several_files_is_one_run(tmp_path: Path) -> None:
    steps = list(range(0, 100, 10))
    cases = {
        "resumed at the end": [(FIRST, steps, ("loss",)), (SECOND, [100, 110], ("loss",))],
        "resumed at a checkpoint": [(FIRST, steps, ("loss",)), (SECOND, [50, 60, 70], ("loss",))],
        "processes at one time": [(FIRST, steps, ("loss",)), (FIRST + 1, steps, ("loss",))],
        "other tags": [(FIRST, steps, ("loss",)), (SECOND, steps, ("eval/return",))],
        "an evaluation a file": [(FIRST + n, [0], ("eval/return",)) for n in range(0, 90, 10)],
        "nothing before": [(FIRST, [], ("loss",)), (SECOND, steps, ("loss",))],
        "nothing after": [(FIRST, steps, ("loss",)), (SECOND, [], ("loss",))],
    }
    for name, files in cases.items():
        for began, read, tags in files:
            written(tmp_path / name, began, read, tags)
        assert len(trainings(tmp_path / name)) == 1, name


def test_a_run_keeps_its_id_when_a_later_training_comes_into_its_folder(tmp_path: Path) -> None:
    written(tmp_path / "tb", FIRST, [0, 10, 20])
    (before,) = rollbook.open(tmp_path).rows()
    written(tmp_path / "tb", SECOND, [0, 10, 20, 30])
    after = {row["id"]: row["name"] for row in rollbook.open(tmp_path).rows()}
    assert after.pop(before["id"]).endswith("2023-11-14_22-13-20")
    assert len(after) == 1


def test_a_layout_of_charts_becomes_boards_of_the_run(tmp_path: Path) -> None:
    wild.events(tmp_path / "tb", {"loss/policy": [1.0, 0.5], "loss/value": [2.0, 1.0]})
    charts = {"Losses": [("both", "Multiline", ["loss/policy", "loss/value"]), ("band", "Margin", ["a", "b", "c"])]}
    wild.layout(tmp_path / "tb", charts)
    (run,) = importers.make("tensorboard").runs(tmp_path / "tb")
    for _ in range(2):
        assert len(list(run.rows())) == 4
        assert run.boards == {"Losses": [["loss/policy", "loss/value"], ["a", "b", "c"]]}
        assert run.left_out == {}
