"""The manifest of a run in a store follows the run's own folder: no part, copy or late host moves it backwards."""

from __future__ import annotations

import itertools

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from live_copies import copy_live
from rollbook.book.book import Book
from rollbook.cli.app import app
from rollbook.remote import open_remote, perform, views
from rollbook.remote import pull as pulling
from rollbook.remote import push as shipping
from rollbook.remote.catalogue import read_catalogue
from rollbook.remote.commit import Commits
from rollbook.remote.pull import pull
from rollbook.remote.push import push
from rollbook.remote.run_json import run_json_of
from rollbook.run import attaching, start_and_finish
from rollbook.run.local_part import extract_of, folder_here
from rollbook.schema import manifest
from rollbook.schema.addresses import origin_of
from rollbook.storage import seal


@pytest.fixture
def store(tmp_path):
    return f"file://{tmp_path}/store"


def begun(root, **more):
    run = rollbook.init("cartpole", "ppo", dir=root, sinks=[], keeper="inline", **more)
    log(run, range(300))
    run.summary["best"] = 1
    run.internals.write_about()
    return run


def log(run, steps):
    for step in steps:
        run.log({"train/return": step * 0.5}, env_step=step)


def a_part(run, root, store, monkeypatch):
    monkeypatch.setenv("ROLLBOOK_DIR", str(root))
    page = extract_of(run.internals.about, 1)
    folder, is_part = folder_here("/folders/of/another/host/ppo", page["nonce"], page)
    assert is_part
    other = rollbook.attach(folder)
    log(other, range(1000, 1100))
    other.finish()
    return folder


def a_pulled_copy(run, root, store, monkeypatch):
    push(run.folder, store, final=False)
    pull(open_remote(store), f"cartpole/{run.folder.name}", root)
    return root / "cartpole" / run.folder.name


def an_old_copy(run, root, store, monkeypatch):
    return copy_live(run.folder, root / "cartpole" / run.folder.name)


def an_old_copy_of_a_shipped_folder(run, root, store, monkeypatch):
    push(run.folder, store, final=False)
    return an_old_copy(run, root, store, monkeypatch)


def by_command(*words):
    def command(folder, store):
        done = CliRunner().invoke(
            app, [store if word == "URL" else str(folder) if word == "RUN" else word for word in words]
        )
        assert done.exit_code == 0, done.output

    return command


def by_pull(folder, store):
    pull(open_remote(store), f"cartpole/{folder.name}", folder.parent.parent)


def by_keeper(folder, store):
    if origin_of(folder) is not None:
        assert shipping.main([str(folder)]) == 0
        assert shipping.main([str(folder), "--final"]) == 0


COMMANDS = {
    "push to": by_command("push", "RUN", "URL"),
    "sync with": by_command("sync", "RUN", "URL"),
    "push": by_command("push", "RUN"),
    "sync": by_command("sync", "RUN", "--merge"),
    "pull": by_pull,
    "keeper": by_keeper,
}
KINDS = [a_part, a_pulled_copy, an_old_copy, an_old_copy_of_a_shipped_folder]


def shown(store, name):
    """What a reader is told of the run: by run.json, the catalogue, and the files beside."""
    views.forget()
    page = run_json_of(open_remote(store).get(f"cartpole/{name}/run.json").data)
    (fields,) = (fields for _, fields in read_catalogue(open_remote(store), seconds=0).runs.values())
    assert fields == manifest.listed(page)
    assert page.summary.items() <= fields["summary"].items()
    return page


@pytest.mark.parametrize(
    ("kind", "first"),
    some_of(
        itertools.product(KINDS, ["push to", "sync with"]),
        lambda case: (case[0] in KINDS[::2]) == (case[1] == "push to"),
    ),
)
def test_no_command_on_a_part_or_copy_moves_the_run_backwards(kind, first, tmp_path, store, monkeypatch):
    run = begun(tmp_path / "home")
    name = run.folder.name
    other = kind(run, tmp_path / "other", store, monkeypatch)
    other = type(run.folder)(other)
    before = manifest.look(other)
    log(run, range(300, 400))
    run.summary["best"] = 42
    run.internals.write_about()
    push(run.folder, store, final=False)
    for status in ("running", "finished"):
        if status == "finished":
            log(run, range(400, 500))
            run.finish()
            push(run.folder)
        there, home = shown(store, name), manifest.read(run.folder)
        assert (there.status, there.summary["best"]) == (status, 42)
        for command in (COMMANDS[first], *COMMANDS.values()):
            command(other, store)
            assert shown(store, name) == there
            assert manifest.progress(manifest.read(run.folder)) >= manifest.progress(home)
        assert manifest.look(other).part == before.part
    assert manifest.look(other) == there or kind is not a_pulled_copy
    origins = perform(Commits(f"cartpole/{name}/", "").origins(), open_remote(store))
    assert [id for id, each in origins.items() if each.about["home"]] == [origin_of(run.folder).id]
    assert not shipped_twice(origins)
    book = rollbook.open(store).one()
    assert (book.status, book.summary["best"]) == ("finished", 42)
    steps = [*range(500), *(range(1000, 1100) if kind is a_part else ())]
    assert sorted(book.metrics(["train/return"])["env_step"].to_pylist()) == steps


@pytest.fixture
def unkept(monkeypatch):
    """Parts without a keeper: nothing but what a test says touches their folders."""
    monkeypatch.setattr(attaching, "start", lambda *given: start_and_finish.start(*given[:-1], "inline"))


def shipped_twice(origins):
    covers = sorted(cover for each in origins.values() for file in each.files.values() for cover in file.covers)
    return [(a, b) for a, b in itertools.pairwise(covers) if a[:4] == b[:4] and b[4] <= a[5]]


def a_part_and_what_it_lacks(tmp_path, store, monkeypatch):
    """A part that has pulled once, and the run's home, which has shipped more since then and is finished."""
    run = begun(tmp_path / "home")
    part = type(run.folder)(a_part(run, tmp_path / "other", store, monkeypatch))
    for folder in (run.folder, part):
        push(folder, store, final=False)
    by_pull(part, store)
    log(run, range(300, 500))
    run.save_checkpoint({"weights": list(range(100))})
    run.finish()
    push(run.folder)
    return run, part


@pytest.mark.parametrize("moment", ["after a piece", "before the last word"])
def test_a_keeper_that_ships_during_a_pull_ships_nothing_of_what_the_pull_brings(
    moment, tmp_path, store, monkeypatch, unkept
):
    run, part = a_part_and_what_it_lacks(tmp_path, store, monkeypatch)
    work = {"after a piece": "_fetch_some", "before the last word": "_keep_run_json"}[moment]
    fetch, shipments = getattr(pulling, work), []

    def beside(*given):
        done = fetch(*given) if moment == "after a piece" else None
        shipments.append(push(part, final=False))
        return fetch(*given) if done is None else done

    monkeypatch.setattr(pulling, "_AT_ONCE", 1)
    monkeypatch.setattr(pulling, work, beside)
    by_pull(part, store)
    origins = perform(Commits(f"cartpole/{run.folder.name}/", "").origins(), open_remote(store))
    home = origins.pop(origin_of(run.folder).id)
    assert shipments
    assert not shipped_twice({"home": home, **origins})
    (other,) = origins.values()
    assert not other.files.keys() & home.files.keys() & {path for path in home.files if path.startswith("ckpt")}
    steps = Book(part).metrics(["train/return"])["env_step"].to_pylist()
    assert sorted(steps) == [*range(500), *range(1000, 1100)]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_pull_replaces_no_rows_that_were_written_here(when, tmp_path, store, monkeypatch, unkept):
    """Two folders of a run number their merged parts alike."""
    run, part = a_part_and_what_it_lacks(tmp_path, store, monkeypatch)
    check_file = pulling.check_file

    def sealed_meanwhile(*given):
        seal(part, final=True, take_over=True)
        monkeypatch.setattr(pulling, "check_file", check_file)
        return check_file(*given)

    if when == "before":
        seal(part, final=True, take_over=True)
    else:
        monkeypatch.setattr(pulling, "check_file", sealed_meanwhile)
    by_pull(part, store)
    merged = [{file.name for file in folder.glob("data/metrics/long/merged.*")} for folder in (run.folder, part)]
    assert merged[0] & merged[1]
    steps = Book(part).metrics(["train/return"])["env_step"].to_pylist()
    assert sorted(steps) == [*range(500), *range(1000, 1100)]


def test_a_copy_says_that_it_is_one_and_needs_no_address(tmp_path, store):
    run = begun(tmp_path / "home")
    run.finish()
    push(run.folder, store)
    pull(open_remote(store), f"cartpole/{run.folder.name}", tmp_path / "here")
    copy = tmp_path / "here" / "cartpole" / run.folder.name
    done = CliRunner().invoke(app, ["sync", str(copy)])
    assert done.exit_code == 0, done.output
    assert "This is a copy" in done.output
    assert "shipped 0 pieces" in done.output


def test_a_copy_that_goes_on_is_the_home_from_then_on_and_the_old_home_a_copy(tmp_path, store):
    run = begun(tmp_path / "home", remote=store)
    run.finish()
    push(run.folder)
    pull(open_remote(store), f"cartpole/{run.folder.name}", tmp_path / "here")
    again = rollbook.init(
        "cartpole", "ppo", dir=tmp_path / "here", run_id=run.id, resume="must", sinks=[], keeper="inline"
    )
    log(again, range(300, 350))
    again.summary["best"] = 7
    again.finish()
    push(again.folder)
    manifest.edit(run.folder, {"notes": "said too late"})
    push(run.folder)
    page = shown(store, run.folder.name)
    assert (len(page.attempts), page.summary["best"], page.notes) == (2, 7, "")
    assert CliRunner().invoke(app, ["sync", str(run.folder)]).exit_code == 0
    assert manifest.read(run.folder) == manifest.read(again.folder)
    assert Book(run.folder).series("train/return", x="env_step").x.tolist() == list(range(350))
    views.forget()
    assert rollbook.open(store).one().summary["best"] == 7


def test_a_copy_may_be_brought_to_another_remote(tmp_path, store):
    run = begun(tmp_path / "home")
    run.finish()
    push(run.folder, store)
    pull(open_remote(store), f"cartpole/{run.folder.name}", tmp_path / "here")
    push(tmp_path / "here" / "cartpole" / run.folder.name, f"{store}-2")
    book = rollbook.open(f"{store}-2").one()
    assert book.series("train/return", x="env_step").x.tolist() == list(range(300))
    assert book.status == "finished"
