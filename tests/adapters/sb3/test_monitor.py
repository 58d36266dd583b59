"""Monitor files made of a run's episodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rollbook.adapters.sb3.monitor import write_monitor


def test_the_episodes_of_each_environment_are_a_monitor_file(run: Any, tmp_path: Path) -> None:
    train, test = run.scope("train"), run.scope("test")
    for index, total in ((1, 1 / 3), (0, 2.0), (1, -3.0)):
        train.log_episode(return_=total, length=3, terminated=True, env_index=index)
    test.log_episode(return_=9.0, length=1, terminated=True)
    paths = write_monitor(run.book, tmp_path / "out")
    assert [Path(path).name for path in paths] == ["0.monitor.csv", "1.monitor.csv"]
    comment, header, *episodes = Path(paths[1]).read_bytes().decode().split("\n")
    assert json.loads(comment[1:]) == {"t_start": run.book.info.created, "env_id": "None"}
    assert header == "r,l,t"
    assert [line.split(",")[:2] for line in episodes if line] == [["0.333333", "3"], ["-3.0", "3"]]
    assert all(float(line.split(",")[2]) >= 0 for line in episodes if line)
    assert len(write_monitor(run.book, tmp_path / "all", scope="")) == 2
