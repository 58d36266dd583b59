"""What every place keeps to: a folder, memory, S3 and, where it is there, Azure's emulator."""

from __future__ import annotations

import itertools
import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from rollbook.errors import ForeignRemote
from rollbook.remote import claim, open_remote, perform
from rollbook.remote.commit import Commits, Local, LocalFile
from rollbook.remote.steps import Missing, Refused, Unknown

numbers = itertools.count()


@pytest.fixture(params=["folder", "memory", "s3", "azure"])
def place(request, tmp_path):
    if request.param == "folder":
        return open_remote(tmp_path / "store")
    if request.param == "memory":
        pytest.importorskip("obstore")
        return open_remote(f"memory://contract-{next(numbers)}")
    return open_remote(request.getfixturevalue("bucket" if request.param == "s3" else "container"))


def test_what_was_put_is_got_whole_and_in_ranges(place):
    etag = place.put("a/b", b"0123456789")
    assert place.get("a/b").data == b"0123456789"
    assert place.get("a/b").etag == etag
    assert place.get_ranges("a/b", [(2, 4), (7, 10)]) == [b"23", b"789"]
    assert place.get_ranges("a/b", [(0, 1)]) == [b"0"]


def test_what_is_not_there_is_missing(place):
    place.put("x", b"")
    with pytest.raises(Missing):
        place.get("nothing")
    with pytest.raises(Missing):
        place.get_ranges("nothing", [(0, 1)])
    place.delete("nothing")


def test_something_is_made_once(place):
    place.put("page", b"first", create=True)
    with pytest.raises(Refused):
        place.put("page", b"second", create=True)
    assert place.get("page").data == b"first"


def test_a_put_on_an_etag_holds_only_for_what_was_read(place):
    first = place.put("page", b"1", create=True)
    second = place.put("page", b"2", etag=first)
    with pytest.raises(Refused):
        place.put("page", b"3", etag=first)
    assert place.get("page")[:2] == (b"2", second)
    with pytest.raises(Refused):
        place.put("gone", b"1", etag=first)


def test_a_listing_has_all_names_that_begin_so_in_order(place):
    for name in ("p/b/2", "p/b/1", "p/bc", "q/1"):
        place.put(name, b"abc")
    assert [entry.key for entry in place.listing("p/")] == ["p/b/1", "p/b/2", "p/bc"]
    assert [entry.key for entry in place.listing("p/b/")] == ["p/b/1", "p/b/2"]
    assert {entry.size for entry in place.listing("")} == {3}
    assert sorted(place.folders("")) == ["p", "q"]
    assert place.folders("p/") == ["b"]
    assert list(place.listing("nothing/")) == []


def test_a_listing_that_knows_what_was_there_finds_what_is_there(place, tuned):
    pytest.importorskip("obstore")

    tuned(listed_names=3)
    chance = random.Random(7)
    there = {f"_pages/{project}/ppo-{n}.json" for project in ("a", "b c", "\u00fc") for n in range(7)} | {
        "_pages/a.json"
    }
    for name in there:
        place.put(name, b"")
    known = sorted({*chance.sample(sorted(there), 17), "_pages/0/gone-1.json", "_pages/a/ppo-3x.json", "_pages/zz"})
    for names in (known, known[:4], []):
        assert [entry.key for entry in place.listing("_pages/", names)] == [e.key for e in place.listing("_pages/")]
    assert {entry.key for entry in place.listing("_pages/", known)} == there


def test_a_file_is_put_and_got_as_a_file(place, tmp_path):
    content = bytes(range(256)) * 40_000
    (tmp_path / "large").write_bytes(content)
    place.put("large", str(tmp_path / "large"), create=True)
    place.get("large", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content


def test_of_many_that_change_one_thing_at_once_no_change_is_lost(place):
    place.put("list", b"[]", create=True)

    def add(number):
        while True:
            stored = place.get("list")
            numbers = json.loads(stored.data)
            if number in numbers:  # a put that was refused may have been ours
                return
            try:
                place.put("list", json.dumps([*numbers, number]).encode(), etag=stored.etag)
                return
            except (Refused, Unknown):
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert sorted(json.loads(place.get("list").data)) == list(range(12))


def test_a_remote_says_that_it_holds_runs_and_refuses_what_holds_something_else(place):
    assert claim(place, make=False) is False
    assert claim(place, make=True) is True
    assert claim(place, make=False) is True


def test_a_prefix_that_holds_something_else_is_refused(place):
    place.put("thesis.tex", b"")
    with pytest.raises(ForeignRemote, match=r"thesis\.tex"):
        claim(place, make=True)
    assert [entry.key for entry in place.listing("")] == ["thesis.tex"]


def test_shipping_merging_sweeping_and_reading_agree(place):
    def file(first, last):
        data = f"{first}-{last}".encode()
        cover = (("metrics", "w", 0, "S000", first, last),)
        path = f"data/metrics/wide/w.L00.S000.{first}.parquet"
        return LocalFile(path, len(data), data.decode(), lambda: data, cover)

    commits = Commits("project/run/", "host-1")
    files = {f.path: f for f in (file(1, 5), file(6, 9))}
    shipped = perform(commits.ship(lambda: Local(files)), place)
    assert shipped.pieces == 2
    assert perform(commits.ship(lambda: Local(files)), place).pieces == 0
    assert not perform(commits.merge(lambda m: list(m.files)[:1], lambda got: [file(1, 5)]), place), "one is no merge"
    assert perform(commits.merge(lambda m: list(m.files), lambda got: [file(1, 9)]), place)
    before, _ = perform(commits.fetch(lambda m: {}), place)
    assert perform(commits.sweep(), place) == 2
    manifest, found = perform(commits.fetch(lambda m: dict.fromkeys(m.files, "")), place)
    assert [stored.data for stored in found.values()] == [b"1-9"]
    assert manifest.epoch == before.epoch + 1
    assert perform(commits.ship(lambda: Local(files)), place).pieces == 0  # it is there, in a larger piece
