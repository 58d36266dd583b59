"""The small JSON files of a run's folder as types: what stands in run.json, in plan.json, and of a process.

For the type checker and for readers of the code; nothing loads this while a program runs. The files themselves are
read and written by `manifest`, `keeper` and `journal`; docs/internals.md lists the files.
"""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["Attempt", "CheckpointEntry", "CutJson", "Identity", "MediaLedger", "PixelsNote", "Plan", "RunJson"]


class CutJson(TypedDict, total=False):
    """Up to where a parent counts; see `manifest.Cut`.

    Attributes:
      time: unix ns.
      writers: {writer: {lane: last seq that counts}}.
      checkpoint: the id of the one that was restored; None where the cut is none of a checkpoint.
    """

    time: int
    writers: dict[str, dict[str, int]]
    checkpoint: str | None


class Attempt(TypedDict, total=False):
    """One life of a run, as run.json lists it.

    Attributes:
      n: its number, from 1.
      parent, cut: which life it went on from, and up to where that one counts; None for the first.
      started, ended: unix seconds.
      last: unix ns of a clean end.
      writer: the id of its main writer.
      offsets: clock -> what is added to its readings.
      origin: what it was started with, once a later life took its place; see `manifest.origin`.
      failure: what ended it before its time: {"type", "message", "traceback"}, and "stderr" where that is known.
    """

    n: int
    parent: int | None
    cut: CutJson | None
    checkpoint: str | None
    started: float | None
    ended: float | None
    last: int | None
    status: str
    writer: str
    host: str | None
    offsets: dict[str, int]
    origin: dict[str, Any]
    failure: dict[str, Any]


class RunJson(TypedDict, total=False):
    """run.json as `manifest.read` gives it: every known field of its type; those up to `drops` are always there.

    Attributes:
      status: as last written: "running", "finished", "killed" or "crashed".
      attempts: its lives.
      total: how far the run will go, by clock.
      drops: the bill: cause -> how often something was refused or dropped.
      remarks: cause -> how often something was said that cost no row or value.
      created, ended: unix seconds.
      x: the clock of charts.
      parent: the id of the run that began this one. forked_from: {"run", "at"} of the one it goes on from.
      remote: the place it is shipped to.
      revision: grows whenever run.json is written: tells an old copy from what came later (`manifest.progress`).
      writers_died: the keepers' word: writer -> how many rows of it were lost with a machine.
      edited: what of `manifest.EDITABLE` a person changed since.
      results: {"attempt": n, "values": {…}}, what the run came to; see `manifest.results`.
      part: {"of", "home", "since"} where this folder keeps what one host wrote of a run that lies elsewhere.
      imported: of a run that another tool wrote: from which files.
    """

    id: str
    project: str
    name: str
    nonce: str
    status: str
    attempts: list[Attempt]
    config: dict[str, Any]
    summary: dict[str, Any]
    notes: str
    tags: list[str]
    clocks: list[str]
    total: dict[str, int]
    drops: dict[str, int]

    remarks: dict[str, int]
    format: int | None
    rollbook: str
    created: float | None
    ended: float | None
    seed: int | None
    group: str | None
    job_type: str | None
    made_by: str | None
    x: str
    parent: Any
    forked_from: object
    remote: str
    revision: int
    host: str | None
    boot_id: str | None
    rendezvous: str | None
    edited: list[str]
    writers_died: dict[str, int]
    results: dict[str, Any]
    part: dict[str, Any]
    imported: dict[str, object]

    command: list[str]
    cwd: str
    python: str
    executable: str
    platform: str
    git: dict[str, object]
    packages: dict[str, str]
    environment: dict[str, object]


class Plan(TypedDict, total=False):
    """data/keeper/plan.json, what a run asks of its keeper.

    Attributes:
      sinks: {"name": …, option: value}, those that the keeper makes; its own options may stand under "options".
      x: the clock of sinks that have one axis.
      host_seconds: how often the host is looked at; 0 for never.
      rules: {"name": …, option: value}.
    """

    sinks: list[dict[str, Any]]
    x: str
    host_seconds: float
    rules: list[dict[str, object]]


class Identity(TypedDict):
    """What tells a process from all others, by which it is known to live; see `ground.liveness`. "": not known there.

    Attributes:
      boot_id: of the system's start. machine: of the installation.
      pid_ns: the namespace that pid is of.
      start_time: of the process, in the words of its system.
    """

    boot_id: str
    machine: str
    pid_ns: str
    pid: int
    start_time: str
    host: str


class CheckpointEntry(TypedDict):
    """One checkpoint in ckpt/.index.json.

    Attributes:
      name: of its file in ckpt/; None where it was registered and somebody else wrote it.
      path: relative to the run's folder where it lies inside.
      clocks: clock -> where training stood.
    """

    id: str
    name: str | None
    path: str
    score: float | None
    higher_is_better: bool
    format: str
    clocks: dict[str, int]


class PixelsNote(TypedDict):
    """What stands beside raw pixels in media/.spool; checked when it is read.

    Attributes:
      path: of the file to be made, below the run's folder.
      channels: 1, 3 or 4, a byte each. fps: of a film; 0 for a picture.
    """

    format: int
    kind: str
    path: str
    width: int
    height: int
    channels: int
    frames: int
    fps: float


class MediaLedger(TypedDict):
    """How the encoding of a run's pictures and films stands.

    Attributes:
      files, bytes: made here and still there. waiting: in the spool.
      errors: the last five, in words.
    """

    files: int
    bytes: int
    encoded: int
    evicted: int
    evicted_bytes: int
    failed: int
    errors: list[str]
    waiting: int
    keep_files: int
    keep_bytes: int
