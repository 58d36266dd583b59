"""torch's and tensorboardX's SummaryWriter behind ours: the same event files, and the book beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("main",)

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboardX")

import tensorboardX  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from torch.utils import tensorboard as torch_tensorboard  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.tensorboard import SummaryWriter  # noqa: E402

NATIVE = {"torch": torch_tensorboard.SummaryWriter, "tensorboardX": tensorboardX.SummaryWriter}


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    run = rollbook.init("tb", "test", dir=own_place / "books", sinks=(), keeper="inline")
    yield run
    run.finish()


def program(writer: Any) -> None:
    generator = np.random.default_rng(0)
    for step in range(20):
        writer.add_scalar("charts/episodic_return", float(generator.normal()), step)
        writer.add_scalar("losses/loss", torch.tensor(step / 7), step)
    writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 1)
    writer.add_histogram("weights", generator.normal(size=500), 1)
    writer.add_text("note", "hello", 1)
    writer.add_image("picture", torch.zeros(3, 4, 6), 1)
    writer.add_hparams({"lr": 0.1}, {"hparam/return": 7.0})
    writer.flush()
    writer.close()


def read(folder: Path) -> dict[str, Any]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0})
    events.Reload()
    found: dict[str, Any] = {key: [(e.step, e.value) for e in events.Scalars(key)] for key in events.Tags()["scalars"]}
    found["histograms"] = {key: events.Histograms(key)[0].histogram_value for key in events.Tags()["histograms"]}
    found["texts"] = [events.Tensors(key)[0].tensor_proto.string_val[0] for key in events.Tags()["tensors"]]
    found["images"] = [events.Images(key)[0].encoded_image_string for key in events.Tags()["images"]]
    return found


@pytest.mark.parametrize("library", list(NATIVE))
def test_the_event_files_are_the_librarys_own(library: str, run: Any, own_place: Path) -> None:
    program(NATIVE[library](str(own_place / "native")))
    program(SummaryWriter(own_place / "ours", run=run, events=library))
    assert read(own_place / "native") == read(own_place / "ours")


@pytest.mark.core
@pytest.mark.parametrize("library", [*NATIVE, "rollbook"])
def test_the_book_holds_what_the_event_file_holds(library: str, run: Any, own_place: Path, reads_as: Any) -> None:
    program(SummaryWriter(own_place / "ours", run=run, events=library))
    events = read(own_place / "ours")
    for key in ("charts/episodic_return", "losses/loss"):
        rows = [row for row in run.book.metrics([key], x="step").to_pylist() if row[key] is not None]
        assert [(row["step"], np.float32(row[key])) for row in rows] == events[key]
    reads_as(run.book, {"train/return": "charts/episodic_return"})
    assert run.config["lr"] == 0.1
    assert [row["key"] for row in run.book.histograms().to_pylist()] == ["weights"]
    assert events["texts"] == [b"hello"]


def test_a_program_that_uses_torch_gets_torchs_files(run: Any, own_place: Path) -> None:
    writer = SummaryWriter(own_place / "ours", run=run)
    assert isinstance(writer.native, torch_tensorboard.SummaryWriter)
    writer.close()
