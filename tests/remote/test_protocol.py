"""The commit protocol under thousands of schedules: crashes, delays, failed puts, lost answers.

The code that is driven is the code that ships (`rollbook.remote.commit`); each naive variant breaks one of its
rules. ROLLBOOK_SCHEDULES says how many schedules are tried (2,000 take about 20 s).
"""

from __future__ import annotations

import os

import pytest

from cases import some_of
from rollbook.remote.commit import Commits, LocalFile, Named, RemoteManifest, Shipment, plan
from rollbook.remote.steps import Delete, Get, List, Missing, Put, Refused, Unknown
from store_model import Broken, World, rows_in

SCHEDULES = int(os.environ.get("ROLLBOOK_SCHEDULES", "150"))
MOST = 4000


def broken(seeds, **variant):
    """How many schedules break an invariant."""
    count = 0
    for seed in seeds:
        try:
            World(seed, **variant).run()
        except Broken:
            count += 1
    return count


def test_under_any_schedule_no_row_is_doubled_no_shipped_row_is_hidden_and_no_named_piece_is_missing():
    for seed in range(SCHEDULES):
        World(seed).run()


# -- each variant breaks one rule


class WithoutCondition(Commits):
    def _replace(self, manifest, etag):
        data = manifest.encode()
        try:
            return (yield Put(self.manifest_key, lambda: data))
        except Unknown:
            return None


class OneForAll(WithoutCondition):
    """All origins in one object that everybody reads, changes and puts."""

    def __init__(self, base, origin, attempt, *more):
        super().__init__(base, origin, attempt, *more)
        self.manifest_key = f"{base}m/all.json"


class ManifestFirst(Commits):
    owed = ()

    def _upload(self, files):
        named = {}
        self.owed = []
        for file in files:
            name = self.piece_of(file)
            self.owed.append(Put(self.base + name, file.source, create=True))
            named[file.path, file.sha256] = Named(name, file.size, file.sha256, file.covers)
        return named
        yield

    def _replace(self, manifest, etag):
        answer = yield from super()._replace(manifest, etag)
        if self.owed:
            yield self.owed
        return answer


class Adopts(Commits):
    """A piece is known by what is in it; one that is there already is taken for our own."""

    def piece_of(self, file):
        covers = "-".join(f"{c[4]}.{c[5]}" for c in file.covers)
        return f"p/{self.origin}/{covers}.parquet"

    def _upload(self, files):
        sent = {}
        for file in files:
            name = self.piece_of(file)
            for _ in range(12):
                try:
                    yield Put(self.base + name, file.source, create=True)
                    break
                except Refused:
                    break
                except Unknown:
                    continue
            sent[file.path, file.sha256] = Named(name, file.size, file.sha256, file.covers)
        return sent


class NothingNewAfterAFence(Commits):
    def _on_fence(self, pieces):
        pass


class FromALocalCursor(Commits):
    """What comes next is remembered instead of read."""

    cursor = last = 0

    def _plan(self, manifest, local):
        uploads = []
        for file in sorted(local.files.values(), key=lambda file: file.covers[0][4]):
            (*whose, first, last) = file.covers[0]
            if last > self.cursor:
                uploads.append(file.cut(((*whose, max(first, self.cursor + 1), last),)))
        self.last = max([f.covers[-1][5] for f in uploads], default=self.cursor)
        return Shipment(uploads, manifest.files)

    def _replace(self, manifest, etag):
        answer = yield from super()._replace(manifest, etag)
        if answer is not None:
            self.cursor = self.last
        return answer


class NotCutAgain(Commits):
    """What was to be shipped is found once; a beaten put is made again with it."""

    first = None

    def ship(self, look, *arguments, **named):
        self.first = None
        return super().ship(look, *arguments, **named)

    def _plan(self, manifest, local):
        proposal = super()._plan(manifest, local)
        if not proposal.uploads:
            return proposal
        if self.first is None:
            self.first = (proposal, set(manifest.files) - set(proposal.kept))
        uploads, removed = self.first[0].uploads, self.first[1]
        return Shipment(uploads, {path: one for path, one in manifest.files.items() if path not in removed})


class MergesUnderAnOldName(Commits):
    def merge(self, choose, join):
        def chosen(manifest):
            paths = choose(manifest)
            self.old = manifest.files[paths[0]].piece if paths else ""
            return paths

        return super().merge(chosen, join)

    def _upload(self, files):
        (file,) = files
        try:
            yield Put(self.base + self.old, file.source)
        except Unknown:
            pass
        return {(file.path, file.sha256): Named(self.old, file.size, file.sha256, file.covers)}


class NamesPiecesAtOnce(Commits):
    """The first manifest already names pieces."""

    def _begin(self, about):
        return RemoteManifest(0, {}, about), None
        yield


class BeginsAtZero(Commits):
    """A manifest that was made again looks like the one that was removed."""

    def _begin(self, about):
        manifest = RemoteManifest(0, {}, about)
        etag = yield from self._replace(manifest, None)
        return None if etag is None else (manifest, etag)


class MakesItAgain(Commits):
    """Whoever finds no manifest makes one, whatever was there before."""

    def ship(self, look, may_create=True):
        return super().ship(look)


def sweeps_at(grace):
    """By age, without a fence."""

    def sweep(world, commits):
        listed = yield List(f"{commits.base}p/{commits.origin}/")
        manifest, _ = yield from commits.manifest()
        names = {commits.base + one.piece for one in manifest.files.values()}
        old = [e.key for e in listed if e.key not in names and world.store.now - e.modified >= grace]
        yield [Delete(key) for key in old]

    return sweep


def lists_pieces(world, commits):
    listed = yield List(f"{commits.base}p/{commits.origin}/")
    seen = []
    for entry in listed:
        try:
            stored = yield Get(entry.key)
        except Missing:
            continue
        seen += rows_in(stored.data)
    return seen


def does_not_read_again(world, commits):
    manifest, _ = yield from commits.manifest()
    seen = []
    for one in manifest.files.values():
        try:
            stored = yield Get(commits.base + one.piece)
        except Missing:
            continue
        seen += rows_in(stored.data)
    return seen


NAIVE = {
    "pieces of an earlier attempt are adopted": {"commits": Adopts},
    "nothing is uploaded anew after the epoch moved": {"commits": NothingNewAfterAFence},
    "sweep by age, grace shorter than a delayed put": {"sweep": sweeps_at(20)},
    "sweep by age, and adopting": {"sweep": sweeps_at(20), "commits": Adopts},
    "sweep at once, without a fence": {"sweep": sweeps_at(0)},
    "manifest before piece": {"commits": ManifestFirst},
    "manifest put without a condition": {"commits": WithoutCondition},
    "one manifest for all, read, changed and put": {"commits": OneForAll},
    "readers list pieces": {"read": lists_pieces},
    "merging reuses a name": {"mergers": MergesUnderAnOldName},
    "merging puts without a condition": {"mergers": WithoutCondition},
    "what comes next from a local cursor": {"commits": FromALocalCursor},
    "what overlaps after a beaten put is not cut again": {"commits": NotCutAgain},
    "readers do not read a manifest again": {"read": does_not_read_again},
    "the first manifest names pieces": {"commits": NamesPiecesAtOnce},
    "every manifest begins at epoch 0": {"commits": BeginsAtZero},
    "a manifest that was removed is made again": {"commits": MakesItAgain},
}


FROM = {"every manifest begins at epoch 0": 300, "readers do not read a manifest again": 250}
"""Schedules before these are known to find nothing."""


@pytest.mark.parametrize("variant", some_of(NAIVE, [*NAIVE][::2].count))
def test_a_naive_variant_breaks_under_some_schedule(variant):
    for seed in range(FROM.get(variant, 0), MOST):
        try:
            World(seed, **NAIVE[variant]).run()
        except Broken:
            return
    raise AssertionError(f"{MOST} schedules found nothing wrong with: {variant}")


def test_a_manifest_that_was_removed_is_not_made_again():
    world = World(0)
    world.folders["a"].rows = 3
    world.to_end(world.ship(("a", 0)))
    world.store.held.clear()
    from rollbook.remote.commit import Gone

    with pytest.raises(Gone):
        world.to_end(world.commits["a"].ship(world.folders["a"].look, may_create=False))
    assert not world.store.held


def part(name: str, *rows: tuple[int, int]) -> LocalFile:
    """A file with these rows of one stream."""
    covers = tuple(("metrics", "w", 0, "S000", first, last) for first, last in rows)
    path = f"data/metrics/{name}.parquet"
    return LocalFile(
        path, 1, name * 64, lambda: b"", covers, cut=lambda left: LocalFile(path, 1, "", lambda: b"", left)
    )


def shipped(*files: LocalFile, elsewhere: LocalFile) -> list[tuple[int, ...]]:
    uploads = plan({}, {file.path: file for file in files}, elsewhere=elsewhere.covers).uploads
    return [cover[4:] for file in uploads for cover in file.covers]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [([], [(1, 10)]), ([(1, 4)], [(5, 10)]), ([(1, 10)], []), ([(3, 4)], [(1, 2), (5, 10)])],
)
def test_rows_that_another_origin_has_shipped_are_not_shipped_again(theirs, ours):
    assert shipped(part("a", (1, 10)), elsewhere=part("b", *theirs)) == ours


def test_rows_that_two_files_of_a_folder_have_are_shipped_once():
    assert shipped(part("a", (1, 10)), part("b", (5, 12)), elsewhere=part("c")) == [(1, 10), (11, 12)]


@pytest.mark.parametrize("in_other_files", [False, True])
def test_a_name_that_left_the_folder_stays_unless_other_files_have_its_rows(in_other_files):
    file = part("a", (1, 10))
    named = {file.path: Named("p/a", 1, file.sha256, file.covers)}
    found = plan(named, {}, settled=[file.path] if in_other_files else [])
    assert found == Shipment([], {} if in_other_files else named)


def test_a_manifest_says_the_same_after_a_trip_through_the_store():
    named = Named("p/a/x-1.parquet", 10, "ab", (("metrics", "w", 0, "S000", 1, 5),), 7, "zlib", 9)
    manifest = RemoteManifest(3, {"data/metrics/wide/x.parquet": named}, {"host": "h"})
    assert RemoteManifest.decode(manifest.encode()) == manifest
