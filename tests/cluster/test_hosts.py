"""Who is on which host, and what follows for liveness and for placing rows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import rollbook
from other_machine import BOOT_ID, MACHINE_ID, system_file
from rollbook.journal.writers import list_writers
from rollbook.keeper.own_files import host_and_namespace
from rollbook.system.liveness import HOST_VARIABLE, identity, is_alive, shares_pids

Start = Callable[..., rollbook.Run]
OnHost = Callable[..., subprocess.CompletedProcess[str]]

EVALUATES = """
import sys, rollbook
run = rollbook.attach(sys.argv[1])
run.log({"eval/return": 7.0})
run.log({"eval/return": 8.0}, env_step=3)
run.finish()
"""


def test_a_host_that_is_declared_is_a_host_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    me, place = identity(), host_and_namespace()
    monkeypatch.setenv(HOST_VARIABLE, "node-1")
    there = identity()
    assert there["host"] == "node-1"
    assert (is_alive(there), is_alive(me), shares_pids(me)) == (True, None, False)
    assert host_and_namespace() != place
    monkeypatch.setenv(HOST_VARIABLE, "node-2")
    assert is_alive(there) is None  # the same boot, the same pids, and yet another host


def test_two_hosts_of_one_name_never_call_each_others_writers_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, place = identity(), host_and_namespace()
    system_file(monkeypatch, BOOT_ID, "the boot of a second host")
    assert is_alive(theirs) is False  # one machine that was booted anew
    system_file(monkeypatch, MACHINE_ID, "another")
    assert is_alive(theirs) is None
    assert host_and_namespace() != place  # and their keepers do not share a lock


def test_a_writer_keeps_how_far_its_clock_is_from_that_of_the_files(start: Start) -> None:
    run = start()
    run.log({"x": 1.0})
    (writer,) = list_writers(run.folder)
    assert abs(writer.about["clock_offset"]) < 1_000_000_000


def test_rows_of_another_host_are_placed_by_what_they_know_and_by_time_only_when_asked(
    start: Start, on_host: OnHost
) -> None:
    run = start()
    run.log({"loss": 1.0}, env_step=1)
    on_host("node-1", EVALUATES, run.folder)
    run.finish()
    known = run.book.metrics(["eval/return"], x="env_step")
    assert (known["env_step"].to_pylist(), known["eval/return"].to_pylist()) == ([3], [8.0])
    asked = run.book.metrics(["eval/return"], x="env_step", exact=False)
    assert asked["eval/return"].to_pylist() == [7.0, 8.0]
    assert asked["inferred"].to_pylist() == [True, False]


def test_what_was_measured_of_a_hosts_clock_is_taken_off_where_rows_are_placed_by_time(
    start: Start, on_host: OnHost
) -> None:
    run = start()
    run.log({"loss": 1.0}, env_step=1)
    on_host("node-1", EVALUATES, run.folder)
    run.log({"loss": 2.0}, env_step=2)
    (other,) = [w for w in list_writers(run.folder) if not w.main]
    page = os.path.join(other.folder, "writer.json")
    with open(page, encoding="utf-8") as file:
        about: dict[str, Any] = json.load(file)
    hour = 3600 * 10**9  # its clock is an hour behind: by time alone its row would lie before the run began
    with open(page, "w", encoding="utf-8") as file:
        json.dump({**about, "clock_offset": about["clock_offset"] - hour}, file)
    late = run.book.metrics(["eval/return"], x="env_step", exact=False)
    assert late["env_step"].to_pylist() == [2, 3]


def test_the_keeper_of_one_host_leaves_the_journal_of_another_alone(start: Start, on_host: OnHost) -> None:
    run = start()
    on_host("node-1", EVALUATES.replace("run.finish()", "import os; os._exit(0)"), run.folder)
    run.log({"loss": 1.0}, env_step=1)
    run.finish()
    left = [writer for writer in list_writers(run.folder) if not writer.main]
    assert [writer.host for writer in left] == ["node-1"]  # it cannot be judged from here whether it still writes
    assert run.book.metrics(["eval/return"], x="env_step")["eval/return"].to_pylist() == [8.0]
