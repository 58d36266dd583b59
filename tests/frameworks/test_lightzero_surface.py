"""What LightZero's and DI-engine's users import and call, beside what is here: names, arguments, tags, layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("lightzero",)
pytestmark = pytest.mark.frameworks

if not hasattr(np, "bool8"):
    np.bool8 = np.bool_  # type: ignore[attr-defined]  # gym 0.25 asks for the old name

pytest.importorskip("torch")
pytest.importorskip("ding")
pytest.importorskip("lzero")

from ding.utils import log_helper  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboardX import SummaryWriter  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import lightzero as ours  # noqa: E402
from surface import differs, lacks  # noqa: E402


@pytest.fixture
def run(own_place: Path) -> Any:
    with rollbook.init("lz", "surface", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        yield run


def test_the_helpers_of_di_engine_are_there_with_all_their_arguments() -> None:
    names = [name for name in dir(log_helper) if name in ("build_logger", "pretty_print")]
    assert sorted(names) == ["build_logger", "pretty_print"]
    for name in names:
        assert differs(getattr(ours, name), getattr(log_helper, name)) in ("", "'text_level' is 'INFO', not 20")
    for name in ("get_tabulate_vars", "get_tabulate_vars_hor"):
        assert differs(getattr(ours, name), getattr(log_helper.LoggerFactory, name)) == ""


def test_every_entry_of_lightzero_is_there_with_all_its_arguments() -> None:
    import lzero.entry

    from rollbook.adapters.lightzero.entry import ENTRIES

    there = {
        name
        for name in dir(lzero.entry)
        if name.startswith(("train_", "eval_")) and callable(getattr(lzero.entry, name))
    }
    assert there - set(ENTRIES) == set()


def test_the_writer_has_every_method_and_argument_of_tensorboardx(run: Any) -> None:
    assert lacks(ours.EventWriter, SummaryWriter) == {}


def test_verbs_that_frameworks_do_not_call_work_as_well(run: Any) -> None:
    writer = ours.build_logger("anywhere", "x", run=run)[1]
    writer.add_images("pictures", np.zeros((2, 3, 8, 8), np.uint8), 1)
    writer.add_pr_curve("curve", np.array([0, 1, 1]), np.array([0.1, 0.8, 0.7]), 1)
    writer.add_audio("sound", np.zeros(100, np.float32), 1, sample_rate=8000)
    writer.add_embedding(np.zeros((3, 2), np.float32), global_step=1)
    writer.flush()
    writer.close()
    assert "pictures" in {row["key"].partition("/")[0] for row in run.book.media().to_pylist()}


def test_pretty_print_says_what_di_engines_does(capsys: pytest.CaptureFixture[str]) -> None:
    result = {"b": 1.5, "a": {"x": [1, 2]}, "none": None, "text": "t"}
    assert ours.pretty_print(result) == log_helper.pretty_print(result)
    mine, theirs = capsys.readouterr().out.split("text: t\n")[:2]
    assert mine.strip() == theirs.strip()


@pytest.mark.parametrize("n", range(1, 10))
def test_tables_are_di_engines_letter_by_letter_if_one_asks_for_that(n: int) -> None:
    values = {f"name_{i}": i / 3 if i % 2 else float(i) for i in range(n)}
    factory = log_helper.LoggerFactory
    assert ours.get_tabulate_vars(values, compat=True) == factory.get_tabulate_vars(values)
    assert ours.get_tabulate_vars_hor(values, compat=True) == factory.get_tabulate_vars_hor(values)


@pytest.mark.parametrize("record_train_iter", [False, True])
def test_the_middleware_writes_di_engines_tags(run: Any, own_place: Path, record_train_iter: bool) -> None:
    from ding.framework import OnlineRLContext, task
    from ding.framework.middleware import online_logger as native
    from ding.utils import DistributedWriter

    def train(ctx: Any) -> None:
        ctx.train_iter += 1
        ctx.env_step += 10
        ctx.train_output = {"loss": 0.5, "priority": [1.0], "[histogram]test_histogram": [1.0, 2.0, 3.0]}
        ctx.eval_value = 2.0

    def tags(folder: Path) -> dict[str, set[str]]:
        events = EventAccumulator(str(folder))
        events.Reload()
        return {kind: set(events.Tags()[kind]) - {"rollbook/attempt"} for kind in ("scalars", "histograms")}

    for logger, folder in (("native", own_place / "native"), ("ours", run.folder / "log" / "serial")):
        with task.start(async_mode=False, ctx=OnlineRLContext()):
            task.use(train)
            if logger == "native":
                writer = DistributedWriter.get_instance(str(folder))
                task.use(native(record_train_iter, train_show_freq=1))
                task.run(max_step=3)
                writer.close()
                DistributedWriter.root = None
            else:
                task.use(ours.online_logger(run, record_train_iter, train_show_freq=1))
                task.run(max_step=3)
    assert tags(run.folder / "log" / "serial") == tags(own_place / "native")
