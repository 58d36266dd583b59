"""A place that is a folder opens however it is spelled, and a folder of runs is none."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook.cli.app import app
from rollbook.errors import NotARun
from rollbook.remote.push import push
from rollbook.remote.views import folders_of
from rollbook.schema.addresses import backlog, check_remote, is_address

FOLDERS = ["store", "with spaces", "Läufe ü", "100%25"]
SPELLINGS = {
    "path": lambda store: str(store),
    "Path": lambda store: store,
    "relative": lambda store: f"./{store.name}",
    "home": lambda store: f"~/{store.name}",
    "file://": lambda store: f"file://{store}",
    "trailing slash": lambda store: f"{store}/",
    "file:// and slash": lambda store: f"file://{store}/",
    "dots": lambda store: f"{store}/../{store.name}",
}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """(the folder that holds the places, the run's folder)."""
    home = tmp_path_factory.mktemp("home")
    with rollbook.init("cartpole", "ppo", dir=home / "runs", sinks=[], keeper="inline") as run:
        for step in range(20):
            run.log({"train/return": step * 0.5}, env_step=step)
    for name in FOLDERS:
        push(run.folder, home / name)
    return home, run.folder


@pytest.mark.parametrize(
    ("name", "spelling"),
    some_of(itertools.product(FOLDERS, SPELLINGS), lambda case: case[0] == "100%25" or case[1] in ("path", "file://")),
)
def test_a_remote_opens_however_it_is_spelled(shipped, monkeypatch, name, spelling):
    home, folder = shipped
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    asked = SPELLINGS[spelling](home / name)
    assert check_remote(asked) == check_remote(check_remote(asked)) == f"file://{home / name}"
    for below in ("", "cartpole", f"cartpole/{folder.name}"):
        path = asked / below if isinstance(asked, Path) else f"{str(asked).rstrip('/')}/{below}"
        book = rollbook.open(path).one()
        assert book.series("train/return", x="env_step").x.tolist() == list(range(20))
    listed = CliRunner().invoke(app, ["ls", "--dir", str(asked)])
    assert (listed.exit_code, "ppo" in listed.output) == (0, True), listed.output


def test_init_takes_the_same_spellings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    run = rollbook.init("cartpole", "ppo", dir="runs", sinks=[], keeper="inline", remote="~/a place/")
    run.log({"x": 1.0}, env_step=1)
    run.finish()
    push(run.folder)
    assert rollbook.open("a place").one().keys() == ["x"]
    assert backlog(run.folder)["done"]
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name not in ("cache", "runs")) == ["a place"]


@pytest.mark.parametrize(
    "run", ["../x", "x/..", "./x", "x/.", "/x", "x/", "x", "a/b/c", "a\\b/c", "a/\0", f"a/{'b' * 250}"]
)
def test_a_run_whose_name_leads_out_of_the_cache_is_none(run, tmp_path):
    with pytest.raises(NotARun):
        folders_of(str(tmp_path), ["p/sound", run])


def test_folders_of_runs_are_no_remotes(shipped):
    home, folder = shipped
    for path in (home, home / "runs", home / "runs" / "cartpole", folder, home / "nothing", ""):
        assert not is_address(path)
    assert rollbook.open(folder).one().path == folder
