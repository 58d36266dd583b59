"""torch's and tensorboardX's SummaryWriter behind ours: the same event files, and the book beside them."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

GROUPS = ("main",)

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboardX")

import tensorboardX  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader  # noqa: E402
from torch.utils import tensorboard as torch_tensorboard  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.tensorboard import SummaryWriter  # noqa: E402
from rollbook.adapters.tensorboard.writer import LEFT_TO_LIBRARIES  # noqa: E402

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


# -- the surface

SURFACE_ASIDE = {
    "FileWriter": "`writer.file_writer` has what programs use of it; files of other messages are the library's",
    "RecordWriter": "the tensorboard package's own",
    "GlobalSummaryWriter": "a writer that counts its own steps over processes: a run has `rollbook.attach` for that",
    "TorchVis": "writes to Visdom, not to event files",
}
"""What the libraries' packages have besides, and why a drop-in for their SummaryWriter has not."""


def public_methods(kind: type) -> dict[str, inspect.Signature]:
    """Its public methods and constructor, by name."""
    names = [name for name in dir(kind) if not name.startswith("_") or name == "__init__"]
    return {name: inspect.signature(getattr(kind, name)) for name in names if callable(getattr(kind, name))}


@pytest.mark.parametrize("library", list(NATIVE))
def test_every_method_takes_every_argument_of_the_library_by_name(library: str) -> None:
    ours = public_methods(SummaryWriter)
    lacking = []
    for name, signature in public_methods(NATIVE[library]).items():
        assert name in ours, f"SummaryWriter has no {name}()"
        known = ours[name].parameters
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.name not in known and not open_ended:
                lacking.append(f"{name}({parameter.name}=)")
            elif parameter.name in known and parameter.default is not parameter.empty and name != "__init__":
                default, theirs = known[parameter.name].default, parameter.default
                assert default == theirs or (default is None and not theirs), f"{name}({parameter.name}={theirs!r})"
    assert lacking == []


def test_arguments_stand_in_the_places_of_torch() -> None:
    for name, signature in public_methods(torch_tensorboard.SummaryWriter).items():
        theirs = list(signature.parameters)
        mine = list(inspect.signature(getattr(SummaryWriter, name)).parameters)
        assert mine[: len(theirs)] == theirs or (name in LEFT_TO_LIBRARIES and mine == ["self", "args", "kwargs"]), name


BY_POSITION: dict[str, tuple[Any, ...]] = {
    "add_scalar": ("t/scalar", 1.0, 3, None, "a title", "a description"),
    "add_hparams": ({"lr": 0.1}, {"m": 1.0}, "a name", 3),
    "add_video": ("t/video", np.zeros((4, 1, 3, 8, 8), dtype=np.uint8), 3, 4, None, "TNCHW"),
}
"""The verbs that have other arguments in some place with tensorboardX than with torch."""


def test_tensorboardxs_order_of_arguments_is_understood(run: Any, own_place: Path) -> None:
    for name, signature in public_methods(tensorboardX.SummaryWriter).items():
        theirs = list(signature.parameters)
        mine = list(inspect.signature(getattr(SummaryWriter, name)).parameters)[: len(theirs)]
        assert mine == theirs or name in (*BY_POSITION, *LEFT_TO_LIBRARIES, "__init__", "use_metadata"), name
    for library in ("tensorboardX", "torch", "rollbook"):
        writer = SummaryWriter(own_place / library, run=run, events=library, scope=library)
        for name, arguments in BY_POSITION.items():
            if (library, name) != ("torch", "add_video"):  # torch's needs a moviepy of old
                getattr(writer, name)(*arguments)
        writer.close()
    causes = {cause for cause in run.bill()["drops"] if "Error" in cause}
    assert causes <= {"event_file_add_video_ModuleNotFoundError", "event_file_add_video_UnboundLocalError"}, causes
    assert {row["kind"] for row in run.book.media().to_pylist()} == {"video"}


@pytest.mark.parametrize("library", list(NATIVE))
def test_what_their_packages_export_can_be_had_here_or_is_listed_as_missing(library: str) -> None:
    from rollbook.adapters import tensorboard as ours

    package = {"torch": torch_tensorboard, "tensorboardX": tensorboardX}[library]
    classes = {name for name, value in vars(package).items() if isinstance(value, type)}
    assert classes <= {*ours.__all__, *SURFACE_ASIDE}
    for name in ours.__all__:
        assert callable(getattr(ours, name))


def test_the_attributes_of_torchs_writer_are_here(run: Any, own_place: Path) -> None:
    theirs = torch_tensorboard.SummaryWriter(str(own_place / "native"), flush_secs=7, filename_suffix=".x")
    ours = SummaryWriter(own_place / "ours", run=run, flush_secs=7, filename_suffix=".x", events="rollbook")
    for name in (name for name in vars(theirs) if not name.startswith("_")):
        assert hasattr(ours, name), name
    assert (ours.flush_secs, ours.filename_suffix, ours.max_queue) == (7, ".x", 10)
    assert list(ours.default_bins) == theirs.default_bins
    assert ours._get_file_writer().get_logdir() == ours.get_logdir()
    theirs.close()
    ours.close()


# -- rollbook's own files beside torch's

pytestmark = pytest.mark.filterwarnings("ignore:.*is not kept in the book", "ignore:.*torch.jit")

R = np.random.default_rng(0)
NUMBERS, CLOUD = R.normal(size=500) * 100, R.normal(size=(1, 5, 3)).astype(np.float32)
LABELS, CHANCES = R.integers(0, 2, 50), R.random(50)
PICTURE, BATCH = R.random((3, 5, 7)), R.integers(0, 255, (10, 3, 4, 6)).astype(np.uint8)
EDGES = np.linspace(-300, 300, 9)
LAYOUT = {"a": {"b": ["Multiline", ["x", "y"]], "c": ["Margin", ["x", "y", "z"]]}}

CALLS: dict[str, Callable[[Any], Any]] = {
    "float": lambda w: w.add_scalar("t", 0.1, 3, 1.5),
    "int": lambda w: w.add_scalar("t", 2, 3, 1.5),
    "bool": lambda w: w.add_scalar("t", True, 3, 1.5),
    "float32": lambda w: w.add_scalar("t", np.float32(0.1), 3, 1.5),
    "array of one": lambda w: w.add_scalar("t", np.array([5.0]), 3, 1.5),
    "tensor": lambda w: w.add_scalar("t", torch.tensor([[0.5]]), 3, 1.5),
    "tensor that requires grad": lambda w: w.add_scalar("t", torch.tensor(0.5, requires_grad=True), 3, 1.5),
    "no step": lambda w: w.add_scalar("t", 0.1, walltime=1.5),
    "nan": lambda w: w.add_scalar("t", float("nan"), 3, 1.5),
    "new style": lambda w: w.add_scalar("t", 0.1, 3, 1.5, new_style=True),
    "new style, double": lambda w: w.add_scalar("t", 0.1, 3, 1.5, True, True),
    "odd tag": lambda w: w.add_scalar("/sp ace:x é", 0.1, 3, 1.5),
    "scalars": lambda w: w.add_scalars("a/b", {"x": 0.1, "y": 2}, 3, 1.5),
    "histogram": lambda w: w.add_histogram("t", NUMBERS, 3, walltime=1.5),
    "histogram of a tensor": lambda w: w.add_histogram(
        "t", torch.tensor(NUMBERS, dtype=torch.float32), 3, walltime=1.5
    ),
    "histogram of integers": lambda w: w.add_histogram("t", np.arange(7), 3, walltime=1.5),
    "histogram of one": lambda w: w.add_histogram("t", np.array([2.0]), 3, walltime=1.5),
    "histogram, auto": lambda w: w.add_histogram("t", NUMBERS, 3, "auto", 1.5),
    "histogram, doane": lambda w: w.add_histogram("t", NUMBERS, 3, "doane", 1.5),
    "histogram, 10 bins": lambda w: w.add_histogram("t", NUMBERS, 3, 10, 1.5),
    "histogram, edges": lambda w: w.add_histogram("t", NUMBERS, 3, EDGES, 1.5),
    "histogram, at most 12": lambda w: w.add_histogram("t", NUMBERS, 3, "tensorflow", 1.5, 12),
    "histogram, at most 4 of 30": lambda w: w.add_histogram("t", NUMBERS, 3, 30, 1.5, max_bins=4),
    "raw histogram": lambda w: w.add_histogram_raw("t", 0.0, 2.0, 3, 3.0, 5.0, [1.0, 2.0], [1, 2], 3, 1.5),
    "raw histogram of arrays": lambda w: w.add_histogram_raw("t", 0, 2, 3, 3, 5, np.arange(2.0), np.ones(2), 3, 1.5),
    "text": lambda w: w.add_text("t", "hello é", 3, 1.5),
    "image": lambda w: w.add_image("t", PICTURE, 3, 1.5),
    "image of a tensor": lambda w: w.add_image("t", torch.tensor(PICTURE, dtype=torch.float32), 3, 1.5),
    "image, HWC": lambda w: w.add_image("t", BATCH[0].transpose(1, 2, 0), 3, 1.5, "HWC"),
    "image, grey": lambda w: w.add_image("t", PICTURE[:1], 3, 1.5),
    "image, HW": lambda w: w.add_image("t", PICTURE[0], 3, 1.5, dataformats="HW"),
    "image, beyond 1": lambda w: w.add_image("t", PICTURE * 3 - 1, 3, 1.5),
    "images": lambda w: w.add_images("t", BATCH, 3, 1.5),
    "images, NHWC": lambda w: w.add_images("t", BATCH.transpose(0, 2, 3, 1), 3, 1.5, "NHWC"),
    "audio": lambda w: w.add_audio("t", np.sin(np.arange(80))[None], 3, 8000, 1.5),
    "audio, too loud": lambda w: w.add_audio("t", torch.linspace(-2, 2, 50), 3, walltime=1.5),
    "curve": lambda w: w.add_pr_curve("t", LABELS, CHANCES, 3, walltime=1.5),
    "curve, weights": lambda w: w.add_pr_curve("t", torch.tensor(LABELS), torch.tensor(CHANCES), 3, 9, CHANCES, 1.5),
    "raw curve": lambda w: w.add_pr_curve_raw("t", *np.ones((6, 5)), 3, 5, walltime=1.5),
    "mesh": lambda w: w.add_mesh("t", torch.tensor(CLOUD), global_step=3, walltime=1.5),
    "mesh, all": lambda w: w.add_mesh("t", CLOUD, CLOUD, CLOUD.astype(int), {"cls": "x"}, 3, 1.5),
    "tensor of floats": lambda w: w.add_tensor("t", torch.arange(6.0).reshape(2, 3), 3, 1.5),
    "tensor of integers": lambda w: w.add_tensor("t", torch.arange(6), 3, 1.5),
    "tensor of truth": lambda w: w.add_tensor("t", torch.tensor([True, False]), 3, 1.5),
    "tensor, complex": lambda w: w.add_tensor("t", torch.tensor([1 + 2j]), 3, 1.5),
    "custom scalars": lambda w: w.add_custom_scalars(LAYOUT),
    "custom scalars, lines": lambda w: w.add_custom_scalars_multilinechart(["x", "y"], "c", "t"),
    "custom scalars, margin": lambda w: w.add_custom_scalars_marginchart(["x", "y", "z"]),
    "hyper-parameters": lambda w: w.add_hparams({"lr": 0.1, "n": 3, "a": "x", "e": None}, {"m": 1}, run_name="r"),
    "hyper-parameters, domain": lambda w: w.add_hparams({"lr": 0.1}, {"m": 1.0}, {"lr": [0.1, 0.2]}, "r", 4),
    "hyper-parameters of a tensor": lambda w: w.add_hparams({"lr": torch.tensor([0.5])}, {"m": 1.0}, run_name="r"),
    "embedding": lambda w: w.add_embedding(CLOUD[0], list("abcde"), torch.rand(5, 3, 4, 6).round(), 3, "x/y"),
    "embedding, header": lambda w: w.add_embedding(CLOUD[0], [["a", i] for i in range(5)], metadata_header=["n", "i"]),
    "figure": lambda w: w.add_figure("t", drawn(), 3, walltime=1.5),
    "figures": lambda w: w.add_figure("t", [drawn(), drawn()], 3, walltime=1.5),
    "boxes": lambda w: w.add_image_with_boxes("t", PICTURE, np.ones((1, 4)), 3),
    "graph": lambda w: w.add_graph(torch.nn.Linear(3, 2), torch.zeros(1, 3)),
}

OTHERWISE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a truth value among parameters": (lambda w: w.add_hparams({"fast": True}, {"m": 1.0}, run_name="r"), "torch: 1.0"),
    "a list among parameters": (lambda w: w.add_hparams({"net": [1]}, {"m": 1.0}, run_name="r"), "torch: ValueError"),
    "nan in a histogram": (lambda w: w.add_histogram("t", np.array([1, np.nan]), 3), "torch: min and max NaN"),
    "an empty histogram": (lambda w: w.add_histogram("t", np.array([]), 3), "torch: ValueError"),
    "a picture of int64": (lambda w: w.add_image("t", BATCH[0].astype(int), 3), "torch: scaled by 255"),
    "a film": (lambda w: w.add_video("t", BATCH[None], 3), "torch: needs moviepy 1"),
}
"""What the two write differently, and how torch does it."""


def drawn() -> Any:
    pyplot = pytest.importorskip("matplotlib.figure")
    figure = pyplot.Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    return figure


def content(folder: Path) -> list[tuple[str, Any]]:
    """What an event folder holds: summaries and graphs with step and, where it was said, time, other files whole."""
    found: list[tuple[str, Any]] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = str(path.parent.relative_to(folder))
        if not path.name.startswith("events."):
            found.append((f"{place}/{path.name}", path.read_bytes()))
            continue
        for event in LegacyEventFileLoader(str(path)).Load():
            moment = event.wall_time if event.wall_time == 1.5 else None
            for value in event.summary.value:
                found.append(
                    (f"{place}:{value.tag}", (event.step, moment, value.SerializeToString(deterministic=True)))
                )
            if event.graph_def:
                found.append((f"{place}:graph", event.graph_def))
    return found


@pytest.mark.parametrize("name", list(CALLS))
def test_our_own_event_file_holds_what_torchs_holds(name: str, run: Any, own_place: Path) -> None:
    torch.manual_seed(0)
    with torch_tensorboard.SummaryWriter(str(own_place / "native")) as theirs:
        CALLS[name](theirs)
    torch.manual_seed(0)
    with SummaryWriter(own_place / "ours", run=run, events="rollbook") as ours:
        CALLS[name](ours)
    assert content(own_place / "native")
    assert content(own_place / "ours") == content(own_place / "native")
    assert not {cause for cause in run.bill()["drops"] if not cause.startswith("ignored_")}


@pytest.mark.parametrize("name", list(OTHERWISE))
def test_where_our_event_file_differs_nothing_is_refused(name: str, run: Any, own_place: Path) -> None:
    with SummaryWriter(own_place / "ours", run=run, events="rollbook") as writer:
        OTHERWISE[name][0](writer)
    assert not {cause for cause in run.bill()["drops"] if not cause.startswith("ignored_")}
    assert name == "an empty histogram" or content(own_place / "ours")


def test_every_verb_of_torchs_writer_is_compared() -> None:
    called: set[str] = set()

    class Names:
        def __getattr__(self, name: str) -> Any:
            called.add(name)
            return lambda *_args, **_kwargs: None

    for call in (*CALLS.values(), *(call for call, _ in OTHERWISE.values())):
        call(Names())
    verbs = {name for name in public_methods(torch_tensorboard.SummaryWriter) if name.startswith("add_")}
    assert verbs - called == {"add_onnx_graph"}  # the onnx package is not here


@pytest.mark.parametrize("library", ["torch", "rollbook", "tensorboardX"])
def test_scalars_are_exported_alike_no_matter_who_writes_the_event_file(
    library: str, run: Any, own_place: Path
) -> None:
    def scalars(writer: Any) -> Any:
        for step in range(3):
            writer.add_scalars("loss/all", {"a": 0.1 * step, "b": step}, step, 100.5 + step)
        writer.export_scalars_to_json(str(own_place / "out.json"))
        writer.close()
        return json.loads((own_place / "out.json").read_text())

    native = scalars(tensorboardX.SummaryWriter(str(own_place / "logs")))
    assert scalars(SummaryWriter(own_place / "logs", run=run, events=library)) == native
    assert [point[1] for point in native[str(own_place / "logs" / "loss/all" / "a")]] == [0, 1, 2]


def test_a_program_that_only_uses_torch_for_its_networks_gets_our_own_files(
    run: Any, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith(("torch.utils.tensorboard", "tensorboardX"))]:
        monkeypatch.delitem(sys.modules, name)
    writer = SummaryWriter(own_place / "ours", run=run)
    assert type(writer.native).__module__ == "rollbook.adapters.tensorboard.events"
    writer.close()


@pytest.mark.parametrize("library", ["torch", "tensorboardX"])
@pytest.mark.parametrize("how", ["package", "package and module", "install"])
def test_a_library_whose_writer_was_replaced_by_ours_still_writes_its_files_and_a_run(
    library: str, how: str, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.adapters import tensorboard

    package = torch_tensorboard if library == "torch" else tensorboardX
    theirs = package.SummaryWriter
    user = ModuleType("a_library_that_logs")
    user.SummaryWriter = theirs  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, user.__name__, user)
    if how == "install":
        assert {package.__name__, user.__name__} <= set(tensorboard.install(library))
        assert tensorboard.install(library) == []
        assert user.SummaryWriter is package.SummaryWriter is not theirs  # type: ignore[attr-defined]
    else:
        monkeypatch.setattr(package, "SummaryWriter", SummaryWriter)
        if how == "package and module":
            monkeypatch.setattr(package.writer, "SummaryWriter", SummaryWriter)
    run = rollbook.init("tb", "patched", dir=own_place / "books", sinks=(), keeper="inline")
    writer = package.SummaryWriter(str(own_place / "tb"))
    writer.add_scalar("charts/return", 21.0, 3)
    writer.add_hparams({"lr": 0.1}, {"metric": 1.0})
    writer.close()
    run.finish()
    assert run.book.metrics(["charts/return"])["charts/return"].to_pylist() == [21.0]
    accumulator = EventAccumulator(str(own_place / "tb"))
    accumulator.Reload()
    assert [event.value for event in accumulator.Scalars("charts/return")] == [21.0]
    if how == "install":
        assert isinstance(writer.native, theirs)
        tensorboard.uninstall()
    monkeypatch.undo()
    assert package.SummaryWriter is theirs
    assert how != "install" or user.SummaryWriter is theirs  # type: ignore[attr-defined]
