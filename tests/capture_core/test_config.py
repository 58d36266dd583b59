"""Configurations of any make, as data and as Python files."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
import json
import math
import os
import types
from collections import OrderedDict, UserDict, deque, namedtuple
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.errors import BadInput
from rollbook.run.origin.config import FORMATTED, TOTAL, literal, plain, source, write_config_files


def executed(text: str) -> Any:
    space: dict[str, Any] = {}
    exec(text, space)
    return space["exp_config"]


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Algo(enum.StrEnum):
    PPO = "ppo"


@dataclasses.dataclass
class Net:
    sizes: tuple[int, ...] = (64, 64)
    activation: Any = math.tanh


@dataclasses.dataclass
class Config:
    lr: float = 3e-4
    net: Net = dataclasses.field(default_factory=Net)


Point = namedtuple("Point", "x y")


def make_env(n: int = 1) -> None:
    """Something a configuration may name."""


class LeggedConfig:
    seed = 1

    class env:
        num_envs = 4096
        _hidden = 2

    def method(self) -> None:
        """No value."""


@pytest.mark.parametrize(
    ("given_config", "expected"),
    [
        ({"lr": 3e-4, "net": {"sizes": [64, 64]}}, {"lr": 3e-4, "net": {"sizes": [64, 64]}}),
        (Config(), {"lr": 3e-4, "net": {"sizes": (64, 64), "activation": "math.tanh"}}),
        (argparse.Namespace(lr=1, sub=argparse.Namespace(a=2)), {"lr": 1, "sub": {"a": 2}}),
        (types.SimpleNamespace(lr=1), {"lr": 1}),
        (UserDict(a=OrderedDict(b=1)), {"a": {"b": 1}}),
        ({"p": Point(1, 2.5)}, {"p": {"x": 1, "y": 2.5}}),
        ({"a": np.float32(0.5), "b": np.arange(3), "c": np.bool_(True)}, {"a": 0.5, "b": [0, 1, 2], "c": True}),
        ({"l": np.longdouble(0.5), "z": np.array(7), "t": np.dtype("float32")}, {"l": 0.5, "z": 7, "t": "float32"}),
        ({"path": Path("a") / "b"}, {"path": os.path.join("a", "b")}),
        ({"algo": Algo.PPO, "level": Level.HIGH}, {"algo": "ppo", "level": 3}),
        ({"colour": Colour.RED}, {"colour": f"{__name__}.Colour.RED"}),
        ({"env": make_env, "f": len}, {"env": f"{__name__}.make_env", "f": "len"}),
        ({"class": Net}, {"class": f"{__name__}.Net"}),
        (
            {"env": functools.partial(make_env, 3, n=2)},
            {"env": {"partial": f"{__name__}.make_env", "args": [3], "keywords": {"n": 2}}},
        ),
        ({"d": deque([1, 2]), "r": range(3)}, {"d": [1, 2], "r": [0, 1, 2]}),
        ({"s": {3, 1, 2}}, {"s": [1, 2, 3]}),
        ({"b": b"x", "z": 1j}, {"b": "b'x'", "z": "1j"}),
        (LeggedConfig, {"seed": 1, "env": {"num_envs": 4096}}),
        (LeggedConfig(), {"seed": 1, "env": {"num_envs": 4096}}),
        (None, {}),
    ],
)
def test_a_configuration_becomes_plain_data(given_config: Any, expected: Any) -> None:
    data, problems = plain(given_config)
    assert data == expected
    assert problems == []
    json.dumps(data)


def test_pydantic_models_become_plain_data() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        gamma: float = 0.99
        token: pydantic.SecretStr = pydantic.SecretStr("hush")

    class Outer(pydantic.BaseModel):
        inner: Inner = Inner()
        sizes: tuple[int, int] = (1, 2)

    data, _ = plain(Outer())
    assert data["inner"]["gamma"] == 0.99
    assert data["sizes"] == (1, 2)
    assert "hush" not in json.dumps(data)


def test_attrs_and_msgspec_classes_become_plain_data() -> None:
    attrs = pytest.importorskip("attrs")
    msgspec = pytest.importorskip("msgspec")

    @attrs.define
    class A:
        lr: float = 1.0

    class B(msgspec.Struct):
        a: A

    assert plain(B(A())) == ({"a": {"lr": 1.0}}, [])


def test_omegaconf_is_resolved_and_what_is_missing_is_reported() -> None:
    omegaconf = pytest.importorskip("omegaconf")
    config = omegaconf.OmegaConf.create({"lr": 0.1, "net": {"lr": "${lr}", "n": [1, "${lr}"]}, "must": "???"})
    data, _ = plain(config)
    assert data == {"lr": 0.1, "net": {"lr": 0.1, "n": [1, 0.1]}, "must": "<MissingMandatoryValue>"}


def test_gin_like_keys_are_kept_in_python_and_become_text_in_json() -> None:
    config = {("", "PPO"): {"lr": 1}, 3: "c", (1, "x"): 2}
    assert plain(config)[0] == {"('', 'PPO')": {"lr": 1}, 3: "c", "(1, 'x')": 2}
    assert literal(config)[0] == config
    assert executed(source(config)) == config


def test_keys_that_json_would_confuse_stay_apart() -> None:
    data, _ = plain({1: "a", "1": "b", None: "c", "null": "d"} | {True: "e", "true": "f", 1.5: "g", "1.5": "h"})
    back = json.loads(json.dumps(data))
    assert sorted(back.values()) == ["b", "c", "d", "e", "f", "g", "h"]  # True is 1 in Python already


def test_what_cannot_be_written_is_its_repr_and_all_such_places_are_named_in_one_sentence() -> None:
    class Schedule:
        pass

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    data, problems = plain({"lr": Schedule(), "net": [1, Broken()], "ok": 1})
    assert "Schedule object" in data["lr"]
    assert "0x" not in data["lr"]
    assert "repr failed: RuntimeError" in data["net"][1]
    assert data["ok"] == 1
    assert len(problems) == 1
    assert "lr (" in problems[0]
    assert "net.1 (" in problems[0]
    assert executed(source({"lr": Schedule()})) == {"lr": data["lr"]}


def test_large_arrays_are_described_and_named() -> None:
    data, problems = plain({"weights": np.zeros((200, 100))})
    assert data == {"weights": "<ndarray float64 (200, 100)>"}
    assert "weights (20000 numbers)" in problems[0]


def test_cycles_and_endless_depth_are_cut() -> None:
    ring: dict[str, Any] = {"a": {}}
    ring["a"]["back"] = ring
    data, _ = plain(ring)
    assert data == {"a": {"back": "<see the top>"}}
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    data, problems = plain({"deep": deep})
    json.dumps(data)
    assert problems
    assert executed(source({"deep": deep}))["deep"]


def test_the_same_object_in_two_places_is_no_cycle() -> None:
    net = {"n": 1}
    assert plain({"actor": net, "critic": net})[0] == {"actor": net, "critic": net}


@pytest.mark.parametrize("config", [3, "config.yaml", [1, 2], np.zeros(3), 0.5])
def test_a_configuration_without_names_is_refused_in_three_parts(config: Any) -> None:
    with pytest.raises(BadInput, match=r"config=.*found .*Pass a dict"):
        plain(config)


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=9)
    | st.complex_numbers()
    | st.integers(2**64, 2**90)
)
hashables = st.recursive(leaves, lambda inner: st.tuples(inner, inner), max_leaves=3)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(leaves, max_size=4)
        | st.frozensets(leaves, max_size=3)
    ),
    max_leaves=12,
)


@mock.patch.dict(os.environ, {"ROLLBOOK_SECRETS": "keep"})  # or a value whose name happens to be "auth" is hidden
@given(st.dictionaries(st.text(), trees, max_size=5))
def test_executing_either_file_gives_the_configuration_back(config: dict[str, Any]) -> None:
    for formatted in (False, True):
        back = executed(source(config, formatted=formatted))
        assert repr_sorted(back) == repr_sorted(config)
    json.dumps(plain(config)[0])


def repr_sorted(value: Any) -> Any:
    """Compares NaN as equal, 1 and True as different, and sets without order."""
    if isinstance(value, dict):
        return [(repr_sorted(k), repr_sorted(v)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, map(repr_sorted, value)))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [repr_sorted(v) for v in value]
    return type(value).__name__, repr(value)


def test_numbers_too_long_for_decimal_digits_survive() -> None:
    config = {"huge": 7**6000, "inf": math.inf, "minus": -math.inf, "comma": "inf, nan", "quote": "'\"\n\\"}
    assert executed(source(config, formatted=True)) == config
    assert json.loads(json.dumps(plain(config)[0]))["huge"] == hex(7**6000)


def test_the_formatted_file_has_one_setting_a_line_and_short_ones_whole() -> None:
    config = {"a": 1, "net": {"sizes": [64, 64], "names": ["x" * 30, "y" * 30, "z" * 30]}, "t": ("s" * 120,), "e": {}}
    text = source(config, formatted=True)
    assert text.splitlines()[1:] == [
        "exp_config = {",
        "    'a': 1,",
        "    'net': {",
        "        'sizes': [64, 64],",
        "        'names': [",
        f"            '{'x' * 30}',",
        f"            '{'y' * 30}',",
        f"            '{'z' * 30}',",
        "        ],",
        "    },",
        "    't': (",
        f"        '{'s' * 120}',",
        "    ),",
        "    'e': {},",
        "}",
    ]
    assert executed(text) == config


def test_both_files_are_written_whole_and_replace_older_ones(tmp_path: Path) -> None:
    write_config_files(tmp_path, {"lr": 1})
    write_config_files(tmp_path, {"lr": 2, "name": "\udce4"})
    assert sorted(os.listdir(tmp_path)) == [FORMATTED, TOTAL]
    for name in (TOTAL, FORMATTED):
        assert executed((tmp_path / name).read_text(encoding="utf-8")) == {"lr": 2, "name": "\udce4"}
    with pytest.raises(OSError):
        write_config_files(tmp_path / "gone", {"lr": 3})


def test_a_frameworks_own_form_of_the_configuration_outlives_an_attempt_without_its_adapter(tmp_path: Path) -> None:
    where: Any = {"dir": tmp_path, "sinks": [], "keeper": "inline", "run_id": "one"}
    theirs = "main_config = {'lr': 1}\ncreate_config = {}\n"
    with rollbook.init("p", "t", config={"lr": 1}, **where) as run:
        run.internals.formatted_config(theirs)
    for config in ({"lr": 1}, {"lr": 2}):
        with rollbook.init("p", "t", config=config, resume="must", **where) as run:
            run.log({"x": 1.0})
        assert (run.folder / FORMATTED).read_text() == theirs
        assert str(config) in (run.folder / TOTAL).read_text()
    with rollbook.init("p", "t", config={"lr": 2}, resume="must", **where) as run:
        run.internals.formatted_config("main_config = {'lr': 2}\n")
    assert (run.folder / FORMATTED).read_text() == "main_config = {'lr': 2}\n"
