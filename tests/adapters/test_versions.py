"""Framework versions that an adapter does not know are refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import some_of
from forked_programs import Interpreter
from rollbook.adapters import _versions
from rollbook.errors import MissingExtra
from rollbook.system.optional import to_install

ROOT = Path(__file__).parents[2]

# adapter -> (what it is installed as, a version nobody tried, the range that is supported, the line that looks)
WITH_A_RANGE = {
    "sb3": ("stable-baselines3", "1.8.0", ">=2.3,<3", "import rollbook.adapters.sb3"),
    "acme": ("dm-acme", "1.0.0", ">=0.2,<0.5", "import rollbook.adapters.acme"),
    "tianshou": ("tianshou", "3.1.0", ">=0.5,<3", "import rollbook.adapters.tianshou"),
    "mrl": ("mrl-pypi", "0.2.0", ">=0.1,<0.2", "import rollbook.adapters.mrl"),
    "lightzero": (
        "DI-engine",
        "0.6.1",
        ">=0.5,<0.6",
        "from rollbook.adapters.lightzero import recording\nwith recording(): pass",
    ),
    "rllib": ("ray", "2.9.0", ">=2.60,<2.61", "from rollbook.adapters.rllib import callbacks"),
    "trl": ("trl", "0.9.6", ">=1.0,<2", "from rollbook.adapters.trl import RollbookCallback"),
    "verl": ("verl", "1.2.0", ">=0.5,<1", "import rollbook.adapters.verl as v\nv.register()"),
    "jax": ("jax", "0.4.1", ">=0.4.31,<1", "import rollbook.adapters.jax as j\nj.flush()"),
}
WITHOUT = {
    "spinningup": "its repository has no versions",
    "tensorboard": "any SummaryWriter is as good as another",
    "wandb": "stands in its place and needs none of it",
    "accelerate": "joins a hook that all versions have",
    "lightning": "joins a hook that all versions have",
    "optuna": "joins a hook that all versions have",
    "skrl": "the agents of versions before have not what it asks of them, and that is said",
    "elements": "joins a hook that all versions have",
    "stoix": "its repository has no versions",
    "pufferlib": "joins a hook that all versions have",
    "torchrl": "joins a hook that all versions have",
    "brax": "joins a hook that all versions have",
    "keras": "joins a hook that all versions have",
    "rl_games": "joins a hook that all versions have",
    "d3rlpy": "versions without the hook have no argument for it",
    **dict.fromkeys(("slime", "prime_rl", "nemo_rl"), "their repositories have no versions on a registry"),
    "tinker": "joins a list that all versions have",
    "openrlhf": "versions without the attribute are refused, and that is said",
    "rsl_rl": "versions without the hook have no place to name it",
}

# what needs a package -> (the line that asks for it, the packages that are made to be missing, what pip is to be told)
NEEDS = {
    "the callback of sb3": (
        "from rollbook.adapters.sb3 import RollbookCallback",
        "stable_baselines3",
        "'rollbook[sb3]'",
    ),
    "lightzero": (WITH_A_RANGE["lightzero"][3], "ding lzero", "LightZero 'rollbook[lightzero]'"),
    "an entry function of lightzero": (
        "from rollbook.adapters.lightzero import train_muzero\ntrain_muzero([{}, {}])",
        "ding lzero",
        "LightZero 'rollbook[lightzero]'",
    ),
    "mrl's frame": ("from rollbook.adapters.mrl import log_to_df\nlog_to_df({})", "pandas", "'rollbook[mrl]'"),
    "mrl's torch": ("import rollbook.adapters.mrl as m\nm.torch", "torch", "torch 'rollbook[mrl]'"),
    "rllib": (WITH_A_RANGE["rllib"][3], "ray", "'rollbook[rllib]'"),
    "trl": (WITH_A_RANGE["trl"][3], "transformers trl", "'rollbook[trl]'"),
    "verl": (WITH_A_RANGE["verl"][3], "verl", "'rollbook[verl]'"),
    "jax": (WITH_A_RANGE["jax"][3], "jax", "'rollbook[jax]'"),
    "event files": (
        "from rollbook.adapters.tensorboard import SummaryWriter\nSummaryWriter('x')",
        "tensorboard",
        "'rollbook[tensorboard]'",
    ),
    "event files by torch": (
        "from rollbook.adapters.tensorboard import SummaryWriter\nSummaryWriter('x', events='torch')",
        "torch tensorboard",
        "'rollbook[tensorboard]'",
    ),
    "event files by tensorboardX": (
        "from rollbook.adapters.tensorboard import SummaryWriter\nSummaryWriter('x', events='tensorboardX')",
        "tensorboardX",
        "tensorboardX 'rollbook[tensorboard]'",
    ),
    "tianshou's event file": (
        "from rollbook.adapters.tianshou import LoggerFactory\nLoggerFactory._writer('x')",
        "tensorboard torch",
        "'rollbook[tensorboard]'",
    ),
}


def told(interpreter: Interpreter, code: str, place: Path, *, missing: str = "", installed: str = "{}") -> str:
    """The last line that a program ends with in which some packages are missing, others of some version."""
    before = (
        "import importlib.metadata, os, sys, types\n"
        f"os.chdir({str(place)!r})\n"
        f"for name in {missing.split()!r}: sys.modules[name] = None\n"
        f"installed = {installed}\n"
        "if installed:\n"  # transformers is asked for before TRL's version is
        "    sys.modules['transformers'] = types.SimpleNamespace(TrainerCallback=object)\n"
        "from rollbook.adapters import _versions\n"
        "_versions.installed = installed.get\n"
    )
    done = interpreter.run(before + code, env=os.environ)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr.splitlines()[-1]


def test_every_adapter_is_tried_here() -> None:
    folder = ROOT / "src" / "rollbook" / "adapters"
    there = {path.stem for path in folder.iterdir() if path.name[0] != "_" and path.stem != "keys"}
    assert there == {*WITH_A_RANGE, *WITHOUT}


@pytest.mark.parametrize("adapter", some_of(WITH_A_RANGE, lambda name: list(WITH_A_RANGE).index(name) % 3 == 0))
def test_a_version_that_is_not_supported_is_named_with_the_range_that_is(
    adapter: str, tmp_path: Path, interpreter: Interpreter
) -> None:
    framework, version, supported, code = WITH_A_RANGE[adapter]
    last = told(interpreter, code, tmp_path, installed=repr({framework: version}))
    assert "UnsupportedVersion" in last
    assert f"works with {framework} {supported}; found {version}." in last
    assert f"pip install '{framework}{supported}'" in last


def test_lightzero_itself_has_a_range_beside_di_engines(tmp_path: Path, interpreter: Interpreter) -> None:
    installed = repr({"DI-engine": "0.5.3", "LightZero": "0.4.0"})
    last = told(interpreter, WITH_A_RANGE["lightzero"][3], tmp_path, installed=installed)
    assert "works with LightZero >=0.1,<0.3; found 0.4.0." in last


@pytest.mark.parametrize("adapter", WITH_A_RANGE)
def test_the_page_of_an_adapter_says_the_same_range(adapter: str) -> None:
    framework, _, supported, _ = WITH_A_RANGE[adapter]
    page = (ROOT / "docs" / "adapters" / f"{adapter}.md").read_text(encoding="utf-8")
    assert f"{framework} {supported}" in page


@pytest.mark.parametrize("what", some_of(NEEDS, lambda name: list(NEEDS).index(name) % 3 == 0))
def test_a_missing_package_gives_the_line_that_installs_it(what: str, tmp_path: Path, interpreter: Interpreter) -> None:
    code, missing, line = NEEDS[what]
    last = told(interpreter, code, tmp_path, missing=missing)
    assert "MissingExtra" in last
    here = to_install("plots").strip("'").removesuffix("[plots]")  # rollbook, or rollbook-core as in a checkout
    assert f"which is not installed: pip install {line.replace('rollbook[', f'{here}[')}" in last


@pytest.mark.parametrize("name", ["rollbook", "rollbook-core"])
def test_the_line_that_installs_an_extra_names_what_is_installed_which_no_index_need_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert to_install("plots") == f"'{name}[plots]'"


@pytest.mark.parametrize(
    ("version", "supported", "inside"),
    [
        ("2.9.0", ">=2.3,<3", True),
        ("2.9.0a4", ">=2.9,<3", True),
        ("2.13.0+cpu", "==2.13", True),
        ("3.0", ">=2.3,<3", False),
        ("2.2.1", ">=2.3,<3", False),
        ("2.10", ">2.9", True),
        ("1.0", "!=1", False),
        ("1.1", "<=1.1", True),
    ],
)
def test_version_ranges_compare_numbers_and_not_text(version: str, supported: str, inside: bool) -> None:
    assert _versions.in_range(version, supported) is inside


def test_the_error_names_the_version_the_range_and_the_way_out() -> None:
    with pytest.raises(_versions.UnsupportedVersion) as caught:
        _versions.check("stable-baselines3", "1.8.0", ">=2.3,<3")
    text = str(caught.value)
    assert "1.8.0" in text
    assert ">=2.3,<3" in text
    assert "pip install 'stable-baselines3>=2.3,<3'" in text


def test_a_missing_framework_gives_the_line_that_installs_it() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[sb3\]'"):
        _versions.require("a-framework-nobody-has", ">=1", extra="sb3", why="the adapter")


def test_an_installed_framework_answers_with_its_version(installed: Callable[[str, str], None]) -> None:
    installed("stable-baselines3", "2.9.1")
    assert _versions.require("stable-baselines3", ">=2.3,<3", extra="sb3", why="the adapter") == "2.9.1"


def test_a_range_that_is_no_range_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="not a version range"):
        _versions.in_range("1.0", "about 2")
