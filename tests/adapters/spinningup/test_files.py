"""Configurations and saved agents: whole files or none."""

from __future__ import annotations

import json
import math
import pickle
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollbook.adapters.spinningup import Logger, colorize, convert_json, setup_logger_kwargs
from rollbook.adapters.spinningup.serialization import config_text
from rollbook.errors import RollbookWarning


class Thing:
    def __init__(self) -> None:
        self.size = 3
        self.itself = self


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((1, {"a": object}), [1, {"a": "object"}]),
        ({1: "a", "b": 2}, {"1": "a", "b": 2}),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float32(3), 3.0),
        (np.arange(3), [0, 1, 2]),
        (np.zeros((100, 100)), "array of shape (100, 100), float64"),
        ({3, 1}, [1, 3]),
        (len, "len"),
        (Path("a/b"), "a/b"),
    ],
)
def test_anything_becomes_strict_json(given: Any, expected: Any) -> None:
    found = convert_json(given)
    assert found == expected
    json.dumps(found, allow_nan=False)


def test_two_runs_with_the_same_settings_have_the_same_config() -> None:
    first, second = (config_text(convert_json({"thing": Thing(), "f": lambda x: x})) for _ in range(2))
    assert first == second
    assert not re.search("0x[0-9a-f]{4}", first)


def test_what_contains_itself_ends() -> None:
    loop: dict[str, Any] = {}
    loop["me"] = loop
    assert convert_json(loop) == {"me": "<cycle>"}
    (attributes,) = convert_json(Thing()).values()
    assert attributes == {"size": 3, "itself": "<cycle>"}


def test_mixed_keys_can_be_sorted() -> None:
    assert json.loads(config_text(convert_json({1: 1, "a": 2, None: 3}))) == {"1": 1, "a": 2, "None": 3}


def test_a_state_that_cannot_be_pickled_leaves_the_last_good_one(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path), run=run)
    logger.save_state({"x": 1})
    with pytest.warns(RollbookWarning, match=r"vars\.pkl was not written"):
        logger.save_state({"x": lambda: None})
    with (tmp_path / "vars.pkl").open("rb") as file:
        assert pickle.load(file) == {"x": 1}
    assert not list(tmp_path.glob("*.tmp"))


def test_ctrl_c_while_saving_is_not_swallowed(run: Any, tmp_path: Path) -> None:
    class Stop:
        def __reduce__(self) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Logger(str(tmp_path), run=run).save_state({"x": Stop()})


def test_numbered_states_stand_beside_each_other_and_in_the_book(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path), run=run)
    logger.save_state({"x": 1}, None)
    logger.save_state({"x": 2}, 7)
    assert {path.name for path in tmp_path.glob("vars*")} == {"vars.pkl", "vars7.pkl"}
    found = run.book.checkpoints().to_pylist()
    assert [row["path"].endswith(name) for row, name in zip(found, ["vars.pkl", "vars7.pkl"], strict=True)] == [
        True,
        True,
    ]


def test_tensorflow_graphs_are_saved_by_duck_typing(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def simple_save(export_dir: str, session: Any, inputs: Any, outputs: Any) -> None:
        Path(export_dir).mkdir()
        (Path(export_dir) / "saved_model.pb").write_text(f"{session} {sorted(inputs)} {sorted(outputs)}")

    fake = types.ModuleType("tensorflow")
    fake.saved_model = types.SimpleNamespace(simple_save=simple_save)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    tensor = types.SimpleNamespace
    logger = Logger(str(tmp_path), run=run)
    logger.setup_tf_saver("session", inputs={"x": tensor(name="x:0")}, outputs={"pi": tensor(name="pi:0")})
    for _ in range(2):  # the second save replaces the first
        logger.save_state({})
    assert (tmp_path / "tf1_save" / "saved_model.pb").read_text() == "session ['x'] ['pi']"
    with (tmp_path / "tf1_save" / "model_info.pkl").open("rb") as file:
        assert pickle.load(file) == {"inputs": {"x": "x:0"}, "outputs": {"pi": "pi:0"}}


def test_saving_without_the_package_says_how_to_get_it(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    logger = Logger(str(tmp_path), run=run)
    logger.setup_tf_saver("session", inputs={}, outputs={})
    with pytest.warns(RollbookWarning, match="pip install tensorflow"):
        logger.save_state({"x": 1})
    assert (tmp_path / "vars.pkl").exists()


def test_names_of_folders_are_spinning_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert setup_logger_kwargs("vpg") == {"output_dir": "data/vpg", "exp_name": "vpg"}
    assert setup_logger_kwargs("vpg", 10, "d") == {"output_dir": "d/vpg/vpg_s10", "exp_name": "vpg"}
    stamped = setup_logger_kwargs("vpg", 0, "d", datestamp=True)["output_dir"]
    assert re.fullmatch(r"d/\d{4}-\d\d-\d\d_vpg/\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-vpg_s0", stamped)
    tracker = object()
    assert setup_logger_kwargs("vpg", neptune_experiment=tracker)["neptune_experiment"] is tracker


def test_colours_are_valid_terminal_codes() -> None:
    assert colorize("x", "green", bold=True) == "\x1b[32;1mx\x1b[0m"
    assert colorize("x", "red", highlight=True) == "\x1b[41mx\x1b[0m"
    assert colorize("x", "crimson") == "\x1b[38;5;161mx\x1b[0m"
    with pytest.raises(KeyError):
        colorize("x", "mauve")
