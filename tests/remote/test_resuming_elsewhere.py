"""A new machine with an empty disk goes on with a run by its id and its place, or is told the one command that does."""

from __future__ import annotations

import json
import shutil

import pytest

import rollbook
from cases import some_of
from rollbook import errors
from rollbook.remote import fetching, open_remote, views
from rollbook.remote.push import push
from rollbook.schema import manifest


@pytest.fixture
def store(tmp_path):
    return f"file://{tmp_path}/store"


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A place with one run, and the id of that."""
    place = tmp_path_factory.mktemp("pushed")
    options = {"dir": place / "lost", "sinks": [], "keeper": "inline", "remote": f"file://{place}/store"}
    with rollbook.init("cartpole", "ppo", **options, config={"lr": 0.1}) as run:
        for step in range(300):
            run.log({"train/return": step * 0.5}, env_step=step)
        run.save_checkpoint({"w": [1.0, 2.0]}, env_step=299)
    push(run.folder)
    shutil.rmtree(run.folder)
    return place / "store", run.id


@pytest.fixture
def shipped(tmp_path, pushed):
    """The id of a run of which the place alone is left."""
    shutil.copytree(pushed[0], tmp_path / "store")
    return pushed[1]


def resume(tmp_path, run_id, store, how, **more):
    return rollbook.init(
        "cartpole",
        "ppo",
        dir=tmp_path / "new",
        sinks=[],
        keeper="inline",
        rules=(),
        run_id=run_id,
        resume=how,
        remote=store,
        **more,
    )


@pytest.mark.parametrize(
    ("how", "by"), some_of([("must", "$ROLLBOOK_REMOTE"), ("allow", "remote="), ("takeover", "remote=")], 1)
)
def test_a_run_goes_on_from_its_remote_on_an_empty_disk(tmp_path, store, shipped, monkeypatch, how, by):
    if by != "remote=":
        monkeypatch.setenv("ROLLBOOK_REMOTE", store)
    with resume(tmp_path, shipped, store if by == "remote=" else None, how) as run:
        assert (run.id, run.attempt) == (shipped, 2)
        assert run.restore().state["w"] == [1.0, 2.0]
        for step in range(300, 400):
            run.log({"train/return": step * 0.5}, env_step=step)
    push(run.folder)
    views.forget()
    for book in (rollbook.open(store).one(), rollbook.open(tmp_path / "new").one()):
        assert book.series("train/return", x="env_step").x.tolist() == list(range(400))
        assert [entry["n"] for entry in book.attempts] == [1, 2]
        assert book.config == {"lr": 0.1}


def test_where_no_such_run_lies_allow_begins_it_and_must_says_so(tmp_path, store, shipped):
    with pytest.raises(errors.NothingToResume, match=f"no run 'another1' in .*, nor in {store}"):
        resume(tmp_path, "another1", store, "must")
    with resume(tmp_path, "another1", store, "allow") as run:
        assert (run.id, run.attempt) == ("another1", 1)


def test_must_without_a_remote_or_an_id_says_what_brings_a_shipped_run(tmp_path, store, shipped):
    for run_id, where in ((shipped, False), (None, store)):
        with pytest.raises(errors.NothingToResume, match="found by run_id= and remote="):
            resume(tmp_path, run_id, where, "must")


@pytest.mark.parametrize("how", ["allow", "must"])
def test_a_run_that_is_written_elsewhere_is_not_gone_on_with(tmp_path, store, how):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "there", sinks=[], keeper="inline", remote=store)
    push(run.folder, final=False)
    with pytest.raises(errors.RunIsLive, match="takeover"):
        resume(tmp_path, run.id, store, how)
    assert not (tmp_path / "new").exists()
    run.finish()


@pytest.mark.parametrize("how", ["allow", "must"])
def test_a_large_run_and_a_remote_that_is_away_name_the_one_command(tmp_path, store, shipped, tuned, how):
    tuned(fetched_bytes=100)
    root = str(tmp_path / "new")
    with pytest.raises(errors.RemoteError, match=f"rollbook pull {store}/cartpole/ppo-{shipped} --dir {root}"):
        fetching.bring(store, "cartpole", "ppo", shipped, root)
    tuned(bring_seconds=0.01)
    with pytest.raises(errors.RemoteUnreachable, match=f"rollbook pull {store}/cartpole/ppo-{shipped} --dir {root}"):
        resume(tmp_path, shipped, store, how)
    assert manifest.look(tmp_path / "new" / "cartpole" / f"ppo-{shipped}").is_empty


def test_what_was_pulled_half_is_gone_on_with_as_a_whole(tmp_path, store, shipped):
    half = tmp_path / "new" / "cartpole" / f"ppo-{shipped}" / "data" / "keeper"
    half.mkdir(parents=True)
    with resume(tmp_path, shipped, store, "must") as run:
        assert run.attempt == 2
    page = json.loads(open_remote(store).get(f"cartpole/ppo-{shipped}/run.json").data)
    assert len(page["attempts"]) == 2
