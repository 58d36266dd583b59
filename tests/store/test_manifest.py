"""run.json: read whatever stands in it, replaced as a whole, its attempts apart."""

from __future__ import annotations

import copy
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_writer import make_run
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.book.repair.doctor import repair, verify
from rollbook.cli.app import app as main
from rollbook.errors import NotARun
from rollbook.schema import manifest
from rollbook.schema.manifest import Attempt, Cut, RunJson

PAGE: dict[str, Any] = {
    "format": 1, "rollbook": "0.1.0", "id": "k3v9x2ab", "project": "p", "name": "n", "nonce": "x", "status": "finished",
    "created": 10.0, "ended": 20.0, "seed": 3, "group": None, "job_type": None, "tags": ["a"], "notes": "",
    "parent": None, "forked_from": None, "total": {"env_step": 10}, "clocks": ["env_step"], "config": {"lr": 0.1},
    "summary": {"best": 1.0}, "host": "h", "boot_id": "b", "command": ["python"], "python": "3.11", "git": None,
    "packages": {}, "drops": {"cause": 2}, "x": "env_step",
    "attempts": [
        {"n": 1, "parent": None, "cut": None, "started": 10.0, "ended": 12.0, "status": "crashed", "writer": "w1",
         "host": "h", "offsets": {}},
        {"n": 2, "parent": 1, "cut": {"time": 5, "writers": {"w1": {"0": 3}}}, "started": 13.0, "ended": 20.0,
         "status": "finished", "writer": "w2", "host": "h", "offsets": {"env_step": 3}, "last": 7},
    ],
}  # fmt: skip

ODD: tuple[Any, ...] = (
    None,
    True,
    3,
    -1.5,
    float("nan"),
    1e400,
    "text",
    "",
    [],
    [1],
    {},
    {"a": "b"},
    {"a": [1]},
    2**70,
)

ODD_ONES = (None, True, "text", [1], {"a": "b"})
"""One of each kind."""

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


def put(folder: Path, page: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(page))
    return folder


def places(page: dict[str, Any]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [(name,) for name in page]
    for i, entry in enumerate(page["attempts"]):
        found += [("attempts", i), *(("attempts", i, name) for name in entry)]
    return [*found, ("attempts", 1, "cut", "time"), ("attempts", 1, "cut", "writers"), ("total", "env_step")]


@pytest.mark.parametrize("values", [ODD_ONES, pytest.param(ODD, marks=pytest.mark.long)], ids=["some", "many"])
@pytest.mark.parametrize("some", [places(PAGE)[first::6] for first in range(6)], ids=range(6))
def test_no_damaged_field_ends_in_a_traceback_or_hides_the_list(
    some: list[tuple[Any, ...]], values: tuple[Any, ...], tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    put(root / "p" / "good-aaaaaaaa", {**PAGE, "id": "aaaaaaaa", "name": "good"})
    for place, (number, odd) in itertools.product(some, enumerate(values)):
        page = copy.deepcopy(PAGE)
        at: Any = page
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = odd
        put(root / "p" / f"{'-'.join(map(str, place))}-{number}", page)
    runs = rollbook.open(root)
    assert "good" in [row["name"] for row in runs.rows()]
    for book in runs:
        assert isinstance(book.status, str)
        assert isinstance(book.attempts, list)
        book.config, book.summary, book.seed, book.tags, book.group, book.clocks, book.metrics()
    for command in (["ls", str(root)], ["ls", str(root), "--json"]):
        result = CliRunner().invoke(main, [*command, "--limit", "1000"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "good" in result.output
    for row in runs.rows()[:: 2 if values is ODD else 6]:
        result = CliRunner().invoke(main, ["show", str(row["path"])])
        assert result.exception is None or isinstance(result.exception, SystemExit), (row["path"], result.exception)


@given(ANYTHING, st.sampled_from([*PAGE, "unknown"]))
def test_whatever_is_in_a_field_the_attempts_can_be_followed(odd: Any, name: str) -> None:
    about, problems = manifest.clean({**copy.deepcopy(PAGE), name: odd})
    assert isinstance(manifest.chain(about), dict)
    assert isinstance(manifest.attempts(about), list)
    again, none = manifest.clean(about.as_json())
    assert json.dumps(again.as_json()) == json.dumps(about.as_json())
    assert none == [] or name == "attempts" or problems


FIELDS = [*RunJson.__annotations__, "unknown"]
OF_AN_ATTEMPT = [*(name for name in Attempt.__annotations__ if name != "n"), "unknown"]


def without(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {other: value for other, value in entry.items() if other != name}


@given(ANYTHING, st.sampled_from(FIELDS))
def test_a_field_costs_itself_alone_whatever_is_in_it(odd: Any, name: str) -> None:
    about, _ = manifest.clean({**copy.deepcopy(PAGE), name: odd})
    sound, _ = manifest.clean(without(name, copy.deepcopy(PAGE)))
    touched = {"attempts": {"attempts"}, "created": {"created", "ended"}}.get(name, {name})
    for other in [each for each in FIELDS if each not in touched and each != "unknown"]:
        assert getattr(about, other) == getattr(sound, other), other


@given(ANYTHING, st.sampled_from(OF_AN_ATTEMPT))
def test_a_field_of_an_attempt_costs_itself_alone_whatever_is_in_it(odd: Any, name: str) -> None:
    entries = copy.deepcopy(PAGE["attempts"])
    entries[1][name] = odd
    about, problems = manifest.clean({**copy.deepcopy(PAGE), "attempts": entries})
    sound, _ = manifest.clean({**copy.deepcopy(PAGE), "attempts": [entries[0], without(name, entries[1])]})
    touched = {name, "ended"} if name == "started" else {name}
    for other in [each for each in OF_AN_ATTEMPT if each not in touched and each != "unknown"]:
        assert getattr(about.attempts[1], other) == getattr(sound.attempts[1], other), other
    assert (about.attempts[0], about.name) == (sound.attempts[0], sound.name)
    assert all(str(problem).startswith(f"attempt 2: {name}") for problem in problems)


@given(st.dictionaries(st.text(max_size=5) | st.sampled_from(FIELDS), ANYTHING))
def test_what_was_written_is_read_equal(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    folder = tmp_path_factory.getbasetemp() / "written"
    folder.mkdir(exist_ok=True)
    about = RunJson.of({**content, "format": 2, "id": "k3v9x2ab", "revision": 0})
    manifest.write(folder, about)
    read = manifest.read(folder)
    assert read.revision > 0
    assert repr(RunJson.of(json.loads(json.dumps(about.as_json()))).but(revision=0)) == repr(read.but(revision=0))


def test_a_later_rollbooks_fields_are_kept_when_the_file_is_written_again(tmp_path: Path) -> None:
    entries = [{**PAGE["attempts"][0], "as_json": 1}, {**PAGE["attempts"][1], "cut": {"writers": {}, "set": [2]}}]
    put(tmp_path, {**PAGE, "attempts": entries, "as_json": "text", "__class__": {"a": 1}, "later": None})
    manifest.edit(tmp_path, {"notes": "changed"})
    page = json.loads((tmp_path / "run.json").read_text())
    assert (page["as_json"], page["__class__"], page["later"], page["notes"]) == ("text", {"a": 1}, None, "changed")
    assert (page["attempts"][0]["as_json"], page["attempts"][1]["cut"]["set"]) == (1, [2])


def test_a_sound_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    about, problems = manifest.clean(PAGE)
    manifest.write(tmp_path, about)
    read = manifest.read(tmp_path)
    assert problems == []
    assert read == about.but(revision=read.revision)
    assert json.loads((tmp_path / "run.json").read_text()) == {**PAGE, "revision": read.revision}
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_pipe_or_a_device_instead_of_the_manifest_blocks_no_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(NotARun, match="not a regular file"):
        manifest.read(tmp_path)
    os.unlink(tmp_path / "run.json")
    os.symlink("/dev/zero", tmp_path / "run.json")
    with pytest.raises(NotARun, match="not a regular file"):
        manifest.read(tmp_path)


def test_opening_a_run_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    put(tmp_path / "p" / "good-aaaaaaaa", PAGE)
    bad = put(tmp_path / "p" / "bad-bbbbbbbb", [1, 2])
    (bad / "data" / "journal").mkdir(parents=True)
    with pytest.raises(NotARun, match="no id"):
        rollbook.open(bad)
    runs = rollbook.open(tmp_path)
    assert len(runs) == 1
    (problem,) = runs.problems
    assert "bad-bbbbbbbb" in problem


def test_what_an_attempt_was_started_with_survives_any_number_of_later_ones() -> None:
    origins: list[dict[str, Any]] = [
        {"config": {"lr": 1, "a": 2}, "seed": 1, "packages": {"torch": "1", "numpy": "2"}},
        {"config": {"lr": 5}, "seed": 2, "packages": {"torch": "2", "numpy": "2"}},
        {"config": {"lr": 5}, "seed": 2, "packages": {"torch": "2", "numpy": "2"}, "git": {"commit": "c"}},
        {"config": {"net": {"sizes": [1, 2], "act": "x"}, "lr": 5}, "seed": None, "packages": {}},
        {"config": {"net": {"sizes": [1, 3], "act": "x"}, "lr/x": 5, "lr": {"set": 1}}, "seed": 4, "packages": {}},
        {"config": {}, "seed": 4},
    ]
    about = RunJson()
    for n, attempt in enumerate(origins, 1):
        manifest.close_origin(about)
        about.forget(*manifest.ORIGIN)
        about.set(**copy.deepcopy(attempt))
        about.attempts.append(Attempt(n=n))
        about = RunJson.of(json.loads(json.dumps(about.as_json())))
    about.config["changed late"] = 1  # by the attempt that goes on: no other is touched
    told = [manifest.origin(about, n) for n in range(1, len(origins) + 1)]
    assert told == [*origins[:-1], {"config": {"changed late": 1}, "seed": 4}]
    assert "origin" not in manifest.attempts(about)[0]
    assert len(json.dumps(about.attempts[2].as_json())) < 120  # differences only


def test_a_cut_of_an_older_rollbook_cuts_by_time_where_it_names_no_position() -> None:
    old, new = (Cut(writers={"w": {0: 3}}, **more) for more in ({"time": 5}, {"moment": 5}))
    for cut in (old, new):
        assert [cut.holds("w", 0, seq, 0) for seq in (3, 4)] == [True, False]
        assert not cut.holds("w", 1, 1, 0), "a lane without a position began behind the cut"
    assert [old.holds("other", 0, 1, time_ns) for time_ns in (5, 6)] == [True, False]
    assert [new.holds("other", 0, 1, time_ns) for time_ns in (5, 6)] == [True, True]


@pytest.mark.parametrize("damaged", [3, "text", [{"n": "1"}], [{"n": 1, "cut": {"writers": 3}}, {"n": 2, "parent": 1}]])
def test_verify_names_damaged_attempts_and_repair_makes_them_again(damaged: Any, tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", seed=3) as run:
        run.log({"x": 1.0}, env_step=1)
        run.save_checkpoint({"w": 1})
        run.log({"x": 2.0}, env_step=2)
        run.restore()
        run.log({"x": 3.0}, env_step=2)
    page = json.loads((run.folder / "run.json").read_text())
    put(run.folder, {**page, "attempts": damaged, "created": "yesterday"})
    said = verify(run.folder)
    assert [text for text in said if "attempt" in text]
    assert [text for text in said if "created is not a time" in text]
    assert "rebuilt from" in " ".join(repair(run.folder))
    assert verify(run.folder) == []
    (book,) = rollbook.open(tmp_path)
    assert (book.seed, len(book.attempts), book.metrics("x")["x"].to_pylist()) == (3, 2, [1.0, 3.0])


def test_a_later_write_is_later_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path)
    hour, now, seen = 3600 * 10**9, time.time_ns(), []
    for jump in (0, -hour, 0, hour, -2 * hour, 0):
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: now + jump)
        manifest.write(run, manifest.read(run).but(notes=str(jump)))
        seen.append(manifest.progress(manifest.read(run)))
    assert seen == sorted(set(seen))
    manifest.write(run, manifest.read(run).but(attempts=[Attempt(n=2)], revision=0))
    assert manifest.progress(manifest.read(run)) > seen[-1]  # another attempt is later than any write of the one before


def test_no_run_and_no_attempt_took_less_than_no_time(tmp_path: Path) -> None:
    """The clock was set back between the attempts, by an older rollbook or another machine."""
    attempts = [{"n": 1, "started": 900.0, "ended": 950.0}, {"n": 2, "started": 800.0, "ended": 700.0}]
    put(tmp_path, {**PAGE, "created": 900.0, "ended": 700.0, "attempts": attempts})
    about = manifest.read(tmp_path)
    assert (about.created, about.ended) == (900.0, 900.0)
    assert [(entry.started, entry.ended) for entry in about.attempts] == [(900.0, 950.0), (800.0, 800.0)]


def test_a_field_that_nothing_reads_from_json_is_refused_with_what_can_be_read() -> None:
    with pytest.raises(TypeError, match=r"Odd.field is annotated 'set\[int\]'.* Use one of str, .*READERS"):
        type("Odd", (manifest.JsonObject,), {"__annotations__": {"field": "set[int]"}})
