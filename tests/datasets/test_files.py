"""JSON lines and RLlib's Parquet: out of a run, and back into another one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from rollbook.capture import TransitionRecorder
from rollbook.capture.gym import RecordEpisodes
from rollbook.errors import BadInput, Damaged, NewerFormat
from rollbook.formats.datasets import StepSource, from_jsonl, from_rllib, jsonl, to_jsonl, to_lerobot, to_rllib
from rollbook.formats.datasets._png import pixels, png


def trajectories(book: Any) -> dict[tuple[str, str], Any]:
    return {(t.episode_id, t.agent): t for t in StepSource(book)}


def assert_same_cells(one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert [np.asarray(cell).tolist() for cell in one] == [np.asarray(cell).tolist() for cell in other]


def assert_same_trajectories(one: Any, other: Any) -> None:
    mine, theirs = trajectories(one), trajectories(other)
    assert list(mine) == list(theirs)
    for key, trajectory in mine.items():
        twin = theirs[key]
        assert trajectory.t.tolist() == twin.t.tolist()
        assert set(trajectory.columns) == set(twin.columns)
        for name, cells in trajectory.columns.items():
            assert_same_cells(cells, twin.columns[name])
        assert set(trajectory.last) == set(twin.last)
        for name, cell in trajectory.last.items():
            np.testing.assert_array_equal(cell, twin.last[name])
        for name in ("return", "length", "terminated", "truncated", "complete", "seed"):
            assert trajectory.row.get(name) == pytest.approx(twin.row.get(name), nan_ok=True), name


# -- JSON lines


@pytest.mark.parametrize("name", ["steps.jsonl", "steps.jsonl.gz"])
@pytest.mark.parametrize("observed", ["vector", "dict", "image"])
def test_json_lines_bring_everything_back(
    recorded: Any, new_run: Any, tmp_path: Path, observed: str, name: str
) -> None:
    book, _ = recorded(observed, "tuple")
    told = to_jsonl(book, tmp_path / name)
    run = new_run("back")
    back = from_jsonl(tmp_path / name, run.scope("train"))
    assert (told.episodes, told.steps) == (back.episodes, back.steps) == (3, 14)
    assert_same_trajectories(book, run.book)
    assert StepSource(run.book).space("observation") == StepSource(book).space("observation")


@pytest.mark.parametrize("observed", ["vector", "discrete", "multi_binary", "image"])
def test_lines_made_ahead_are_those_of_each_episode_in_whatever_order_they_are_asked_for(
    new_run: Any,
    seal: Any,
    odd: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tuned: Callable[..., None],
    observed: str,
) -> None:
    run = new_run()
    scopes = [RecordEpisodes(odd(observed, [4, 1, 6]), run.scope(name), steps=True) for name in "ab"]
    for number in range(12):
        for env in scopes if number % 4 == 3 else scopes[:1]:  # two at once have their rows between each other's
            env.action_space.seed(number)
            env.reset(seed=number)
        ended = [False] * len(scopes)
        for _ in range(2 if number == 7 else 6):
            for place, env in enumerate(scopes if number % 4 == 3 else scopes[:1]):
                if not ended[place]:
                    ended[place] = any(env.step(env.action_space.sample())[2:4])
    book = seal(run)
    tuned(rows_ahead=16)
    ids = [episode for episode, _ in StepSource(book).keys]
    real, made = jsonl._Ahead.episode, []

    def watched(*arguments: Any) -> str | None:
        made.append(real(*arguments))
        return made[-1]

    for n, order in enumerate((ids, ids[::-1], [*ids[5:], *ids[:5]], ids[::2])):
        with monkeypatch.context() as patch:
            patch.setattr(jsonl._Ahead, "episode", watched)
            told = to_jsonl(book, tmp_path / f"{n}", episodes=order)
            patch.setattr(jsonl._Ahead, "episode", lambda *_: None)
            each = to_jsonl(book, tmp_path / f"{n} each", episodes=order)
        assert (tmp_path / f"{n}").read_bytes() == (tmp_path / f"{n} each").read_bytes()
        assert (told.episodes, told.steps, told.with_gaps) == (each.episodes, each.steps, each.with_gaps)
    assert any(made) == (observed != "image")
    assert None in made


def test_json_lines_are_plain_and_strict(recorded: Any, tmp_path: Path) -> None:
    book, given = recorded("vector", "discrete", (2,), episodes=1)
    to_jsonl(book, tmp_path / "a.jsonl")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = [json.loads(line, parse_constant=refuse) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert (lines[0]["rollbook"], lines[0]["version"]) == ("steps", 1)
    assert lines[1]["types"]["obs"] == ["float32", [3]]
    assert [line["t"] for line in lines[2:]] == [0, 1, 2]
    np.testing.assert_array_equal(np.float32(lines[4]["obs"]), given[0]["obs"][2])
    assert "action" not in lines[4]


def test_odd_numbers_and_texts_survive_json(new_run: Any, tmp_path: Path) -> None:
    run = new_run()
    with TransitionRecorder(run.scope("train")) as transitions:
        for reward, word in ((float("nan"), "nan"), (float("inf"), "é\n"), (-float("inf"), "")):
            transitions.add(obs=np.array([reward, 1.0]), action=word, reward=reward, next_obs=np.zeros(2), agent="a b")
    to_jsonl(run.book, tmp_path / "a.jsonl")
    back = new_run("back")
    from_jsonl(tmp_path / "a.jsonl", back)
    assert_same_trajectories(run.book, back.book)


def test_a_file_that_is_none_is_refused_with_its_line(recorded: Any, new_run: Any, tmp_path: Path) -> None:
    book, _ = recorded("vector", "discrete", (2,), episodes=1)
    to_jsonl(book, tmp_path / "a.jsonl")
    good = (tmp_path / "a.jsonl").read_text().splitlines()
    run = new_run("back")
    for lines, error, message in (
        ([good[0], good[2]], Damaged, "line 2.*before any episode"),
        ([good[0], good[1], "{"], Damaged, "line 3"),
        (['{"other": 1}'], Damaged, "line 1"),
        (['{"rollbook": "steps", "version": 99}'], NewerFormat, "version 99"),
        ([good[0], good[1], good[2].replace('"reward"', '"obs/x"')], Damaged, "types"),
    ):
        (tmp_path / "bad.jsonl").write_text("\n".join(lines))
        if "types" in message:
            (tmp_path / "bad.jsonl").write_text("\n".join([*lines[:2], lines[2].replace("[", "[7, ", 1)]))
        with pytest.raises(error, match=message):
            from_jsonl(tmp_path / "bad.jsonl", run)


def test_an_export_that_fails_leaves_no_file(recorded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollbook.formats.datasets import jsonl

    book, _ = recorded("vector", "discrete", (2,), episodes=2)
    calls = []

    def fail(*_: Any) -> None:
        calls.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jsonl, "_write", fail)
    with pytest.raises(OSError, match="No space"):
        to_jsonl(book, tmp_path / "a.jsonl.gz")
    assert calls
    assert not list(tmp_path.glob("a.jsonl*"))


def test_exporting_more_than_fits_keeps_one_episode_in_memory(recorded: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from rollbook.formats.datasets import _source

    book, _ = recorded("vector", "discrete", (40,), episodes=8)
    alive: list[int] = []
    real = _source.StepSource._locate

    def watched(self: Any, spans: Any) -> Any:
        alive.append(sum(stop - start for _, _, start, stop in spans))
        return real(self, spans)

    monkeypatch.setattr(_source.StepSource, "_locate", watched)
    to_jsonl(book, tmp_path / "a.jsonl")
    assert alive == [41] * 8


# -- RLlib


def test_rllib_rows_hold_what_its_reader_looks_for(recorded: Any, tmp_path: Path) -> None:
    book, given = recorded("vector", "discrete", (3, 2), episodes=2)
    told = to_rllib(book, tmp_path / "offline", action_logp=-0.5)
    (path,) = told.paths
    table = pq.read_table(path)
    assert table.column_names == ["eps_id", "agent_id", "module_id", "t", "obs", "actions", "rewards", "new_obs",
                                  "terminateds", "truncateds", "action_logp"]  # fmt: skip
    rows = table.to_pylist()
    assert [row["t"] for row in rows] == [0, 1, 2, 0, 1]
    np.testing.assert_array_equal(np.float32(rows[2]["new_obs"]), given[0]["obs"][3])
    assert [row["terminateds"] for row in rows] == [False, False, True, False, True]
    assert [row["actions"] for row in rows[:3]] == [int(action) for action in given[0]["action"]]


@pytest.mark.parametrize(
    ("observed", "acted"), [("vector", "vector"), ("image", "discrete"), ("multi_binary", "multi_discrete")]
)
def test_rllib_rows_come_back_into_a_run(
    recorded: Any, new_run: Any, tmp_path: Path, observed: str, acted: str
) -> None:
    book, _ = recorded(observed, acted)
    to_rllib(book, tmp_path / "offline", rows_per_file=5)
    run = new_run("back")
    back = from_rllib(tmp_path / "offline", run.scope("train"))
    assert (back.episodes, back.steps) == (3, 14)
    mine, theirs = trajectories(run.book), trajectories(book)
    assert list(mine) == list(theirs)
    for key, trajectory in mine.items():
        np.testing.assert_array_equal(trajectory.observations(), theirs[key].observations())
        np.testing.assert_array_equal(trajectory.actions(), theirs[key].actions())
        assert trajectory.columns["reward"].tolist() == theirs[key].columns["reward"].tolist()


def test_dict_observations_are_flattened_for_rllib_only_when_asked(recorded: Any, tmp_path: Path) -> None:
    book, given = recorded("dict", "discrete", (2,), episodes=1)
    with pytest.raises(BadInput, match="flatten=True"):
        to_rllib(book, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    told = to_rllib(book, tmp_path / "b", flatten=True)
    first = pq.read_table(told.paths[0])["obs"].to_pylist()[0]
    one_hot = np.eye(4)[given[0]["obs"][0]["b"]["c"]]
    np.testing.assert_allclose(first, [*given[0]["obs"][0]["a"], *one_hot])


def test_each_agent_gets_a_folder_for_rllib(new_run: Any, tmp_path: Path) -> None:
    run = new_run()
    with TransitionRecorder(run.scope("train")) as transitions:
        for agent in ("red", "blue"):
            transitions.add(
                obs=[1.0], action=0, reward=1.0, next_obs=[2.0], terminated=True, agent=agent, action_logp=-1.5
            )
    to_rllib(run.book, tmp_path / "out")
    for agent in ("red", "blue"):
        (row,) = pq.read_table(tmp_path / "out" / agent).to_pylist()
        assert (row["agent_id"], row["obs"], row["action_logp"]) == (agent, [1.0], -1.5)


def test_a_folder_that_is_not_empty_is_left_alone(recorded: Any, tmp_path: Path) -> None:
    book, _ = recorded("vector", "discrete", (2,), episodes=1)
    (tmp_path / "x").write_text("mine")
    for export in (to_rllib, to_lerobot):
        with pytest.raises(BadInput, match="not empty"):
            export(book, tmp_path)
    assert (tmp_path / "x").read_text() == "mine"


def test_rows_that_rllib_wrote_twice_count_once(recorded: Any, new_run: Any, tmp_path: Path) -> None:
    book, _ = recorded("vector", "discrete", (3, 2), episodes=2)
    (path,) = to_rllib(book, tmp_path / "offline").paths
    (tmp_path / "offline" / "part-00001.parquet").write_bytes(Path(path).read_bytes())
    run = new_run("back")
    told = from_rllib(tmp_path / "offline", run)
    assert (told.episodes, told.steps, told.repeated) == (2, 5, 2)


def test_files_that_are_no_rows_of_rllib_are_refused(new_run: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    pq.write_table(pa.table({"item": [b"x"]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="output_write_episodes=False"):
        from_rllib(tmp_path, new_run())
    with pytest.raises(BadInput, match="no Parquet file"):
        from_rllib(tmp_path / "nowhere", new_run())


# -- PNG


@pytest.mark.parametrize("shape", [(9, 10), (8, 12, 3), (16, 8, 4)])
def test_png_loses_nothing_and_others_read_it(shape: tuple[int, ...]) -> None:
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(pixels(png(picture)), picture)


def test_png_of_others_is_read_whatever_filters_it_uses() -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    smooth = (np.add.outer(np.arange(40), np.arange(50))[..., None] * [1, 2, 3] % 256).astype(np.uint8)
    noisy = np.random.default_rng(0).integers(0, 256, (31, 17, 4), dtype=np.uint8)
    for picture in (smooth, noisy, smooth[..., 0], noisy[..., :3]):
        for level in (1, 9):
            file = io.BytesIO()
            image.fromarray(picture).save(file, "PNG", compress_level=level, optimize=level == 9)
            np.testing.assert_array_equal(pixels(file.getvalue()), picture)
        np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(png(picture)))), picture)


@pytest.mark.parametrize("cut", [0, 4, 20, 45])
def test_a_broken_png_is_damaged_not_a_crash(cut: int) -> None:
    with pytest.raises(Damaged, match="cannot be read here as a PNG"):
        pixels(png(np.zeros((8, 8, 3), np.uint8))[:cut])


def test_compressed_lines_are_gzip(recorded: Callable[..., Any], tmp_path: Path) -> None:
    book, _ = recorded("vector", "discrete", (2,), episodes=1)
    to_jsonl(book, tmp_path / "a.jsonl.gz")
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).startswith(b'{"rollbook": "steps"')
