"""Monitor files: written, continued, read, and made from a book."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

gymnasium = pytest.importorskip("gymnasium")

from rollbook.adapters.sb3 import (  # noqa: E402
    Monitor,
    ResultsWriter,
    load_results,
    monitor,
    read_monitor,
    write_monitor,
)
from rollbook.errors import RollbookError, RollbookWarning  # noqa: E402


class Steps(gymnasium.Env):  # type: ignore[misc]
    """Three steps of reward 1/3; `info` says how it went."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **_kwargs: Any) -> Any:
        self.t = 0
        return 0, {}

    def step(self, _action: Any) -> Any:
        self.t += 1
        return 0, 1 / 3, self.t == 3, False, {"is_success": True}


def play(env: Any, episodes: int = 1, **options: Any) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for _ in range(episodes):
        env.reset(**options)
        over = False
        while not over:
            *_, over, _, info = env.step(0)
    return info


def test_an_episode_is_in_the_file_when_it_is_over(tmp_path: Path) -> None:
    env = Monitor(Steps(), str(tmp_path / "0"), info_keywords=("is_success",))
    info = play(env)
    assert info["episode"]["r"] == 1.0
    assert info["episode"]["l"] == 3
    comment, header, row = (tmp_path / "0.monitor.csv").read_bytes().decode().split("\n")[:3]
    assert json.loads(comment[1:])["env_id"] == "None"
    assert header == "r,l,t,is_success"
    assert row.startswith("1.0,3,")
    env.close()


def test_all_lines_end_alike(tmp_path: Path) -> None:
    env = Monitor(Steps(), str(tmp_path / "0"))
    play(env, 2)
    assert b"\r" not in (tmp_path / "0.monitor.csv").read_bytes()


def test_a_file_is_continued_with_its_header_and_its_times(tmp_path: Path) -> None:
    for _ in range(2):
        env = Monitor(Steps(), str(tmp_path / "0"), override_existing=False)
        play(env)
        env.close()
    rows = read_monitor(tmp_path)
    assert [row["r"] for row in rows] == [1.0, 1.0]
    assert rows[1]["t"] >= rows[0]["t"]
    assert (tmp_path / "0.monitor.csv").read_text().count("t_start") == 1


def test_a_file_that_is_none_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "0.monitor.csv").write_text("something else\n")
    with pytest.raises(RollbookError, match="cannot be continued"):
        ResultsWriter(tmp_path / "0", override_existing=False)
    ResultsWriter(tmp_path / "1", {"t_start": 0.0}).close()
    with pytest.raises(RollbookError, match="no column 'extra'"):
        ResultsWriter(tmp_path / "1", extra_keys=("extra",), override_existing=False)


def test_memory_does_not_grow_within_an_episode() -> None:
    env = Monitor(Steps())
    play(env, 5)
    assert env.rewards == []
    assert env.get_episode_rewards() == [1.0] * 5
    assert env.get_episode_lengths() == [3] * 5
    assert env.get_total_steps() == 15
    assert len(env.get_episode_times()) == 5


def test_the_errors_are_the_librarys() -> None:
    env = Monitor(Steps(), allow_early_resets=False, reset_keywords=("task",))
    with pytest.raises(RuntimeError, match="Tried to step environment that needs reset"):
        env.step(0)
    with pytest.raises(ValueError, match="Expected you to pass keyword argument task into reset"):
        env.reset()
    env.reset(task="x")
    with pytest.raises(RuntimeError, match="Tried to reset an environment before done"):
        env.reset(task="x")


def test_rows_with_unknown_keys_are_refused(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path / "0", {"t_start": 0.0})
    with pytest.raises(ValueError, match="'x' is not a column"):
        writer.write_row({"r": 1, "x": 2})
    writer.write_row({"r": 1})
    writer.close()
    assert (tmp_path / "0.monitor.csv").read_text().splitlines()[-1] == "1,,"


def test_several_files_are_read_as_one_in_the_order_of_time(tmp_path: Path) -> None:
    for name, start, t in (("0", 100.0, 5.0), ("1", 101.0, 1.0)):
        writer = ResultsWriter(tmp_path / name, {"t_start": start, "env_id": "x"})
        writer.write_row({"r": float(name), "l": 3, "t": t})
        writer.close()
    (tmp_path / "2.monitor.csv").write_text('#{"t_start": 100.0}\nr,l,t\n')
    rows = read_monitor(tmp_path)
    assert [(row["r"], row["t"], row["time"]) for row in rows] == [(1.0, 2.0, 102.0), (0.0, 5.0, 105.0)]
    frame = load_results(tmp_path)
    assert list(frame.columns) == ["index", "r", "l", "t"]
    assert frame["t"].tolist() == [2.0, 5.0]


@pytest.mark.parametrize("torn", ["2.0,", "2.0,5", "2.0,5,", "2.0,5,-", '2.0,5,0.5,"half a te'])
def test_a_line_torn_by_a_kill_is_left_out_and_that_is_reported(tmp_path: Path, torn: str) -> None:
    header = "r,l,t,task" if '"' in torn else "r,l,t"
    first = '1.0,3,1.0,"a"' if '"' in torn else "1.0,3,1.0"
    (tmp_path / "0.monitor.csv").write_text(f'#{{"t_start": 0.0}}\n{header}\n{first}\n{torn}')
    with pytest.warns(RollbookWarning, match="0.monitor.csv: the last line, .* is not whole"):
        assert [row["r"] for row in read_monitor(tmp_path)] == [1.0]


def test_a_last_line_that_only_lacks_its_newline_is_an_episode(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "0.monitor.csv"
    file.write_text('#{"t_start": 1.0, "env_id": "x"}\nr,l,t\n1.0,10,0.5\n2.0,20,0.9')
    assert load_results(tmp_path)["r"].tolist() == [1.0, 2.0]
    assert monitor.record_monitor(run, tmp_path) == 2
    writer = ResultsWriter(file, override_existing=False)
    writer.write_row({"r": 3.0, "l": 30, "t": 1.2})
    writer.close()
    assert file.read_text().splitlines()[2:] == ["1.0,10,0.5", "2.0,20,0.9", "3.0,30,1.2"]


def test_a_torn_line_is_cut_off_where_a_file_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "0.monitor.csv"
    file.write_text('#{"t_start": 1.0}\nr,l,t\n1.0,10,0.5\n2.0,2')
    ResultsWriter(file, override_existing=False).close()
    assert file.read_text().splitlines()[2:] == ["1.0,10,0.5"]


def test_folders_without_monitor_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(monitor.LoadMonitorResultsError, match="No monitor files"):
        read_monitor(tmp_path)
    (tmp_path / "x.monitor.csv").write_text("r,l,t\n")
    with pytest.raises(monitor.LoadMonitorResultsError, match=r"x\.monitor\.csv is not a Monitor file"):
        read_monitor(tmp_path)


def test_monitor_files_become_episodes_of_a_run_and_back(run: Any, tmp_path: Path) -> None:
    env = Monitor(Steps(), str(tmp_path / "in" / "0"), info_keywords=("is_success",))
    play(env, 4)
    env.close()
    assert monitor.record_monitor(run, tmp_path / "in") == 4
    episodes = run.book.episodes().to_pylist()
    assert [row["return"] for row in episodes] == [1.0] * 4
    assert [row["env_step"] for row in episodes] == [3, 6, 9, 12]
    assert [row["is_success"] for row in episodes] == [True] * 4
    (path,) = write_monitor(run.book, tmp_path / "out")
    back = read_monitor(path)
    assert [(row["r"], row["l"]) for row in back] == [(1.0, 3)] * 4
