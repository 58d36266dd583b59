"""The small JSON files of a run folder as types: run.json, plan.json, and the identity of a process.

For the type checker and for readers of the code; not loaded at run time. `manifest`, `keeper` and `journal` read and
write the files; docs/internals.md lists the files.
"""

from __future__ import annotations

from typing import Any, TypedDict


class CutJson(TypedDict, total=False):
    """The end of the effective part of a parent attempt; see `manifest.Cut`.

    Attributes:
      moment: unix ns of the last row before it, for people: it decides nothing.
      writers: {writer: {lane: last effective seq}}; of a writer without a name, all rows count.
      time: in cuts of an older rollbook, unix ns: of a writer without a name, rows up to this time count.
      checkpoint: the id of the restored checkpoint; None for a cut without one.
    """

    moment: int
    time: int
    writers: dict[str, dict[str, int]]
    checkpoint: str | None


class Attempt(TypedDict, total=False):
    """One attempt of a run, as listed in run.json.

    Attributes:
      n: its number, from 1.
      parent, cut: the attempt it continues, and the end of that one's effective part; None for the first.
      started, ended: unix seconds.
      last: unix ns of a clean end.
      writer: the id of its main writer.
      offsets: clock -> what is added to its readings.
      origin: how it was started, stored when a later attempt begins; see `manifest.origin`.
      failure: what ended it early: {"type", "message", "traceback"}, and "stderr" if known.
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
    """run.json as returned by `manifest.read`: every known field has its type; the fields up to `drops` always exist.

    Attributes:
      status: as last written: "running", "finished", "killed" or "crashed".
      attempts: its attempts.
      total: planned length of the run, by clock. reached: its clocks at its end.
      drops: the bill: cause -> how often something was refused or dropped.
      remarks: cause -> number of warnings without loss of data.
      created, ended: unix seconds.
      x: the clock of charts.
      parent: the id of the run that started this one. forked_from: the checkpoint from which it started, as
        {"checkpoint", "path"}, or what was given for it.
      remote: the remote to which it is shipped.
      revision: grows whenever run.json is written, so that an old copy can be recognised (`manifest.progress`).
      writers_died: set by keepers: writer -> number of its rows that were lost with a machine.
      edited: the fields of `manifest.EDITABLE` that a person has changed.
      results: {"attempt": n, "values": {…}}, the results of the run; see `manifest.results`.
      retention: of rollouts: `keep_bytes`, and once something was trimmed `bytes` (what is left) and how many
        rollouts lost their `tokens`, `text` and `answers`.
      part: {"of", "home", "since"} if this folder is one host's part of a run whose folder is elsewhere.
      imported: for a run that another tool wrote: its source files, and where its settings come from.
      algo, env, folder: the algorithm, the environment and the parts of the path of such a run; see `formats.paths`.
      from_path: which of its fields only its path says, such as "algo" and "config.lr".
      hydra: for a job of Hydra: its name, overrides and folder.
      door: through what its program opened it, where that is not `rollbook.init`: "wandb", "lightning", ….
      native: folders, seen from the run's, in which the program's own files of this training lie.
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
    reached: dict[str, int]
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
    algo: str | None
    env: str | None
    folder: dict[str, str]
    from_path: list[str]
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
    retention: dict[str, Any]
    part: dict[str, Any]
    imported: dict[str, object]
    hydra: dict[str, object]
    native: list[str]
    door: str

    command: list[str]
    cwd: str
    python: str
    executable: str
    platform: str
    git: dict[str, object]
    packages: dict[str, str]
    environment: dict[str, object]


class Plan(TypedDict, total=False):
    """data/keeper/plan.json: the work that a run gives its keeper.

    Attributes:
      sinks: {"name": …, option: value}, those that the keeper creates; sink options may be under "options".
      x: the clock of sinks with one axis.
      host_seconds: interval of host samples; 0 for never.
      rules: {"name": …, option: value}.
    """

    sinks: list[dict[str, Any]]
    x: str
    host_seconds: float
    rules: list[dict[str, object]]


class CheckpointEntry(TypedDict):
    """One checkpoint in ckpt/.index.json.

    Attributes:
      name: its file name in ckpt/; None if it was registered and written by others.
      path: relative to the run's folder if it is inside.
      clocks: clock -> reading at the save.
    """

    id: str
    name: str | None
    path: str
    score: float | None
    higher_is_better: bool
    format: str
    clocks: dict[str, int]
