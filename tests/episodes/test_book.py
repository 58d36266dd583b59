"""Episodes and samples through a real run, and read back from its book."""

from __future__ import annotations

import json
import os
import signal
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import rollbook
from forked_programs import Interpreter
from rollbook.book.book import Book
from rollbook.capture.episodes.recorder import EpisodeRecorder
from rollbook.capture.gym import RecordEpisodes, record_envs
from rollbook.storage.parts import Part
from rollbook.storage.sealing.folder import seal
from workers import cartpole

pytestmark = pytest.mark.usefixtures("sealed")

SOURCES = str(Path(rollbook.__file__).parents[1])


def test_a_recorded_environment_fills_the_tables(new_run: Any) -> None:
    run = new_run()
    env = RecordEpisodes(cartpole(), run.scope("train"), steps="first", info_keys=["none"])
    for seed in range(4):
        env.reset(seed=seed, options={"level": seed})
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(seed % 2)
            over = terminated or truncated
        run.clock(env_step=run.clocks_now().get("env_step", 0) + 6)
    book = run.book
    episodes = book.episodes().to_pylist()
    assert [row["length"] for row in episodes] == [6] * 4
    assert [row["seed"] for row in episodes] == [0, 1, 2, 3]
    assert [row["env_step"] for row in episodes] == [None, 6, 12, 18]
    assert [json.loads(row["options"]) for row in episodes] == [{"level": n} for n in range(4)]
    assert {row["scope"] for row in episodes} == {"train"}
    first = book.steps(episodes[0]["episode_id"]).to_pylist()
    assert [row["t"] for row in first] == list(range(7))
    assert np.asarray(first[3]["obs"]).shape == (4,)
    assert first[-1]["action"] is None
    assert not book.steps(episodes[1]["episode_id"]).num_rows
    metrics = book.metrics(["train/return", "train/length", "train/counted_env_step"]).to_pylist()
    assert [row["train/counted_env_step"] for row in metrics] == [6, 12, 18, 24]
    assert book.series("train/return", x="env_step").x.tolist() == [6, 12, 18]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_sub_processes_write_into_the_same_run(new_run: Any, context: str) -> None:
    run = new_run()
    scope = run.scope("train")
    makers = record_envs([cartpole] * 3, scope)
    envs = RecordEpisodes(AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP, context=context), scope)
    envs.reset(seed=1)
    for step in range(13):
        run.clock(env_step=3 * step)
        envs.step(np.array([step % 2] * 3))
    envs.close()
    rows = [row for row in run.book.episodes().to_pylist() if row["complete"]]
    assert [(row["env_index"], row["length"]) for row in sorted(rows, key=lambda row: row["env_index"])] == [
        (i, 6) for i in (0, 0, 1, 1, 2, 2)
    ]
    assert sorted(row["env_step"] for row in rows) == [15, 15, 15, 33, 33, 33]
    assert len({row["writer"] for row in rows}) == 3
    assert run.book.alerts().num_rows == 0
    assert run.book.problems() == []


def test_a_vector_of_16_with_pixels_keeps_its_pictures(new_run: Any) -> None:
    class Pixels(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(0, 255, (16, 16, 3), np.uint8)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.t = 0
            return np.full((16, 16, 3), 0, np.uint8), {}

        def step(self, action: Any) -> Any:
            self.t += 1
            info = {"data": {"running": {"light": self.t}}}
            return np.full((16, 16, 3), self.t, np.uint8), 1.0, self.t == 5, False, info

    run = new_run()
    vector = SyncVectorEnv([Pixels] * 16, autoreset_mode=AutoresetMode.SAME_STEP)
    envs = RecordEpisodes(vector, run.scope("train"), steps=lambda n: n == 3)
    envs.reset()
    for _ in range(10):
        envs.step(np.zeros(16, np.int64))
    book = run.book
    assert book.episodes().num_rows == 32
    chosen = next(row["episode_id"] for row in book.episodes().to_pylist() if row["number"] == 3)
    steps = book.steps(chosen).to_pylist()
    assert {row["shape/obs"] for row in steps} == {"16,16,3"}
    assert [np.asarray(row["obs"]).reshape(16, 16, 3)[0, 0, 0] for row in steps] == [0, 1, 2, 3, 4, 5]
    assert sum(row["running/light"] is not None for row in book.steps().to_pylist()) == 32 * 5


KILLED = """
import os, signal, sys
import numpy as np
import rollbook
from rollbook.capture.episodes.recorder import EpisodeRecorder

run = rollbook.init("p", "killed", dir=sys.argv[1], sinks=[], keeper="inline")
recorder = EpisodeRecorder(run.scope("train"), steps=True)
for episode in range(3):
    recorder.begin(obs=np.zeros(3))
    for t in range(50):
        recorder.step(1.0, t == 49, action=t, next_obs=np.full(3, t + 1.0))
recorder.begin(obs=np.zeros(3))
for t in range(1300):
    recorder.step(0.5, action=t, next_obs=np.full(3, t + 1.0))
run.log_samples(["a", "b"], reward=[1.0, 2.0])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_sigkill_in_mid_episode_keeps_every_finished_one_and_the_part_that_was_written(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    done = interpreter.run(textwrap.dedent(KILLED), tmp_path, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "p").iterdir()
    book = Book(folder)
    assert [row["return"] for row in book.episodes().to_pylist()] == [50.0] * 3
    finished = set(book.episodes()["episode_id"].to_pylist())
    part = [row for row in book.steps().to_pylist() if row["episode_id"] not in finished]
    assert [row["action"] for row in part] == list(range(1024))
    assert part[-1]["obs"] == [1023.0] * 3
    assert book.samples()["item"].to_pylist() == ["a", "b"]
    assert book.status == "crashed"


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """From then on, the rows of each read of a sealed part; `whole`: of those alone that read all columns."""

    def begin(*, whole: bool) -> list[int]:
        rows: list[int] = []
        read = Part.read

        def counted(part: Part, columns: Any = None, groups: Any = None) -> Any:
            table = read(part, columns, groups)
            rows.append(table.num_rows if columns is None or not whole else 0)
            return table

        monkeypatch.setattr(Part, "read", counted)
        return rows

    return begin


def test_reading_the_steps_of_one_episode_costs_about_that_episode(
    new_run: Any, rows_read: Callable[..., list[int]], tuned: Callable[..., None]
) -> None:
    tuned(episode_group_rows=100)
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"), steps=True)
    for episode in range(1000):
        recorder.begin(obs=[float(episode), 0.0])
        for t in range(9):
            recorder.step(1.0, t == 8, action=t, next_obs=[float(episode), t + 1.0])
    run.internals.writer.close()
    seal(run.folder, final=True)
    book = Book(run.folder)
    ids = book.episodes()["episode_id"].to_pylist()
    rows = rows_read(whole=False)
    for place in (0, 1, 499, 999):
        rows.clear()
        steps = book.steps(ids[place])
        assert steps["t"].to_pylist() == list(range(10))
        assert steps["obs"].to_pylist() == [[float(place), float(t)] for t in range(10)]
        assert sum(rows) <= 200, "of 10,000"
    rows.clear()
    assert book.steps("nobody").num_rows == 0
    assert sum(rows) == 0


def test_looking_around_a_point_reads_the_clock_and_the_blocks_beside_it(
    new_run: Any, rows_read: Callable[..., list[int]], tuned: Callable[..., None]
) -> None:
    tuned(episode_group_rows=50)
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"), steps=True, clock="env_step")
    for episode in range(100):
        recorder.begin(obs=[float(episode)])
        for t in range(9):
            recorder.step(1.0, t == 8, action=t, next_obs=[t + 1.0])
        if episode % 10 == 0:
            run.log_samples(["item"], reward=[float(episode)])
    run.internals.writer.close()
    seal(run.folder, final=True)
    whole = Book(run.folder).at(rows=4, env_step=450)
    tuned(near_rows=5)
    book = Book(run.folder)
    rows = rows_read(whole=True)
    found = book.at(rows=4, env_step=450)
    assert found.keys() == whole.keys() >= {"episodes", "steps", "samples", "metrics"}
    assert all(found[name].equals(whole[name]) for name in found)
    assert found["samples"]["reward"].to_pylist() == [30.0, 40.0, 50.0, 60.0]
    assert sum(rows) < 400, "of 1,000 steps, 100 episodes and what belongs to them"


def test_looking_around_a_point_leaves_out_what_a_rewind_abandoned(new_run: Any, tuned: Callable[..., None]) -> None:
    run = new_run()
    for step in range(8):
        run.log_samples([f"old {step}"], env_step=step)
    run.rewind(env_step=4)
    run.log_samples(["new"], env_step=5)
    whole = run.book.at(rows=2, env_step=6)["samples"]["item"].to_pylist()
    assert whole == ["old 4", "new"]
    tuned(near_rows=1)
    assert run.book.at(rows=2, env_step=6)["samples"]["item"].to_pylist() == whole


def test_steps_are_found_in_the_journal_and_in_parquet_alike(new_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"), steps=True)
    for episode in range(3):
        recorder.begin(obs=[0.0])
        recorder.step(1.0, False, action=episode, next_obs=[1.0])
        recorder.step(1.0, True, action=episode, next_obs=[2.0])
    ids = run.book.episodes()["episode_id"].to_pylist()
    live = [run.book.steps(name).drop_columns(["time"]).to_pylist() for name in ids]
    assert [[row["action"] for row in rows] for rows in live] == [[n, n, None] for n in range(3)]
    run.finish()
    sealed = [Book(run.folder).steps(name).drop_columns(["time"]).to_pylist() for name in ids]
    assert sealed == live


@pytest.mark.parametrize("apart", [False, True])
def test_spaces_of_unlike_kinds_in_one_run_keep_their_types(new_run: Any, apart: bool) -> None:
    run = new_run()
    given = {"vector": [1.5, 2.0], "number": 3, "word": "up", "nested": [[1, 2], [3]]}
    for name, obs in given.items():
        recorder = EpisodeRecorder(run.scope(name), steps=True)
        recorder.begin(obs=obs)
        recorder.step(1.0, True, action=1, next_obs=obs)
        if apart:
            seal(run.folder)
    for sealed in (False, True):
        if sealed:
            run.internals.writer.close()
            seal(run.folder, final=True)
        book = Book(run.folder)
        for row in book.episodes().to_pylist():
            steps = book.steps(row["episode_id"])
            cells = steps["obs"].to_pylist()
            if row["scope"] == "nested":  # no type of a table holds these; they are JSON
                cells = [json.loads(cell) for cell in cells]
            assert cells == [given[row["scope"]]] * 2


def test_samples_are_searched_sorted_and_joined_by_clock(new_run: Any) -> None:
    run = new_run()
    for step in range(3):
        items = [f"C{'N' * (i + step)}" for i in range(4)]
        run.log_samples(items, reward=np.arange(4.0) + step, group=[0, 0, 1, 1], env_step=step * 100)
    book = run.book
    found = book.samples(where="reward >= 4 and is_new", order_by="reward desc", limit=2)
    assert found["reward"].to_pylist() == [5.0, 4.0]
    assert found["item"].to_pylist() == ["CNNNNN", "CNNNN"]
    times = book.sql(
        "select item, min(env_step) as first, max(env_step) as last, count(*) as n from samples "
        "group by item order by item"
    ).fetchall()
    assert times[3] == ("CNNN", 0, 200, 3)
    near = book.at(env_step=100, rows=4)["samples"]
    assert set(near["env_step"].to_pylist()) == {100}
    assert book.metrics(["samples/unique"])["samples/unique"].to_pylist() == [4, 5, 6]


def test_each_different_item_has_a_first_and_a_last_time_it_was_seen(new_run: Any) -> None:
    run = new_run()
    run.log_samples(["a", "b"], reward=[1.0, 2.0])
    run.log_samples(["b", {"x": 1}], reward=[3.0, 4.0], ids=["mine", "too"])
    run.log_samples([{"x": 1}, "b", "b"], reward=[5.0, 6.0, 7.0])
    book = run.book
    found = book.samples(unique=True, order_by="item")
    names = ("item", "reward", "times_seen", "first_seen", "last_seen")
    assert list(zip(*(found[name].to_pylist() for name in names), strict=True)) == [
        ("a", 1.0, 1, 0, 0),
        ("b", 7.0, 4, 0, 2),
        ('{"x": 1}', 5.0, 2, 1, 2),
    ]
    times = book.samples()["time"].to_pylist()
    assert found["first_time"].to_pylist() == [times[0], times[1], times[3]]
    assert found["time"].to_pylist() == [times[0], times[6], times[4]]
    assert book.samples("times_seen > 3", unique=True)["item"].to_pylist() == ["b"]
    assert book.samples(unique=True, limit=1).num_rows == 1


def test_scopes_of_a_run_share_what_was_seen(new_run: Any) -> None:
    run = new_run()
    assert run.log_samples(["a"]).new == [True]
    assert run.scope("actor").log_samples(["a", "b"]).new == [False, True]
    assert run.book.samples()["scope"].to_pylist() == ["", "actor", "actor"]


def test_what_was_seen_follows_the_run_through_restore(new_run: Any) -> None:
    run = new_run()
    run.log_samples(["kept"], env_step=1)
    checkpoint = run.save_checkpoint({"w": np.zeros(1)}, env_step=1)
    run.log_samples(["lost"], env_step=2)
    run.restore(checkpoint.id)
    logged = run.log_samples(["kept", "lost"], env_step=2)
    assert logged.new == [False, True]
    assert run.book.samples()["item"].to_pylist() == ["kept", "kept", "lost"]


def test_non_utf8_large_and_structured_items_come_back(new_run: Any) -> None:
    run = new_run()
    long = "é" * 3_000_000
    run.log_samples(["bad\udcff", b"\x00\xff", {"role": "user"}, long, 7])
    rows = run.book.samples().to_pylist()
    assert rows[0]["item_raw"].decode("utf-8", "surrogatepass") == "bad\udcff"
    assert rows[1]["item_raw"] == b"\x00\xff"
    assert json.loads(rows[2]["item"]) == {"role": "user"}
    assert (run.folder / rows[3]["item_path"]).read_text("utf-8") == long
    assert [row["item_type"] for row in rows] == [None, "bytes", "json", None, "json"]
    assert run.bill()["drops"] == {}
