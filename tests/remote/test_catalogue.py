"""The catalogue of a place: derived, incremental, says how old it is, made again by one command."""

from __future__ import annotations

import json
import math
import re
import time
import zlib

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.remote import open_remote
from rollbook.remote.catalogue import KEY, PAGES, mark_pushed, read_catalogue, rebuild
from rollbook.remote.push import push


def pushed(tmp_path, url, name, **config):
    config = {"lr": 0.1, **config}
    with rollbook.init("cartpole", name, dir=tmp_path / "runs", sinks=[], keeper="inline", config=config) as run:
        run.log({"train/return": 1.0}, env_step=1)
    push(run.folder, url)
    return run


def test_a_listing_takes_one_object_and_says_of_when_it_is(tmp_path, bucket, proxy):
    began = time.time()
    for name in ("a", "b", "c"):
        pushed(tmp_path, bucket, name)
    assert len(rollbook.open(bucket)) == 3
    proxy.clear()
    runs = rollbook.open(bucket)
    assert {row["name"] for row in runs.where("config.lr = 0.1").rows()} == {"a", "b", "c"}
    assert runs.as_of >= began
    assert sum(proxy.verbs().values()) == 2  # whose place it is, and the catalogue


def test_a_store_lists_of_a_run_all_that_its_folder_lists(tmp_path, bucket):
    pushed(tmp_path, bucket, "a")
    (local,), (there,) = rollbook.open(tmp_path / "runs").rows(), rollbook.open(bucket).rows()
    del local["path"], there["path"]
    assert there == local
    assert local["summary"]["train/return.last"] == 1.0
    for condition in ("summary['train/return'].last = 1", "writers_died = 0", "length(summary.status) > 0"):
        assert len(rollbook.open(bucket).where(condition)) == 1, condition


def test_one_odd_value_does_not_make_each_reader_fetch_every_run_again(tmp_path, bucket, proxy):
    pushed(tmp_path, bucket, "a")
    pushed(tmp_path, bucket, "b", clip=math.nan, entropy=2**80, floor=-math.inf, half="\ud800")
    rollbook.open(bucket)
    proxy.clear()
    (row,) = rollbook.open(bucket).where("name = 'b'").rows()
    assert row["config"]["entropy"] == 2**80
    assert math.isnan(row["config"]["clip"])
    assert proxy.count("GET", PAGES) == 0


def test_what_was_pushed_from_here_is_listed_at_once_and_only_that_is_fetched(tmp_path, bucket, proxy):
    for name in ("a", "b", "c"):
        pushed(tmp_path, bucket, name)
    rollbook.open(bucket)
    pushed(tmp_path, bucket, "d")
    proxy.clear()
    assert len(rollbook.open(bucket)) == 4
    assert proxy.count("GET", PAGES + "cartpole/") == 1


@pytest.mark.parametrize("maker", ["this machine", "one whose clock is ahead"])
def test_what_was_pushed_within_the_same_instant_as_a_listing_is_listed(tmp_path, maker):
    """Files get the time of the last tick, so a push was dated before the listing that it followed, and hidden for a
    minute. The clock of another machine says nothing about which came first."""
    url = f"file://{tmp_path}/store"
    pushed(tmp_path, url, "a")
    place, page = open_remote(url), json.dumps({"id": "x"}).encode()
    for n in range(20):
        rebuild(place)
        if maker != "this machine":
            made = json.loads(zlib.decompress(place.get(KEY).data))
            made.update(host="another", written=made["written"] + 10)
            place.put(KEY, zlib.compress(json.dumps(made).encode()))
        place.put(f"{PAGES}cartpole/quick-{n}.json", page)
        mark_pushed(url)
        assert f"cartpole/quick-{n}" in read_catalogue(place).runs


def test_a_lost_or_damaged_catalogue_is_made_again(tmp_path):
    url = f"file://{tmp_path}/store"
    pushed(tmp_path, url, "a")
    place = open_remote(url)
    rollbook.open(url)
    place.delete(KEY)
    assert len(rollbook.open(url)) == 1
    place.put(KEY, b"nonsense")
    assert len(rollbook.open(url)) == 1


def test_one_command_makes_it_again_from_the_runs(tmp_path):
    url = f"file://{tmp_path}/store"
    run = pushed(tmp_path, url, "a")
    place = open_remote(url)
    for entry in list(place.listing("_")):
        place.delete(entry.key)
    place.put(f"{PAGES}cartpole/ghost-1.json", b"{}")
    answer = CliRunner().invoke(app, ["catalogue", url, "--rebuild"])
    assert re.match(r"1 run, as of \d+ s ago", answer.output), answer.output
    assert [row["id"] for row in rollbook.open(url).rows()] == [run.id]
    assert set(rebuild(place).runs) == {f"cartpole/{run.folder.name}"}


def test_ten_thousand_runs_take_less_than_a_megabyte(tmp_path):
    url = f"file://{tmp_path}/store"
    run = pushed(tmp_path, url, "a")
    place = open_remote(url)
    known = read_catalogue(place)
    ((name, (_, fields)),) = known.runs.items()
    import random

    runs = {}
    for n in range(10_000):
        config = {"lr": random.Random(n).random(), "gamma": 0.99, "algo": ["ppo", "dqn", "sac"][n % 3], "width": n % 7}
        runs[f"{name}{n}"] = (f"{n:032x}", {**fields, "id": f"{n:08x}", "seed": n, "config": config})
    size = len(zlib.compress(json.dumps({"runs": runs}).encode(), 6))
    assert size < 1_000_000
    assert run.id in {row["id"] for row in rollbook.open(url).rows()}
