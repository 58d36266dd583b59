"""Runs in an S3 that speaks over a socket: pushed, opened, read by ranges, read again from the cache."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import rollbook
import waiting
from page_server import client_of
from rollbook.remote import views
from rollbook.remote.push import push
from stores import await_shipped


def recorded(tmp_path, rows=3000, name="ppo", keys=2, **more):
    with rollbook.init("cartpole", name, dir=tmp_path / "runs", sinks=[], keeper="inline", **more) as run:
        for step in range(rows):
            run.log({f"train/{n}": step * (n + 1) * 0.37 for n in range(keys)}, env_step=step)
        run.log_text("note", "hello")
    return run.folder


def test_a_pushed_run_reads_the_same_from_the_store(tmp_path, bucket):
    folder = recorded(tmp_path)
    push(folder, bucket)
    book, there = rollbook.open(tmp_path / "runs").one(), rollbook.open(bucket).one("cartpole/ppo")
    assert there.info.id == book.info.id
    assert there.status == "finished"
    for key in ("train/0", "train/1"):
        ours, theirs = book.series(key, x="env_step"), there.series(key, x="env_step")
        assert np.array_equal(ours.x, theirs.x)
        assert np.array_equal(ours.mean, theirs.mean)
    assert there.text().num_rows == 1


def test_an_address_may_name_a_remote_a_project_or_a_run(tmp_path, bucket):
    folder = recorded(tmp_path)
    push(folder, bucket)
    for address in (bucket, f"{bucket}/cartpole", f"{bucket}/cartpole/{folder.name}"):
        assert len(rollbook.open(address)) == 1
    with pytest.raises(rollbook.errors.RunNotFound, match="rollbook ls"):
        rollbook.open(f"{bucket}/nothing")


def test_the_path_in_a_listing_of_a_remote_names_the_run_before_anything_was_fetched(tmp_path):
    from click.testing import CliRunner

    from rollbook.cli.app import app

    def answer(*words):
        return CliRunner().invoke(app, [*words, "--dir", str(tmp_path / "runs")])

    with rollbook.init("p", "ppo", dir=tmp_path / "runs", sinks=[], keeper="import", rules=()) as run:
        run.log({"train/return": 1.0}, env_step=1)
    store = (tmp_path / "store").as_uri()
    assert answer("push", str(run.folder), store).exit_code == 0
    (path,) = [row["path"] for row in json.loads(answer("ls", store, "--json").stdout)]
    for words in (["show", path, "--json"], ["ls", path, "--json"], ["verify", path], ["compare", path]):
        shutil.rmtree(path, ignore_errors=True)
        done = answer(*words)
        assert done.exit_code == 0, (words, done.output)
        assert "passed over" not in done.stderr
    shutil.rmtree(path, ignore_errors=True)
    assert json.loads(answer("show", path, "--json").stdout)["id"] == run.id


def test_a_second_read_asks_for_no_piece(tmp_path, bucket, proxy):
    push(recorded(tmp_path), bucket)
    rollbook.open(bucket).one().series("train/0", x="env_step")
    views.forget()
    proxy.clear()
    rollbook.open(bucket).one().series("train/0", x="env_step")
    assert proxy.count("GET", "/p/") == 0
    assert proxy.count("GET") > 0


def test_pushing_again_sends_nothing(tmp_path, bucket, proxy):
    folder = recorded(tmp_path)
    push(folder, bucket)
    proxy.clear()
    report = push(folder)
    assert report.pieces == 0
    assert proxy.count("PUT") == 0


def test_a_run_with_remote_is_shipped_when_it_has_finished(tmp_path, bucket):
    with rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], remote=bucket) as run:
        for step in range(500):
            run.log({"train/return": step}, env_step=step)
    await_shipped(run.folder)
    book = rollbook.open(bucket).one()
    assert book.status == "finished"
    assert len(book.series("train/return", x="env_step").x) == 500


@pytest.mark.long
def test_plot_compare_and_report_answer_for_a_store_as_for_the_folder(tmp_path, bucket):
    from click.testing import CliRunner

    from rollbook.cli.app import app

    for name, gain in (("ppo", 1.0), ("dqn", 0.4)):
        for seed in range(3):
            with rollbook.init(
                "cartpole", name, dir=tmp_path / "runs", sinks=[], keeper="inline", seed=seed, config={"algo": name}
            ) as run:
                for step in range(200):
                    run.log({"test/return": step * gain + seed}, env_step=step)
            push(run.folder, bucket)

    def said(words, place):
        done = CliRunner().invoke(app, [*words, "--dir", str(place)])
        assert done.exit_code == 0, done.output
        return done.output.replace(str(place), "PLACE")

    for words in (
        ["plot", "cartpole", "--key", "test/return", "--by", "config.algo", "--text"],
        ["compare", "cartpole", "--metric", "test/return", "--by", "config.algo"],
    ):
        assert said(words, bucket) == said(words, tmp_path / "runs")
    page = tmp_path / "report.html"
    said(["report", "cartpole", "--metric", "test/return", "--by", "config.algo", "-o", str(page)], bucket)
    text = page.read_text(encoding="utf-8")
    assert "ppo" in text
    assert "<svg" in text


FILTERS = [
    "config.lr < 1e-3", "config.net.width = 64 and seed >= 1", "name = 'dqn'", "name like 'p%' or seed = 2",
    "tags has 'paper'", "status = 'finished'", "status != 'finished'", "project = 'cartpole'",
    'last("train/0") > 36', 'max("train/0") > 36 and min("train/0") < 1', 'summary."train/0" is null',
    'last("no/such") > 1', "config.nothing = 1", "created > 0", "group = 'a'",
]  # fmt: skip
WRONG = ["config.lr <", "config.l < 1", "nonsense(1)", "last(train/0) > 1"]


@pytest.mark.parametrize("place", ["s3", *(pytest.param(one, marks=pytest.mark.long) for one in ("folder", "memory"))])
def test_what_one_types_and_sorts_on_the_page_answers_for_a_store_as_for_the_folder(place, tmp_path, request):
    if place == "memory":
        pytest.importorskip("obstore")
    where = {"folder": f"file://{tmp_path}/store", "memory": f"memory://page-{tmp_path.name}"}.get(place)
    where = where or request.getfixturevalue("bucket")
    for name, lr, rows in (("ppo", 1e-2, 100), ("ppo", 1e-4, 90), ("dqn", 1e-4, 120)):
        for seed in range(2):
            config = {"lr": lr, "net": {"width": 64}, "seed": seed}
            more = {
                "seed": seed,
                "config": config,
                "tags": ["paper"] if seed else [],
                "group": "a" if rows == 90 else None,
            }
            push(recorded(tmp_path, rows=rows + seed, name=name, rules=(), **more), where)
    with client_of(tmp_path / "runs") as here, client_of(where, writable=False) as there:

        def answered(client, **ask):
            answer = waiting.until(lambda: _whole(client, ask))
            told = answer.json()
            if "error" in told:
                return told["error"]
            rows = [tuple(row.get(of) for of in ("name", "seed", "run_count", "cells")) for row in told["rows"]]
            return told["matched"], told["total"], told["did_you_mean"], rows

        columns = ["config.lr", "last:train/0", "max:train/1"]
        for text in FILTERS + WRONG:
            ask = {"filter": text, "sections": False, "columns": columns, "sort": [{"column": "last:train/0"}]}
            assert answered(there, **ask) == answered(here, **ask), text
        assert answered(there, filter=FILTERS[0], sections=False)[0] == 4
        assert "config.lr" in str(answered(there, filter="config.l < 1", sections=False))
        for more in ({"search": "dqn"}, {"group_by": ["auto"]}, {"group_by": ["config.lr"], "filter": "seed = 0"}):
            ask = {"sections": False, "columns": columns, **more}
            assert answered(there, **ask) == answered(here, **ask), more


def _whole(client, ask):
    """The answer, once no number of it is still read."""
    answer = client.post("/api/runs", json=ask)
    return None if answer.status_code == 200 and answer.json()["pending"] else answer
