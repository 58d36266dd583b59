"""A store, folders, keepers, mergers, a sweeper, readers and one who removes a run, in one thread.

Every interleaving is a seed. Each folder has two keepers that live at the same time (of two hosts that share it).

The steps are those of `rollbook.remote.commit`; here is only what surrounds them: a store whose answers get
lost, whose puts come late, and processes that die.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from random import Random
from typing import Any

from rollbook.remote.commit import Commits, Gone, Local, LocalFile, NotShipped, RemoteManifest
from rollbook.remote.steps import (
    Away,
    Delete,
    Get,
    List,
    ListedObject,
    LookAgain,
    Missing,
    Put,
    Refused,
    Stored,
    Unknown,
)

ORIGINS = ("a", "b", "c")
FAILED, DELAYED, LOST = 0.08, 0.08, 0.12


class Broken(AssertionError):
    """An invariant does not hold."""


class Store:
    """Names to bytes, with conditions. Each change is checked when it takes effect."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[bytes, str, int]] = {}
        self.shipped: dict[str, set[tuple[str, int]]] = {}
        self.removals: Counter[str] = Counter()
        self.counter = self.now = 0

    def effect(self, operation: Any) -> Any:
        """Do it. Raises Missing or Refused."""
        if isinstance(operation, Get):
            if operation.key not in self.held:
                raise Missing(operation.key)
            data, etag, _ = self.held[operation.key]
            return Stored(data, etag)
        if isinstance(operation, List):
            held = sorted(self.held.items())
            return [ListedObject(k, len(d), e, t) for k, (d, e, t) in held if k.startswith(operation.prefix)]
        if isinstance(operation, Delete):
            self.held.pop(operation.key, None)
            if "/m/" in operation.key:
                self.removals[operation.key] += 1
                self.shipped.pop(operation.key, None)
            else:
                self.check(operation.key)
            return None
        there = self.held.get(operation.key)
        if operation.create and there is not None:
            raise Refused(operation.key)
        if operation.etag is not None and (there is None or there[1] != operation.etag):
            raise Refused(operation.key)
        self.counter += 1
        data, etag = operation.source(), str(self.counter)
        self.held[operation.key] = (data, etag, self.now)
        if "/m/" in operation.key:
            self.check(operation.key)
        return etag

    def check(self, changed: str) -> None:
        """No row twice, no shipped row hidden, no named piece missing."""
        keys = [changed] if "/m/" in changed else [key for key in self.held if "/m/" in key]
        for key in keys:
            manifest = manifest_in(self.held[key][0])
            rows: set[tuple[str, int]] = set()
            for path, named in manifest.files.items():
                if f"run/{named.piece}" not in self.held:
                    raise Broken(f"a named piece is missing: {path}")
                for row in rows_in(self.held[f"run/{named.piece}"][0]):
                    if row in rows:
                        raise Broken(f"a row is named twice: {row}")
                    rows.add(row)
            if not self.shipped.get(key, set()) <= rows:
                raise Broken("a shipped row is hidden")
            self.shipped[key] = rows


@lru_cache(4096)
def rows_in(data: bytes) -> list[tuple[str, int]]:
    return [(who, row) for who, first, last in json.loads(data) for row in range(first, last + 1)]


manifest_in = lru_cache(4096)(RemoteManifest.decode)


class Folder:
    """What a keeper sees: rows in the journal, then in parts, then in larger parts."""

    def __init__(self, name: str) -> None:
        self.name, self.rows = name, 0
        self.parts: list[tuple[int, int]] = []

    def go_on(self, random: Random) -> None:
        """Log, seal, merge."""
        self.rows += random.randrange(3)
        sealed = self.parts[-1][1] if self.parts else 0
        if self.rows > sealed and random.random() < 0.5:
            self.parts.append((sealed + 1, random.randint(sealed + 1, self.rows)))
        if len(self.parts) > 2 and random.random() < 0.3:
            n = random.randrange(len(self.parts) - 1)
            self.parts[n : n + 2] = [(self.parts[n][0], self.parts[n + 1][1])]

    def look(self) -> Local:
        files = [self.file(f"data/metrics/wide/{self.name}.L00.S000.{a}.parquet", [(a, b)]) for a, b in self.parts]
        sealed = self.parts[-1][1] if self.parts else 0
        if self.rows > sealed:
            files.append(self.file(f"data/journal/{self.name}/L00.S000.0.seg", [(sealed + 1, self.rows)]))
        return Local({file.path: file for file in files})

    def file(self, path: str, ranges: list[tuple[int, int]]) -> LocalFile:
        data = ("[" + ",".join(f'["{self.name}",{a},{b}]' for a, b in ranges) + "]").encode()
        covers = tuple(("metrics", self.name, 0, "S000", a, b) for a, b in ranges)

        def cut(left: Any) -> LocalFile:
            return self.file(
                f"data/metrics/wide/{self.name}.L00.S000.{left[0][4]}.parquet", [(c[4], c[5]) for c in left]
            )

        return LocalFile(path, len(data), repr(ranges), lambda: data, covers, cut=cut)


def joined(contents: dict[str, Stored]) -> list[LocalFile]:
    """The rows of several pieces in one."""
    ranges = sorted((r for stored in contents.values() for r in json.loads(stored.data)), key=lambda r: r[1])
    data = json.dumps(ranges).encode()
    covers = tuple(("metrics", who, 0, "S000", a, b) for who, a, b in ranges)
    path = min(contents, key=lambda path: int(path.rpartition(".L00.S000.")[2].split(".")[0]))
    return [LocalFile(path, len(data), repr(ranges), lambda: data, covers)]


class World:
    """One schedule.

    Args:
      seed: which.
      commits, mergers: the protocol of keepers and of mergers, or a naive variant of it.
      sweep, read: other ways to sweep and to read: (world, commits) -> steps.
    """

    def __init__(self, seed: int, commits: Any = Commits, mergers: Any = None, sweep: Any = None, read: Any = None):
        self.random = Random(seed)
        self.store, self.late = Store(), []
        self.attempts = 0
        self.folders = {name: Folder(name) for name in ORIGINS}
        self.commits = {name: commits("run/", name, self.attempt) for name in ORIGINS}
        self.keepers = {(n, k): commits("run/", n, self.attempt) for n in ORIGINS for k in (0, 1)}
        self.mergers = {name: (mergers or commits)("run/", name, self.attempt) for name in ORIGINS}
        self.sweeping, self.reading = sweep or (lambda world, c: c.sweep()), read or (lambda world, c: read_all(c))
        self.known = dict.fromkeys(ORIGINS, False)  # what a folder remembers: that it was in the store once

    def attempt(self) -> str:
        self.attempts += 1
        return str(self.attempts)

    def run(self, turns: int = 260) -> None:
        """All of it; raises Broken."""
        random = self.random
        actors: dict[Any, tuple[Any, list[Any]]] = {}
        keepers = [("keep", keeper) for keeper in self.keepers]
        crashes = dict.fromkeys(keepers, 3)
        roles: list[Any] = [*keepers, *(("merge", n) for n in ORIGINS), ("sweep", ""), ("read", 0), ("read", 1)]
        if random.random() < 0.5:
            roles.append(("remove", random.choice(ORIGINS)))
        for _ in range(turns):
            self.store.now += 1
            if self.late and random.random() < 0.08:
                self.quietly(self.late.pop(random.randrange(len(self.late))))
            role = random.choice(roles)
            if role not in actors:
                actors[role] = self.begin(role)
            elif crashes.get(role) and random.random() < 0.03:
                crashes[role] -= 1
                actors.pop(role)[0].close()
            elif not self.turn(actors[role]):
                actors.pop(role)
                if role[0] == "remove":
                    roles.remove(role)
        for steps, _ in actors.values():
            steps.close()
        while self.late:
            self.quietly(self.late.pop(random.randrange(len(self.late))))
        self.end()

    def end(self) -> None:
        """A store that answers: everything is shipped, swept and read once more."""
        gone = set()
        for name in ORIGINS:
            try:
                self.to_end(self.ship((name, 0)))
            except Gone:
                gone.add(name)
            self.to_end(self.sweeping(self, self.commits[name]))
        for name in ORIGINS:
            seen = self.to_end(self.reading(self, self.commits[name]))
            expected = {(name, row) for row in range(1, self.folders[name].rows + 1) if name not in gone}
            own = [row for row in seen if row[0] == name]
            if len(own) != len(set(own)) or set(own) != expected:
                raise Broken(f"at the end {name} shows {sorted(own)} of {len(expected)} rows")

    def begin(self, role: tuple[str, Any]) -> tuple[Any, list[Any]]:
        what, who = role
        if what == "keep":
            self.folders[who[0]].go_on(self.random)
            steps = self.ship(who)
        elif what == "remove":
            steps = self.remove(self.commits[who])
        elif what == "merge":
            steps = self.mergers[who].merge(self.neighbours, joined)
        elif what == "sweep":
            steps = self.sweeping(self, self.commits[self.random.choice(ORIGINS)])
        else:
            steps = self.watch(self.commits[self.random.choice(ORIGINS)])
        return steps, [None, None, []]

    def ship(self, keeper: tuple[str, int]) -> Any:
        """A keeper's steps. One that knows that its manifest was there once never makes it."""
        who, commits, may_create = keeper[0], self.keepers[keeper], not self.known[keeper[0]]
        steps, answer = commits.ship(self.folders[who].look, may_create=may_create), None
        try:
            while True:
                asked = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
                if isinstance(asked, Put) and asked.key == commits.manifest_key and asked.create and not may_create:
                    raise Broken("what was removed is made again")
                try:
                    answer = yield asked
                except (Missing, Refused, Away, Unknown) as err:
                    answer = err
        except StopIteration as ended:
            self.known[who] = True
            return ended.value

    def remove(self, commits: Commits) -> Any:
        """Somebody takes a run away, in the order of its names: its manifest, and when that has gone its pieces."""
        listed = yield List(f"run/p/{commits.origin}/")
        while True:
            try:
                yield Delete(commits.manifest_key)
                break
            except Unknown:
                continue
        yield [Delete(entry.key) for entry in listed]

    def neighbours(self, manifest: RemoteManifest) -> list[str]:
        """Two or three neighbours of a manifest's parts."""
        parts = sorted((one.covers[0][4], path) for path, one in manifest.files.items() if path.endswith(".parquet"))
        if len(parts) < 2:
            return []
        n = self.random.randrange(len(parts) - 1)
        return [path for _, path in parts[n : n + self.random.randint(2, 3)]]

    def watch(self, commits: Commits) -> Any:
        """A reader, and what it must see: all that was shipped when it began."""
        key = commits.manifest_key
        before, removals = set(self.store.shipped.get(key, ())), self.store.removals[key]
        seen = yield from self.reading(self, commits)
        if len(seen) != len(set(seen)):
            raise Broken("a reader sees a row twice")
        if not before <= set(seen) and removals == self.store.removals[key]:
            raise Broken("a reader misses a shipped row")

    # -- operations

    def turn(self, actor: tuple[Any, list[Any]]) -> bool:
        """One operation of an actor; False when it has ended."""
        steps, state = actor
        if isinstance(state[0], list):
            if state[0]:
                state[2].append(self.faulty(state[0].pop(0)))
                return True
            answer, state[2] = state[2], []
        else:
            answer = None if state[0] is None else self.faulty(state[0])
        try:
            state[0] = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
        except (StopIteration, Away, NotShipped, Gone, LookAgain, Unknown):
            return False
        if isinstance(state[0], list):
            state[0] = list(state[0])
            self.random.shuffle(order := list(range(len(state[0]))))
            if len(order) > 1 and all(isinstance(each, Delete) for each in state[0]):
                state[0] = [state[0][n] for n in order]
        return True

    def faulty(self, operation: Any) -> Any:
        chance = self.random.random()
        changes = isinstance(operation, (Put, Delete))
        if chance < FAILED:
            return Unknown() if changes else Away()
        if changes and chance < FAILED + DELAYED:
            self.late.append(operation)
            return Unknown()
        answer = self.quietly(operation)
        if changes and chance < FAILED + DELAYED + LOST:
            if self.random.random() < 0.5:  # the client asks again, and finds what it did itself
                answer = self.quietly(operation)
                return answer if isinstance(answer, Exception) else Unknown()
            return Unknown()
        return answer

    def quietly(self, operation: Any) -> Any:
        try:
            return self.store.effect(operation)
        except (Missing, Refused) as err:
            return err

    def to_end(self, steps: Any) -> Any:
        answer: Any = None
        try:
            while True:
                asked = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
                answer = [self.quietly(each) for each in asked] if isinstance(asked, list) else self.quietly(asked)
        except StopIteration as ended:
            return ended.value
        except (NotShipped, Missing) as err:
            raise Broken(f"at the end: {err}") from None


def read_all(commits: Commits) -> Any:
    """The rows of an origin, as readers get them."""
    _, found = yield from commits.fetch(lambda manifest: dict.fromkeys(manifest.files, ""))
    return [row for stored in found.values() for row in rows_in(stored.data)]
