"""Rebuilds a lost run.json from the writers' info files, the marks in the journal and the config file."""

from __future__ import annotations

import ast
import json
import os
import time

from rollbook.book.book import Book
from rollbook.errors import Damaged
from rollbook.journal import WriterInfo
from rollbook.schema import manifest
from rollbook.schema.run_files import RunFile, data_folder
from rollbook.system.files import open_inside, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.schema.shapes import RunJson


def rebuilt(folder: str, writers: list[WriterInfo]) -> RunJson:
    """The manifest of a run from its writers' info files; `recall` adds the data of the marks after sealing."""
    name, _, identity = os.path.basename(os.path.normpath(folder)).rpartition("-")
    known = {info.id: dict(info.about) for info in writers}
    gone = read_json(
        os.path.join(data_folder(folder), RunFile.WRITERS)
    )  # writers whose folders were removed after sealing
    for writer, about in gone.items():
        if isinstance(about, dict):
            known.setdefault(str(writer), about)
    pages = [about for about in known.values() if about and not about.get("keeper")] or [{}]
    numbers = sorted({_attempt(about) for about in pages})
    mains = {_attempt(about): about for about in sorted(pages, key=lambda about: about.get("main") is True)}
    started = {n: _began(mains[n]) for n in numbers}
    return {
        "format": manifest.FORMAT,
        "id": identity or name,
        "project": os.path.basename(os.path.dirname(os.path.abspath(folder))),
        "name": name or identity,
        "nonce": next((str(about["nonce"]) for about in pages if about.get("nonce")), ""),
        "status": "running",
        "created": min(started.values()),
        "ended": None,
        "seed": None,
        "group": None,
        "tags": ["repaired"],
        "notes": "run.json was lost; this page was made by rollbook repair",
        "config": _config(folder),
        "summary": {},
        "clocks": list(dict.fromkeys(str(clock) for about in pages for clock in about.get("clocks") or ())),
        "host": next((str(about["host"]) for about in pages if about.get("host")), ""),
        "boot_id": next((str(about["boot_id"]) for about in pages if about.get("boot_id")), ""),
        "attempts": [
            {
                "n": n,
                "parent": numbers[i - 1] if i else None,
                "cut": {"time": 2**62, "writers": {}} if i else None,
                "started": started[n],
                "ended": None,
                "status": "running",
                "writer": str(mains[n].get("writer") or ""),
                "host": str(mains[n].get("host") or ""),
                "offsets": {},
            }
            for i, n in enumerate(numbers)
        ],
    }


def recall(folder: str) -> list[str]:
    """Write the data of the marks into a rebuilt manifest: rewinds, ends of attempts, the summary."""
    about = manifest.read(folder)
    entries = {entry["n"]: entry for entry in about["attempts"]}
    rewinds = 0
    for mark in Book(folder).marks():
        entry = entries.get(mark["attempt"])
        payload = mark["payload"]
        if entry is None:
            continue
        if mark["mark"] == "rewind" and (payload.get("parent") is None or payload["parent"] in entries):
            entry.update(
                {"parent": payload.get("parent"), "cut": payload.get("cut"), "checkpoint": payload.get("checkpoint")}
            )
            rewinds += 1
        elif mark["mark"] == "summary":
            manifest.follow_summary(about["summary"], payload)
        elif mark["mark"] == "final" and mark["writer"] == entry["writer"] and isinstance(payload.get("status"), str):
            entry["status"] = payload["status"]
            if isinstance(payload.get("failure"), dict):
                entry["failure"] = payload["failure"]
            if mark["attempt"] == max(entries):
                about["status"] = payload["status"]
    manifest.write(folder, about, durable=True)
    return [f"{rewinds} rewinds were found again" if rewinds != 1 else "1 rewind was found again"] if rewinds else []


def _attempt(about: dict[str, object]) -> int:
    number = about.get("attempt")
    return number if type(number) is int and number > 0 else 1


def _began(about: dict[str, object]) -> float:
    try:
        return float(int(str(about.get("writer"))[:8], 16))  # a writer's id begins with its unix time
    except ValueError:
        return time.time()


def _config(folder: str) -> dict[str, object]:
    """The assignments of total_config.py, read as literals; {} if it contains anything else."""
    try:
        with open(open_inside(folder, "total_config.py"), encoding="utf-8") as file:
            (statement,) = ast.parse(file.read()).body
        config = ast.literal_eval(statement.value) if isinstance(statement, ast.Assign) else {}
        plain = json.loads(json.dumps(config, default=repr))
    except (OSError, Damaged, ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return {}
    return plain if isinstance(plain, dict) else {}
