"""Runs that are shipped while they are written: killed, vanished, in two folders, pulled and gone on with."""

from __future__ import annotations

import json
import math
import os
import shutil
import time

import numpy as np
import pytest

import rollbook
from cases import some_of
from live_copies import copy_live
from rollbook import errors
from rollbook.remote import open_remote, perform, views
from rollbook.remote.commit import Commits, Local, LocalFile
from rollbook.remote.merging import tidy
from rollbook.remote.pull import pull
from rollbook.remote.push import push
from rollbook.schema import manifest, source
from rollbook.schema.addresses import backlog, begin
from stores import await_shipped


@pytest.fixture
def store(tmp_path):
    return f"file://{tmp_path}/store"


def recorded(root, rows=2000, name="ppo", **more):
    with rollbook.init("cartpole", name, dir=root, sinks=[], keeper="inline", rules=(), **more) as run:
        for step in range(rows):
            run.log({"train/return": step * 0.5}, env_step=step)
    return run.folder


def steps_of(book):
    return book.series("train/return", x="env_step").x.tolist()


def test_a_run_that_is_being_written_reads_from_the_store_up_to_the_last_shipment(tmp_path, store):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=())
    for step in range(700):
        run.log({"train/return": step * 0.5}, env_step=step)
    run.log_text("note", "half way")
    push(run.folder, store, final=False)
    book = rollbook.open(store).one()
    assert steps_of(book) == list(range(700))
    assert book.text().num_rows == 1
    for step in range(700, 1500):
        run.log({"train/return": step * 0.5}, env_step=step)
    push(run.folder, final=False)
    views.forget()
    assert steps_of(rollbook.open(store).one()) == list(range(1500))
    run.finish()
    push(run.folder)
    views.forget()
    book = rollbook.open(store).one()
    assert steps_of(book) == list(range(1500))
    assert book.status == "finished"
    assert not list((book.path / "data").glob("journal/*/*.seg"))


def test_a_killed_run_is_shipped_to_its_last_row_by_its_keeper(tmp_path, store, interpreter):
    program = (
        "import rollbook, sys\n"
        f"run = rollbook.init('cartpole', 'ppo', dir={str(tmp_path / 'runs')!r}, sinks=[], remote={store!r})\n"
        "for step in range(500): run.log({'train/return': step * 0.5}, env_step=step)\n"
        "print(run.folder, flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = interpreter.start(program, env=os.environ)
    folder = child.stdout.readline().strip()
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()
    await_shipped(folder)
    book = rollbook.open(store).one()
    assert book.status == "crashed"
    assert steps_of(book) == list(range(500))


def test_what_a_machine_that_vanished_had_shipped_reads_as_a_stale_run(tmp_path, store, monkeypatch):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=())
    for step in range(300):
        run.log({"train/return": step * 0.5}, env_step=step)
    push(run.folder, store, final=False)
    copy = tmp_path / "elsewhere"
    copy_live(run.folder, copy / "cartpole" / run.folder.name)
    run.finish()
    shutil.rmtree(run.folder)
    writer = next((copy / "cartpole").rglob("writer.json"))
    elsewhere = dict.fromkeys(("boot_id", "host", "machine", "pid_ns"), "other")
    writer.write_text(json.dumps({**json.loads(writer.read_text()), **elsewhere}))
    place = tmp_path / "other-store"
    page = copy / "cartpole" / run.folder.name / "run.json"
    fields = manifest.read(page.parent)
    fields.created = time.time() - 3600
    manifest.write(str(page.parent), fields)
    push(page.parent, str(place), final=False)
    for mark in place.rglob("m/*.json"):  # as if it had been an hour ago
        mark.write_text(json.dumps({**json.loads(mark.read_text()), "written": time.time() - 3600, "heard": 0}))
    for path in place.rglob("*.json"):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    book = rollbook.open(f"file://{place}").one()
    assert book.status == "stale"
    assert steps_of(book) == list(range(300))


def test_two_folders_without_a_shared_disk_ship_parts_of_one_run(tmp_path, store):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "a", sinks=[], keeper="inline", rules=(), remote=store)
    for step in range(100):
        run.log({"train/return": step * 0.5}, env_step=step)
    run.internals.write_about()
    part = tmp_path / "b" / "cartpole" / run.folder.name
    part.mkdir(parents=True)
    shutil.copy(run.folder / "run.json", part / "run.json")
    begin(part, store, home=False, host="node-b")
    other = rollbook.attach(part)
    for step in range(100, 200):
        other.log({"train/return": step * 0.5}, env_step=step)
    other.finish()
    push(part)
    run.finish()
    push(run.folder)
    book = rollbook.open(store).one()
    assert sorted(steps_of(book)) == list(range(200))
    assert book.status == "finished"
    assert len(rollbook.open(store)) == 1


def test_pulling_a_run_of_which_nothing_is_there_yet_says_so(tmp_path, store):
    recorded(tmp_path / "runs", rows=10, remote=store)
    with pytest.raises(errors.NotARun, match=r"there is no run 'cartpole/another', or nothing of it .* rollbook ls"):
        pull(open_remote(store), "cartpole/another", tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_a_pulled_run_is_the_same_and_a_second_pull_brings_nothing(tmp_path, store):
    folder = recorded(tmp_path / "runs")
    push(folder, store)
    place, name = open_remote(store), f"cartpole/{folder.name}"
    assert pull(place, name, tmp_path / "back").files > 0
    book = rollbook.open(tmp_path / "back").one()
    assert steps_of(book) == list(range(2000))
    assert pull(place, name, tmp_path / "back").files == 0
    assert rollbook.open(tmp_path / "back").one().problems() == []


def test_a_pulled_run_goes_on_elsewhere_and_its_rows_are_not_shipped_twice(tmp_path, store):
    folder = recorded(tmp_path / "runs", rows=500)
    push(folder, store)
    pull(open_remote(store), f"cartpole/{folder.name}", tmp_path / "back")
    with rollbook.init(
        "cartpole", "ppo", dir=tmp_path / "back", sinks=[], keeper="inline", rules=(), resume="must", remote=store
    ) as run:
        for step in range(500, 600):
            run.log({"train/return": step * 0.5}, env_step=step)
    push(run.folder)
    book = rollbook.open(store).one()
    assert steps_of(book) == list(range(600))
    assert len(book.attempts) == 2


def test_small_pieces_are_merged_and_what_nothing_names_is_deleted(tmp_path, store):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=())
    from rollbook.storage.sealing.folder import seal

    for part in range(6):
        for step in range(part * 5000, part * 5000 + 5000):
            run.log({"train/return": step * 0.5}, env_step=step)
        seal(run.folder)
        push(run.folder, store, final=False)
    place, name = open_remote(store), f"cartpole/{run.folder.name}"
    before = len(list(place.listing(f"{name}/p/")))
    done = tidy(place, name, grace=0.0)
    assert done.merged > 2
    assert done.swept > 0
    assert len(list(place.listing(f"{name}/p/"))) < before
    assert steps_of(rollbook.open(store).one()) == list(range(30_000))
    run.finish()
    push(run.folder)
    views.forget()
    assert steps_of(rollbook.open(store).one()) == list(range(30_000))


def test_the_pieces_of_many_short_writers_become_few_while_the_run_goes_on(tmp_path, store):
    from rollbook.journal.writer import Writer
    from rollbook.storage.sealing.folder import seal
    from rollbook.storage.sealing.merge import Sizes

    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=())
    for first in range(0, 40 * 150, 150):  # as actors that come and go
        writer = Writer(str(run.folder), main=False)
        writer.open()
        log = writer.make_log(writer.channel())
        for step in range(first, first + 150):
            log({"train/return": step * 0.5}, env_step=step)
        writer.close()
    run.log({"train/return": 0.0}, env_step=-1)
    seal(str(run.folder), sizes=Sizes(many_small=10**9))  # sealing leaves them to shipping
    named = []
    for _ in range(3):
        push(run.folder, store, final=False)
        (manifest,) = perform(Commits(f"cartpole/{run.folder.name}/", "").origins(), open_remote(store)).values()
        named.append(sum(path.endswith(".parquet") for path in manifest.files))
    assert len(list((run.folder / "data" / "metrics").rglob("*.parquet"))) >= 40
    assert max(named) < 8
    assert sorted(steps_of(rollbook.open(store).one())) == list(range(-1, 40 * 150))
    run.finish()
    push(run.folder)
    views.forget()
    assert sorted(steps_of(rollbook.open(store).one())) == list(range(-1, 40 * 150))


def test_a_folder_that_another_host_is_shipping_is_left_to_it(tmp_path, store):
    from rollbook.system.files import try_lock

    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=())
    run.log({"train/return": 1.0}, env_step=1)
    push(run.folder, store, final=False)
    with open(run.folder / "data" / "keeper" / "ship.lock", "r+b") as held:
        assert try_lock(held.fileno())
        assert not push(run.folder, final=False).done
        with pytest.raises(errors.RemoteUnreachable, match="by another process"):
            push(run.folder, patience=0.1)
    assert not backlog(run.folder)["failures"]
    run.finish()


def test_a_reader_that_holds_pieces_which_were_merged_away_reads_on(tmp_path, store):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=())
    from rollbook.storage.sealing.folder import seal

    for part in range(4):
        for step in range(part * 500, part * 500 + 500):
            run.log({"train/return": step * 0.5}, env_step=step)
        seal(run.folder)
    push(run.folder, store, final=False)
    book = rollbook.open(store).one()
    tidy(open_remote(store), f"cartpole/{run.folder.name}", grace=0.0)
    assert steps_of(book) == list(range(2000))
    run.finish()


def test_the_cache_stays_below_its_bound_and_reads_go_on(tmp_path, store, monkeypatch):
    random = np.random.default_rng(0)
    with rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()) as run:
        run.log_many({f"k/{n}": random.normal(size=20_000) for n in range(10)}, env_step=np.arange(20_000))
    push(run.folder, store)
    monkeypatch.setenv("ROLLBOOK_CACHE_BYTES", "400000")
    for _ in range(2):
        for n in range(10):
            assert len(rollbook.open(store).one().series(f"k/{n}", x="env_step").x) == 20_000
    views.trim()
    root = source.cache_root()
    used = sum(os.stat(os.path.join(f, n)).st_blocks * 512 for f, _, names in os.walk(root) for n in names)
    assert used <= 500_000


def test_a_manifest_from_a_stranger_leads_nowhere_else(tmp_path, store):
    folder = recorded(tmp_path / "runs", rows=50)
    push(folder, store)
    for page in (tmp_path / "store").rglob("m/*.json"):
        page.write_text(page.read_text().replace('"data/abandoned.parquet"', '"../../../../../../../evil.py"'))
    book = rollbook.open(store).one()
    assert steps_of(book) == list(range(50))
    assert not list(tmp_path.rglob("evil.py"))


def test_a_reader_whose_pieces_are_merged_away_under_it_reads_the_newer_manifest(tmp_path, store, monkeypatch):
    """Not the older state that lies in its cache."""
    from rollbook.remote.local import FolderRemote

    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=(), remote=store)
    run.log({"train/return": 0.0}, env_step=0)
    run.internals.write_about()
    push(run.folder, final=False)
    assert steps_of(rollbook.open(store).one()) == [0]
    plain, turns = FolderRemote.get, [1, 2]

    def get(place, key, into=""):
        if "/p/" in key and turns:
            step, rest = turns[0], turns[1:]
            turns.clear()
            run.log({"train/return": 0.0}, env_step=step)
            push(run.folder, final=False)
            tidy(open_remote(store), f"cartpole/{run.folder.name}", grace=0)
            turns.extend(rest)
        return plain(place, key, into)

    run.log({"train/return": 0.0}, env_step=3)
    push(run.folder, final=False)
    views.forget()
    monkeypatch.setattr(FolderRemote, "get", get)
    assert sorted(steps_of(rollbook.open(store).one())) == [0, 1, 2, 3]
    run.finish()


def test_pushing_nowhere_says_what_to_write(tmp_path):
    with pytest.raises(errors.NotARun, match="rollbook push RUN URL"):
        push(recorded(tmp_path / "runs", rows=5))


class Clock:
    """Time in the test's hands, in place of a module's; `ahead` of it goes that of a host whose clock is wrong."""

    def __init__(self, ahead: float = 0.0, of: Clock | None = None) -> None:
        self.ahead, self.of, self.now = ahead, of, time.time()

    def time(self) -> float:
        return self.now if self.of is None else self.of.now + self.ahead

    monotonic = time

    def __getattr__(self, name):
        return getattr(time, name)


def stamp_by(clock, monkeypatch):
    """From now on what is put in a place is stamped by this clock."""
    from rollbook.remote.local import FolderRemote
    from rollbook.remote.objects import ObjectRemote

    stamps = {}
    for kind in (FolderRemote, ObjectRemote):

        def put(place, key, data, plain=kind.put, **conditions):
            stamps[place.url, key] = clock.now
            return plain(place, key, data, **conditions)

        def get(place, key, into="", plain=kind.get):
            stored = plain(place, key, into)
            return stored._replace(modified=stamps.get((place.url, key), stored.modified))

        monkeypatch.setattr(kind, "put", put)
        monkeypatch.setattr(kind, "get", get)


HOURS = 36_000.0


def repr_of(value):
    return repr(value)[:9]


@pytest.mark.parametrize(
    ("seconds", "ahead", "kind"),
    some_of(
        [
            (0.0, 0.0, "store"),
            (45.0, -HOURS, "store"),
            (300.0, 0.0, "store"),
            (5.0, HOURS, "bucket"),
            (5.0, 0.0, "store"),
            (45.0, 0.0, "store"),
            (5.0, HOURS, "store"),
            (45.0, -HOURS, "bucket"),
        ],
        [(0.0, 0.0, "store"), (300.0, 0.0, "store"), (5.0, HOURS, "bucket")].count,
    ),
)
def test_a_living_run_is_never_called_stale_however_slowly_it_is_shipped_and_one_that_ended_is(
    tmp_path, request, monkeypatch, seconds, ahead, kind
):
    """Nothing is logged; every shipment takes so long, and the next one begins forty seconds after its end. The clock
    of the host is wrong by so much, that of the store is right."""
    from rollbook.keeper.shipping import IDLE_SECONDS
    from rollbook.remote import push as shipping
    from rollbook.runs import remote
    from rollbook.schema import status

    store = request.getfixturevalue(kind)
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=(), remote=store)
    run.log({"train/return": 1.0}, env_step=1)
    run.internals.write_about()
    page = json.loads((run.folder / "run.json").read_text())
    (run.folder / "run.json").write_text(json.dumps({**page, "created": page["created"] + ahead}))
    clock = Clock()
    host = Clock(ahead, clock)
    stamp_by(clock, monkeypatch)
    for module in (status, remote):
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(module, "is_alive", lambda _: None, raising=False)  # it is on another host
    monkeypatch.setattr(shipping, "time", host)
    beat = run.folder / "data" / "keeper" / "heartbeat"
    plain = shipping._Shipment._ship

    def statuses():
        views.forget()
        return rollbook.open(store).one().status, rollbook.open(store).rows()[0]["status"]

    def slowly(shipment, place):
        clock.now += seconds
        if shipment.before.get("known"):
            assert statuses() == ("running", "running")  # just before this manifest comes
        plain(shipment, place)

    monkeypatch.setattr(shipping._Shipment, "_ship", slowly)
    for _ in range(4):
        beat.write_text("{}")
        os.utime(beat, (host.time() - 15, host.time() - 15))  # a silent writer is seen every fifteen seconds
        push(run.folder, final=False, every=IDLE_SECONDS)
        assert statuses() == ("running", "running")
        clock.now += IDLE_SECONDS
    clock.now += seconds + 59
    assert statuses() == ("running", "running")
    clock.now += 2
    assert statuses() == ("stale", "stale")
    run.finish()


def test_tidying_a_remote_is_no_sign_that_its_runs_are_alive(tmp_path, store, monkeypatch):
    clock = Clock()
    stamp_by(clock, monkeypatch)
    place, commits = open_remote(store), Commits("cartpole/ppo-1/", "there")
    facts = {"written": clock.now - HOURS, "heard": clock.now - HOURS - 5, "due": clock.now - HOURS + 20}
    for content in (b"1", b"22"):
        files = {"notes.txt": LocalFile("notes.txt", len(content), content.decode(), lambda c=content: c)}
        perform(commits.ship(lambda files=files: Local(files), lambda: facts), place)
    until, swept = clock.now + 20, []
    for _ in range(2):
        clock.now += 1000
        swept.append(perform(commits.sweep(), place))
        (manifest,) = perform(commits.origins(), place).values()
        assert manifest.promised_until() == pytest.approx(until)
    assert swept == [1, 0]


@pytest.mark.parametrize(
    "due", [math.nan, math.inf, -math.inf, 1e300, 10**400, -5, "soon", None, [1], True], ids=repr_of
)
def test_a_manifest_of_a_stranger_promises_a_day_at_most(tmp_path, store, due):
    """Whatever stands in it, the run can be read."""
    run = recorded(tmp_path / "runs", rows=5)
    push(run, store)
    (mark,) = (tmp_path / "store").rglob("m/*.json")
    page = json.loads(mark.read_text())
    for name in ("due", "heard", "written", "stamped"):
        mark.write_text(json.dumps({**page, name: due}))
        views.forget()
        assert rollbook.open(store).one().status == "finished"
        (manifest,) = perform(Commits(f"cartpole/{run.name}/", "").origins(), open_remote(store)).values()
        assert manifest.promised_until() <= time.time() + 86_400


def test_after_a_clock_went_back_an_idle_run_is_still_noticed(tmp_path, store):
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=(), remote=store)
    run.log({"train/return": 1.0}, env_step=1)
    run.internals.write_about()
    beat = run.folder / "data" / "keeper" / "heartbeat"
    seen = []
    for hours in (0, -1, 0):
        beat.write_text("{}")
        moment = time.time() + hours * 3600
        os.utime(beat, (moment, moment))
        push(run.folder, final=False, every=40.0)
        (mark,) = (tmp_path / "store").rglob("m/*.json")
        seen.append(json.loads(mark.read_text())["written"])
    assert seen == sorted(set(seen)), "each shipment makes the manifest anew"
    run.finish()
