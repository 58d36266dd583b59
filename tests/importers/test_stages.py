"""Folders of stages, such as logs/train and logs/validation, are one run, and never two trainings in one."""

from __future__ import annotations

from pathlib import Path

import pytest

import rollbook
from rollbook.sinks.event_files import Messages

BEGUN = 1_700_000_000


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "root"


def write(folder: Path, begun: int = BEGUN, rows: int = 20) -> None:
    """An event file of a loss: its value says when the file was begun."""
    folder.mkdir(parents=True, exist_ok=True)
    messages = Messages("the tests")
    with open(folder / f"events.out.tfevents.{begun}.host.1.0.v2", "wb") as file:
        file.write(messages.framed(messages.version(float(begun))))
        for n in range(rows):
            values = [messages.scalar("loss", float(begun - BEGUN))]
            file.write(messages.framed(messages.event(begun + 1.0 + n, 10 * n, values)))


def runs(root: Path) -> dict[str, dict[str, float]]:
    """The runs that are found, each with what its keys say."""
    found = {}
    for book in rollbook.open(root):
        found[book.name] = {key: float(book.series(key).mean[0]) for key in list(book.keys())}
    return found


ONE = {
    "Keras": (["logs/train", "logs/validation"], ["train/loss", "validation/loss"]),
    "Keras by date": (["logs/fit/20260101-101010/train", "logs/fit/20260101-101010/validation"], None),
    "TF-Agents": (["dqn/train", "dqn/eval"], ["train/loss", "eval/loss"]),
    "an Estimator": (["model", "model/eval"], ["loss", "eval/loss"]),
    "three stages": (["out/train", "out/val", "out/test"], ["train/loss", "val/loss", "test/loss"]),
}


@pytest.mark.parametrize("layout", ONE)
def test_the_stages_of_a_training_are_one_run_wherever_it_is_opened(layout: str, root: Path) -> None:
    folders, keys = ONE[layout]
    for n, folder in enumerate(folders):
        write(root / folder, BEGUN + n)
    home = root / folders[0] if len(Path(folders[0]).parts) == 1 else (root / folders[0]).parent
    seen = [sorted(keys) for place in (root, home) for keys in runs(place).values()]
    assert len(seen) == 2
    assert seen[0] == seen[1] == sorted(keys or seen[0])


TWO = {
    "beside another run": ["train", "eval", "PPO_1"],
    "trainings below their stage": ["train/a", "train/b", "eval/a", "eval/b"],
    "trainings with stages": ["a/train", "a/eval", "b/train", "b/eval"],
    "names that only begin like a stage": ["train_large", "eval_large"],
}


@pytest.mark.parametrize("layout", TWO)
def test_what_may_be_several_trainings_is_not_made_one(layout: str, root: Path) -> None:
    for folder in TWO[layout]:
        write(root / folder)
    expected = 2 if layout == "trainings with stages" else len(TWO[layout])
    assert len(runs(root)) == expected


def test_each_of_several_trainings_in_one_folder_has_its_own_validation(root: Path) -> None:
    """Keras writes each `fit` into the same folders; the second stopped before its first validation."""
    for n, stages in enumerate((["train", "validation"], ["train"], ["train", "validation"])):
        for stage in stages:
            write(root / "logs" / stage, BEGUN + 1000 * n + 5 * (stage == "validation"))
    assert sorted(map(sorted, (values.items() for values in runs(root).values()))) == [
        [("train/loss", 0.0), ("validation/loss", 5.0)],
        [("train/loss", 1000.0)],
        [("train/loss", 2000.0), ("validation/loss", 2005.0)],
    ]


def test_a_validation_of_an_earlier_training_is_not_the_newests(root: Path) -> None:
    write(root / "logs" / "train", BEGUN)
    write(root / "logs" / "validation", BEGUN + 5)
    write(root / "logs" / "train", BEGUN + 1000)
    assert sorted(map(sorted, (values.items() for values in runs(root).values()))) == [
        [("train/loss", 0.0), ("validation/loss", 5.0)],
        [("train/loss", 1000.0)],
    ]


def test_an_evaluation_that_had_ended_before_the_training_began_is_not_of_it(root: Path) -> None:
    write(root / "out" / "eval", BEGUN)
    write(root / "out" / "train", BEGUN + 1000)
    assert len(runs(root)) == 2
    write(root / "other" / "eval", BEGUN, rows=2000)  # it waits for the first checkpoint
    write(root / "other" / "train", BEGUN + 1000)
    assert sorted(len(values) for values in runs(root).values()) == [1, 1, 2]
