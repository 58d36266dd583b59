"""LeRobot's folders: out of a run and back into another one, and every field of them against the format."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cases import some_of
from rollbook.capture import TransitionRecorder
from rollbook.capture.episodes.recorder import EpisodeRecorder
from rollbook.errors import BadInput, Damaged
from rollbook.formats.datasets import StepSource, from_lerobot, to_lerobot
from rollbook.formats.datasets._lerobot_columns import FrameColumn
from rollbook.formats.datasets._lerobot_stats import episode_stats, pooled

EXPORTED: dict[str, Any] = {
    **dict.fromkeys(("vector", "discrete", "dict", "tuple", "multi_discrete", "multi_binary", "image")),
    "one number": gymnasium.spaces.Box(-1, 1, (1,), np.float64),
    "matrix": gymnasium.spaces.Box(-1, 1, (2, 3), np.float32),
    "cube": gymnasium.spaces.Box(0, 9, (2, 3, 4), np.int16),
    "grey": gymnasium.spaces.Box(0, 255, (8, 11), np.uint8),
    "state of a dict": gymnasium.spaces.Dict({"state": gymnasium.spaces.Discrete(3)}),
    "dots": gymnasium.spaces.Dict({"a.b": gymnasium.spaces.Box(0, 1, (2,), np.float32)}),
}
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}


def trajectories(book: Any) -> dict[str, Any]:
    return {t.episode_id: t for t in StepSource(book)}


def info_of(root: Path) -> dict[str, Any]:
    return json.loads((root / "meta" / "info.json").read_text())  # type: ignore[no-any-return]


def assert_same_tree(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert set(one) == set(other)
        for name in one:
            assert_same_tree(one[name], other[name])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for part, twin in zip(one, other, strict=True):
            assert_same_tree(part, twin)
    else:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


# -- out and back


@pytest.mark.parametrize(
    ("name", "version"),
    some_of(
        itertools.product(EXPORTED, ["v3.0", "v2.1"]),
        lambda case: list(EXPORTED).index(case[0]) % 4 == (0 if case[1] == "v3.0" else 2),
    ),
)
def test_every_space_that_has_numbers_of_one_shape_comes_back(
    recorded: Any, new_run: Any, tmp_path: Path, name: str, version: Any
) -> None:
    book, _ = recorded(EXPORTED[name] or name, EXPORTED[name] or name)
    space = StepSource(book).space("observation")
    told = to_lerobot(book, tmp_path / "robot", version=version)
    run = new_run("back")
    back = from_lerobot(tmp_path / "robot", run)
    assert (told.episodes, told.steps) == (back.episodes, back.steps) == (3, 14)
    source = StepSource(run.book)
    assert (source.space("observation"), source.space("action")) == (space, space)
    twins = trajectories(book)
    for trajectory in source:
        twin = twins.pop(trajectory.episode_id)
        assert_same_tree(trajectory.actions(space), twin.actions(space))
        for path, cells in twin.columns.items():
            if path.partition("/")[0] == "obs":
                assert_same_tree(trajectory.columns[path], np.asarray(cells))
        for path in ("terminated", "truncated"):
            assert trajectory.columns[path].tolist() == twin.columns[path].tolist()
        np.testing.assert_array_equal(trajectory.columns["reward"], np.float32(twin.columns["reward"]))
    assert not twins


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_an_end_of_both_kinds_comes_back_as_both(recorded: Any, new_run: Any, tmp_path: Path, version: Any) -> None:
    book, _ = recorded("vector", "discrete", (3, 1, 5), episodes=12, ends_in_turn=True)
    to_lerobot(book, tmp_path / "robot", version=version)
    back = new_run("back")
    from_lerobot(tmp_path / "robot", back)
    ends = [(True, False), (False, True), (True, True)] * 4
    for given in (book, back.book):
        rows = [t.row for t in StepSource(given)]
        assert [(row["terminated"], row["truncated"]) for row in rows] == ends
    lasts = [t.columns for t in StepSource(back.book)]
    assert [(bool(t["terminated"][-1]), bool(t["truncated"][-1])) for t in lasts] == ends


def test_a_folder_without_next_terminated_says_it_by_done_and_truncated(
    recorded: Any, new_run: Any, tmp_path: Path
) -> None:
    for truncate in (False, True):
        book, _ = recorded("vector", "discrete", (3,), episodes=1, truncate=truncate)
        root = tmp_path / f"robot {truncate}"
        to_lerobot(book, root)
        path = root / "data" / "chunk-000" / "file-000.parquet"
        pq.write_table(pq.read_table(path).drop_columns(["next.terminated"]), path)
        run = new_run(f"back {truncate}")
        from_lerobot(root, run)
        (trajectory,) = trajectories(run.book).values()
        assert trajectory.columns["terminated"].tolist() == [False, False, not truncate]
        assert trajectory.columns["truncated"].tolist() == [False, False, truncate]


def test_episodes_lie_in_files_of_bounded_size_and_come_back_from_them(
    recorded: Any, new_run: Any, tmp_path: Path
) -> None:
    book, _ = recorded("dict", "vector", episodes=7)
    to_lerobot(book, tmp_path / "robot", data_files_size_in_mb=0.001, chunks_size=2)
    files = sorted((tmp_path / "robot" / "data").rglob("*.parquet"))
    assert len(files) > 2
    assert files[2].relative_to(tmp_path / "robot").as_posix() == "data/chunk-001/file-000.parquet"
    frames = [row["index"] for path in files for row in pq.read_table(path).to_pylist()]
    assert frames == list(range(sum(len(t) for t in StepSource(book))))
    listed = [pq.read_table(path) for path in sorted((tmp_path / "robot" / "meta" / "episodes").rglob("*.parquet"))]
    rows = [row for table in listed for row in table.to_pylist()]
    for place, row in enumerate(rows):
        assert row["episode_index"] == place
        path = tmp_path / "robot/data/chunk-{:03d}/file-{:03d}.parquet".format(
            row["data/chunk_index"], row["data/file_index"]
        )
        inside = [frame["index"] for frame in pq.read_table(path).to_pylist() if frame["episode_index"] == place]
        assert inside == list(range(row["dataset_from_index"], row["dataset_to_index"]))
    run = new_run("back")
    assert from_lerobot(tmp_path / "robot", run).episodes == 7
    assert list(trajectories(run.book)) == list(trajectories(book))
    some = new_run("some")
    assert from_lerobot(tmp_path / "robot", some, episodes=[5, 1]).episodes == 2
    assert list(trajectories(some.book)) == [list(trajectories(book))[place] for place in (1, 5)]


def test_parts_that_come_in_another_order_stay_with_their_names(new_run: Any, tmp_path: Path) -> None:
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"), steps=True)
    for number in range(2):
        parts = {"a": np.float64(number), "b": np.float64(10 + number)}
        obs = parts if number == 0 else dict(reversed(parts.items()))
        recorder.begin(obs=obs)
        recorder.step(1.0, True, action=0, next_obs=obs)
    to_lerobot(run.book, tmp_path / "robot")
    table = pq.read_table(tmp_path / "robot" / "data" / "chunk-000" / "file-000.parquet")
    assert table["observation.a"].to_pylist() == [0.0, 1.0]
    assert table["observation.b"].to_pylist() == [10.0, 11.0]


# -- against the format


def test_the_files_of_version_3_say_what_the_format_asks(recorded: Any, tmp_path: Path) -> None:
    book, _ = recorded("dict", "vector")
    root = tmp_path / "robot"
    to_lerobot(book, root, fps=10, task="stand", robot_type="arm")
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()) == [
        "data/chunk-000/file-000.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "meta/info.json",
        "meta/rollbook.json",
        "meta/stats.json",
        "meta/tasks.parquet",
    ]

    def number(dtype: str) -> dict[str, Any]:
        return {"dtype": dtype, "shape": [1], "names": None}

    assert info_of(root) == {
        "codebase_version": "v3.0",
        "robot_type": "arm",
        "total_episodes": 3,
        "total_frames": 14,
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": 10,
        "splits": {"train": "0:3"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "features": {
            "observation.a": {"dtype": "float64", "shape": [2], "names": None},
            "observation.b.c": number("int64"),
            "action": {"dtype": "float32", "shape": [3], "names": None},
            "next.reward": number("float32"),
            "next.done": number("bool"),
            "next.terminated": number("bool"),
            "next.truncated": number("bool"),
            "timestamp": number("float32"),
            **{name: number("int64") for name in ("frame_index", "episode_index", "index", "task_index")},
        },
    }
    frames = pq.read_table(root / "data" / "chunk-000" / "file-000.parquet")
    assert frames.column_names == list(info_of(root)["features"])
    kinds = {field.name: field.type for field in frames.schema}
    assert kinds["observation.a"] == pa.list_(pa.float64(), 2)
    assert (kinds["observation.b.c"], kinds["next.done"]) == (pa.int64(), pa.bool_())
    rows = frames.to_pylist()
    assert [row["index"] for row in rows] == list(range(14))
    assert [row["episode_index"] for row in rows] == [0] * 4 + [1] * 6 + [2] * 4
    assert [row["frame_index"] for row in rows] == [*range(4), *range(6), *range(4)]
    assert [round(row["timestamp"], 4) for row in rows[4:7]] == [0.0, 0.1, 0.2]
    assert [row["next.done"] for row in rows] == [i in (3, 9, 13) for i in range(14)]
    assert {row["task_index"] for row in rows} == {0}


def test_tasks_of_version_3_are_what_pandas_reads_as_an_index(recorded: Any, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    book, _ = recorded("vector", "vector", episodes=1)
    to_lerobot(book, tmp_path / "robot", task="stand up")
    tasks = pandas.read_parquet(tmp_path / "robot" / "meta" / "tasks.parquet")
    assert list(tasks.columns) == ["task_index"]
    assert list(tasks.index) == ["stand up"]
    assert tasks.loc["stand up", "task_index"] == 0


def test_episodes_of_version_3_say_where_they_lie_and_what_is_in_them(recorded: Any, tmp_path: Path) -> None:
    book, given = recorded("vector", "discrete")
    to_lerobot(book, tmp_path / "robot", task="stand")
    table = pq.read_table(tmp_path / "robot" / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
    rows = table.to_pylist()
    assert [row["episode_index"] for row in rows] == [0, 1, 2]
    assert [row["length"] for row in rows] == [4, 6, 4]
    assert [row["tasks"] for row in rows] == [["stand"]] * 3
    assert [(row["dataset_from_index"], row["dataset_to_index"]) for row in rows] == [(0, 4), (4, 10), (10, 14)]
    assert [row["episode_id"] for row in rows] == list(trajectories(book))
    for name in ("data/chunk_index", "data/file_index", "meta/episodes/chunk_index", "meta/episodes/file_index"):
        assert table[name].to_pylist() == [0, 0, 0]
    features = info_of(tmp_path / "robot")["features"]
    keys = ("min", "max", "mean", "std", "count", *QUANTILES)
    assert {name for name in table.column_names if name.startswith("stats/")} == {
        f"stats/{feature}/{key}" for feature in features for key in keys
    }
    truth = np.stack(given[1]["obs"][:-1]).astype(np.float64)
    assert rows[1]["stats/observation.state/count"] == [6]
    np.testing.assert_allclose(rows[1]["stats/observation.state/std"], truth.std(0))
    np.testing.assert_allclose(rows[1]["stats/observation.state/q10"], np.quantile(truth, 0.1, axis=0))
    np.testing.assert_allclose(rows[1]["stats/action/mean"], [np.mean(given[1]["action"])])


def test_statistics_of_all_frames_are_those_of_all_frames(recorded: Any, tmp_path: Path) -> None:
    book, given = recorded("vector", "discrete", episodes=5)
    to_lerobot(book, tmp_path / "robot", data_files_size_in_mb=0.002)
    stats = json.loads((tmp_path / "robot" / "meta" / "stats.json").read_text())
    truth = np.concatenate([np.stack(one["obs"][:-1]) for one in given]).astype(np.float64)
    told = stats["observation.state"]
    assert told["count"] == [len(truth)]
    for name in ("min", "max", "mean", "std"):
        np.testing.assert_allclose(told[name], getattr(truth, name)(0), rtol=1e-12)
    assert set(stats) == set(info_of(tmp_path / "robot")["features"])
    for name in QUANTILES:
        assert len(told[name]) == 3


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (70,)])
def test_statistics_of_many_episodes_at_once_are_those_of_each(shape: tuple[int, ...]) -> None:
    random, lengths = np.random.default_rng(0), [1, 7, 2, 30]
    cells = random.normal(size=(sum(lengths), *shape)).astype(np.float32)
    found = episode_stats(FrameColumn("x", "x", cells), lengths)
    for episode, part in enumerate(np.split(cells.astype(np.float64), np.cumsum(lengths)[:-1])):
        rows = part.reshape(len(part), *(shape or (1,)))
        for name in ("min", "max", "mean", "std"):
            np.testing.assert_allclose(found[name][episode], getattr(rows, name)(0), atol=1e-12)
        for name, share in QUANTILES.items():
            np.testing.assert_allclose(found[name][episode], np.quantile(rows, share, axis=0), atol=1e-12)
        assert found["count"][episode].tolist() == [len(part)]
    whole = pooled([{name: array[:2] for name, array in found.items()}, {k: v[2:] for k, v in found.items()}])
    np.testing.assert_allclose(
        whole["std"][0], cells.astype(np.float64).reshape(len(cells), -1).std(0).reshape(shape or (1,))
    )


@pytest.mark.parametrize("shape", [(8, 9), (8, 9, 3), (8, 9, 4)])
def test_statistics_of_pictures_are_of_three_channels_from_0_to_1(shape: tuple[int, ...]) -> None:
    cells = np.random.default_rng(0).integers(0, 200, (7, *shape), dtype=np.uint8)
    found = episode_stats(FrameColumn("x", "x", cells, is_picture=True), [2, 5])
    for episode, part in enumerate((cells[:2], cells[2:])):
        pixels = part.reshape(-1, shape[2] if len(shape) == 3 else 1)[:, :3] / 255
        pixels = np.broadcast_to(pixels, (len(pixels), 3))
        for name in ("min", "max", "mean", "std"):
            np.testing.assert_allclose(found[name][episode], getattr(pixels, name)(0).reshape(3, 1, 1))
        for name, share in QUANTILES.items():
            np.testing.assert_allclose(found[name][episode], np.quantile(pixels, share, axis=0).reshape(3, 1, 1))


def test_version_2_1_is_a_file_an_episode(recorded: Any, tmp_path: Path) -> None:
    book, _ = recorded("dict", "vector")
    to_lerobot(book, tmp_path / "robot", fps=10, task="stand", version="v2.1")
    info = info_of(tmp_path / "robot")
    assert (info["codebase_version"], info["total_episodes"], info["total_frames"]) == ("v2.1", 3, 14)
    assert info["features"]["observation.a"] == {"dtype": "float64", "shape": [2], "names": None}
    rows = pq.read_table(tmp_path / "robot" / "data" / "chunk-000" / "episode_000001.parquet").to_pylist()
    assert [row["index"] for row in rows] == [4, 5, 6, 7, 8, 9]
    assert [round(row["timestamp"], 4) for row in rows[:3]] == [0.0, 0.1, 0.2]
    assert [row["next.done"] for row in rows] == [False] * 5 + [True]
    stats = [json.loads(line) for line in (tmp_path / "robot" / "meta" / "episodes_stats.jsonl").open()]
    assert stats[1]["stats"]["next.reward"]["count"] == [6]


def test_pictures_are_png_without_loss(recorded: Any, new_run: Any, tmp_path: Path) -> None:
    book, given = recorded("image", "discrete", (3,), episodes=1)
    to_lerobot(book, tmp_path / "robot")
    feature = info_of(tmp_path / "robot")["features"]["observation.images.image"]
    assert feature == {"dtype": "image", "shape": [9, 10, 3], "names": ["height", "width", "channels"]}
    stats = json.loads((tmp_path / "robot" / "meta" / "stats.json").read_text())
    assert np.shape(stats["observation.images.image"]["mean"]) == (3, 1, 1)
    run = new_run("back")
    from_lerobot(tmp_path / "robot", run)
    (trajectory,) = trajectories(run.book).values()
    np.testing.assert_array_equal(trajectory.columns["obs"], np.stack(given[0]["obs"][:3]))


# -- what is refused


def test_agents_and_unlike_episodes_do_not_fit_into_one_lerobot_folder(new_run: Any, tmp_path: Path) -> None:
    run = new_run()
    with TransitionRecorder(run.scope("train")) as transitions:
        for agent, obs in (("red", [1.0]), ("blue", [1.0, 2.0])):
            transitions.add(
                obs=np.array(obs), action=0, reward=1.0, next_obs=np.array(obs), terminated=True, agent=agent
            )
    with pytest.raises(BadInput, match=r"blue, red\. Name one with agent="):
        to_lerobot(run.book, tmp_path / "a")
    to_lerobot(run.book, tmp_path / "b", agent="red")
    other = new_run("other")
    recorder = EpisodeRecorder(other.scope("train"), steps=True)
    for size in (1, 2):
        recorder.begin(obs=np.zeros(size))
        recorder.step(1.0, True, action=0, next_obs=np.zeros(size))
    with pytest.raises(BadInput, match="other columns than the ones before"):
        to_lerobot(other.book, tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_spaces_without_one_shape_are_refused_before_anything_is_written(recorded: Any, tmp_path: Path) -> None:
    for space in (
        gymnasium.spaces.Sequence(gymnasium.spaces.Box(0, 1, (2,), np.float32)),
        gymnasium.spaces.OneOf([gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiBinary(2)]),
        gymnasium.spaces.Text(5),
    ):
        book, _ = recorded(space, "discrete")
        for version in ("v3.0", "v2.1"):
            with pytest.raises(BadInput, match="no numbers of one shape"):
                to_lerobot(book, tmp_path / "robot", version=version)  # type: ignore[arg-type]
            assert not (tmp_path / "robot").exists()


def test_another_version_is_refused_by_name(recorded: Any, new_run: Any, tmp_path: Path) -> None:
    book, _ = recorded("vector", "discrete", (2,), episodes=1)
    with pytest.raises(BadInput, match=r"version='v1\.6'\): give one of v3\.0, v2\.1"):
        to_lerobot(book, tmp_path / "robot", version="v1.6")  # type: ignore[arg-type]
    run = new_run("back")
    with pytest.raises(BadInput, match=r"no meta/info\.json"):
        from_lerobot(tmp_path, run)
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text(
        json.dumps({"codebase_version": "v4.0", "total_episodes": 1, "features": {}, "chunks_size": 1000})
    )
    with pytest.raises(BadInput, match=r"version v4\.0; v3\.0, v2\.1 and v2\.0 are read"):
        from_lerobot(tmp_path, run)


def test_files_that_are_not_what_their_folder_says_are_damaged(recorded: Any, new_run: Any, tmp_path: Path) -> None:
    book, _ = recorded("vector", "discrete", (3,), episodes=2)
    to_lerobot(book, tmp_path / "robot")
    run = new_run("back")
    with pytest.raises(BadInput, match="no episode 7; it has 2"):
        from_lerobot(tmp_path / "robot", run, episodes=[0, 7])
    path = tmp_path / "robot" / "data" / "chunk-000" / "file-000.parquet"
    whole = pq.read_table(path)
    for table, message in (
        (whole.slice(0, 5), "2 frames of episode 1; meta/episodes says 3"),
        (whole.slice(0, 3), "no frame of episode 1"),
        (whole.drop_columns(["episode_index"]), "no column episode_index"),
    ):
        pq.write_table(table, path)
        with pytest.raises(Damaged, match=message):
            from_lerobot(tmp_path / "robot", run)
    path.write_bytes(b"PAR1")
    with pytest.raises(Damaged, match="cannot be read"):
        from_lerobot(tmp_path / "robot", run)
    path.unlink()
    with pytest.raises(Damaged, match="cannot be read"):
        from_lerobot(tmp_path / "robot", run)
