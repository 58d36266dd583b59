"""Results as rows, distributions in one shape, files of episode data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollbook.adapters.rllib import Walker, dict_multiple_get, flatten_result
from rollbook.adapters.rllib.data import EpisodeData, take_episode_data, tidy
from rollbook.adapters.rllib.files import write_episode_data
from rollbook.adapters.rllib.identity import RunOptions, plain_config, run_id
from rollbook.adapters.rllib.legacy import walk_paths
from rollbook.adapters.rllib.walk import clocks_of, file_step
from rollbook.errors import BadInput

RESULT: dict[str, Any] = {
    "env_runners": {
        "episode_return_mean": 7.5,
        "num_episodes": np.int64(6),
        "weights_seq_no": 3.0,
        "empty": {},
        "flag": np.bool_(True),
        "lost": float("nan"),
    },
    "learners": {0: {"loss": np.float32(0.1)}},
    "num_env_steps_sampled_lifetime": 80.0,
    "training_iteration": 2,
    "hostname": "box",
    "date": "today",
    "config": {"lr": 0.1},
}


def test_every_number_of_a_result_is_in_the_book_at_its_clocks(strict_run: Any) -> None:
    Walker().log(strict_run, RESULT)
    (row,) = [row for row in strict_run.book.metrics().to_pylist() if row["training_iteration"] is not None]
    assert (row["env_step"], row["epoch"], row["policy_version"]) == (80, 2, 3)
    assert row["env_runners/episode_return_mean"] == 7.5
    assert row["env_runners/num_episodes"] == 6
    assert row["env_runners/flag"] is True
    assert math.isnan(row["env_runners/lost"])
    assert row["learners/0/loss"] == float(np.float32(0.1))
    assert not [key for key in row if key.startswith("config") or "empty" in key]


def test_texts_are_kept_when_they_change(strict_run: Any) -> None:
    walker = Walker()
    for host in ("box", "box", "crate"):
        walker.log(strict_run, {**RESULT, "hostname": host})
    assert strict_run.book.text("hostname")["text"].to_pylist() == ["box", "crate"]
    assert strict_run.book.text("date").num_rows == 0


def test_filters_choose_by_name(strict_run: Any) -> None:
    row = Walker(include="env_runners/", exclude=["_mean$", "lost"]).log(strict_run, RESULT)
    assert set(row) == {"env_runners/num_episodes", "env_runners/weights_seq_no", "env_runners/flag"}
    with pytest.raises(BadInput, match="include"):
        Walker(include="(")


def test_a_distribution_stays_one_when_an_iteration_has_a_single_value(strict_run: Any) -> None:
    walker = Walker()
    for values in ([1.0, 2.0], 3.0, []):
        walker.log(strict_run, {"hist": values, "training_iteration": 1})
    table = strict_run.book.histograms("hist")
    assert [list(v) for v in table["values"].to_pylist()] == [[1.0, 2.0], [3.0]]
    keys = set(strict_run.book.keys())
    assert "hist" not in keys


def test_one_picture_and_several_are_pictures(run: Any) -> None:
    picture = np.zeros((8, 9, 3), np.uint8)
    walker = Walker()
    walker.log(run, {"seen": picture})
    walker.log(run, {"seen": [picture, picture]})
    walker.log(run, {"chw": np.zeros((3, 8, 9), np.float32)})
    table = run.book.media("image").to_pylist()
    assert [row["key"] for row in table] == ["seen"] * 3 + ["chw"]
    assert (table[-1]["height"], table[-1]["width"]) == (8, 9)


def test_what_no_table_can_hold_is_named_once_and_the_rest_is_kept(run: Any) -> None:
    walker = Walker()
    with pytest.warns(UserWarning, match="odd"):
        walker.log(run, {"odd": object(), "ragged": [[1], [1, 2]], "fine": 1})
    walker.log(run, {"odd": object(), "fine": 2})
    assert run.bill()["drops"]["rllib/unloggable"] == 3
    assert run.book.metrics(["fine"])["fine"].to_pylist() == [1, 2]


def test_clocks_come_from_whichever_stack_reported() -> None:
    assert clocks_of({"timesteps_total": 400, "training_iteration": 1}) == {"env_step": 400, "epoch": 1}
    assert clocks_of({"training_iteration": 1, "num_env_steps_sampled_lifetime": float("nan")}) == {"epoch": 1}
    assert file_step({"timesteps_total": 0, "training_iteration": 5}) == 5
    assert file_step(RESULT) == 80


def test_keys_that_are_tuples_or_numbers_become_text() -> None:
    assert list(flatten_result({("a", "b"): {1: 2}, "c": 3})) == [("a/b/1", 2), ("c", 3)]


def test_the_walker_over_paths_is_the_old_loggers() -> None:
    result = {"a": 1, "info": {"steps": 5, "learner": {"p": {"loss": 2.0}, "n": 3}, "explore": [{"eps": 0.1}]}}
    assert dict_multiple_get(result, "info")["steps"] == 5
    assert dict_multiple_get(result, ["info", "steps"]) == {"steps": 5}
    assert dict_multiple_get(result, ["info", "nothing", 0]) == {}
    assert dict_multiple_get(result, ["info", "explore", 7]) == {}
    assert dict_multiple_get(result, []) is result
    found = dict(walk_paths(result, [[], ["info", "steps"], ["info", "learner"], ["info", "explore", 0], ["x"]]))
    assert found == {"a": 1, "info/steps": 5, "info/learner/n": 3, "info/explore/0/eps": 0.1}


def test_an_episode_gives_average_and_sum_of_running_and_the_last_final(fakes: Any) -> None:
    data, metrics = EpisodeData(), fakes.Metrics()
    for t in (1.0, 2.0, 6.0):
        data.take(fakes.info(speed=t, parts=int(t)))
    data.push(metrics)
    said = {key[1]: values for key, values in metrics.said.items() if key[0] == "custom_metrics"}
    assert said == {
        **{f"speed_avg_{r}": [3.0] for r in ("mean", "min", "max")},
        **{f"speed_sum_{r}": [9.0] for r in ("mean", "min", "max")},
        **{f"parts_{r}": [6.0] for r in ("mean", "min", "max")},
    }
    assert metrics.reduce["custom_metrics", "speed_sum_max"] == "max"
    result = {"env_runners": {"custom_metrics": {"a_mean": [1.0, 3.0], "b_mean": np.float64(2.0), "c_mean": []}}}
    tidy(result)
    custom = result["env_runners"]["custom_metrics"]
    assert (custom["a_mean"], custom["b_mean"]) == (2.0, 2.0)
    assert math.isnan(custom["c_mean"])
    assert "item" not in metrics.reduce.values()
    assert metrics.said["hist_stats", "speed"][0].tolist() == [1.0, 2.0, 6.0]


def test_long_episodes_keep_their_sums_exact_and_their_distributions_bounded(fakes: Any) -> None:
    data, metrics = EpisodeData(), fakes.Metrics()
    for t in range(20_000):
        data.take(fakes.info(speed=t))
    data.push(metrics)
    assert metrics.said["custom_metrics", "speed_sum_mean"] == [sum(range(20_000))]
    kept = metrics.said["hist_stats", "speed"][0]
    assert 2048 <= len(kept) <= 4096
    assert [value // 8 for value in kept] == list(range(len(kept)))  # one of each eight


def test_distributions_in_results_are_flat_lists_whatever_the_number_of_episodes() -> None:
    for given in (np.array([1.0, 2.0]), [np.array([1.0]), np.array([2.0])], [[1.0, 2.0], []]):
        result = {"env_runners": {"hist_stats": {"a": {"speed": given}}}, "evaluation": {"env_runners": {}}}
        tidy(result)
        assert result["env_runners"]["hist_stats"]["a"]["speed"] == [1.0, 2.0]


def test_episode_data_is_strict_json_training_first(fakes: Any, tmp_path: Path) -> None:
    counted: list[str] = []
    data = EpisodeData(True, lambda cause, n=1, message="": counted.append(message))
    data.take(fakes.info(trace=[1, np.int64(2)], map=np.eye(2), gap=float("inf"), thing=object()))
    data.take(fakes.info(trace=(3, np.float32(0.5))))
    episode = json.loads(data.text())
    assert episode["trace"] == [[1, 2], [3, 0.5]]
    assert episode["map"] == [[[1.0, 0.0], [0.0, 1.0]]]
    assert episode["gap"] == [None]
    assert episode["thing"][0].startswith("<object")
    assert "thing" in counted[0]
    result = {
        "env_runners": {"episode_media": {"episode_data": data.text()}},
        "evaluation": {"env_runners": {"episode_media": {"episode_data": ['{"e":[1]}', '{"e":[2]}']}}},
    }
    texts = take_episode_data(result)
    assert "episode_media" not in result["env_runners"]
    path = write_episode_data(tmp_path, 42, texts)
    assert path == str(tmp_path / "episode_data" / "data-00000042.json")
    assert json.loads(Path(path).read_text())[1:] == [{"e": [1]}, {"e": [2]}]
    assert write_episode_data(tmp_path, 43, []) is None


def test_the_runs_id_follows_from_experiment_and_trial() -> None:
    assert run_id("exp", "20645_00000") == run_id("exp", "20645_00000")
    assert len({run_id(e, t) for e in ("a", "b") for t in ("1", "2", "11")} | {run_id("a1", "1")}) == 7
    assert len(run_id("exp", "20645_00000")) == 10


def test_settings_refuse_what_init_would_refuse_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="project"):
        RunOptions(tmp_path, project="a/b")
    with pytest.raises(BadInput, match="colour"):
        RunOptions(tmp_path, options={"colour": "red"})
    assert RunOptions("somewhere").dir == str(Path.cwd() / "somewhere")


def test_a_configuration_becomes_plain_without_addresses() -> None:
    class Config:
        def to_dict(self) -> dict[str, Any]:
            return {"lr": 0.1, "env": Config, "fn": len, "odd": object(), "nested": {1: (1, 2)}, "a": np.arange(2)}

    found = plain_config(Config())
    assert json.loads(json.dumps(found)) == found
    assert found["nested"] == {"1": [1, 2]}
    assert found["env"].endswith("Config")
    assert "0x" not in json.dumps(found)
    assert plain_config(None) == {}
