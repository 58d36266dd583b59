"""Which runs lie in a place: the run set behind an address such as s3://bucket/prefix."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rollbook import manifest
from rollbook.errors import NotARunPlace, PlaceAway, RollbookError, RunNotFound
from rollbook.remote import check_remote, parts_of
from rollbook.runs.fields import FIELDS
from rollbook.runs.run_set import RunSet
from rollbook.storage.places import Place, perform
from rollbook.storage.places.opening import PAGE, open_place
from rollbook.storage.places.steps import Away, Get, Missing, Steps, Unknown
from rollbook.storage.places.views import folder_of

__all__ = ["open_address", "root_of"]


def open_address(url: str) -> RunSet:
    """All runs below an address: of a place, of a project in it, or one run.

    Raises:
      RunNotFound: there is no such project or run. NotARunPlace: nothing of rollbook lies there.
      PlaceError: the place cannot be used.
    """
    place, below = root_of(url)
    names = [name for name in below.split("/") if name]
    try:
        runs = _runs(place, names)
        pages = perform(_pages([f"{run}/run.json" for run in runs]), place)
    except (Away, Unknown) as err:
        raise PlaceAway(f"{url}: {err or 'no answer'}") from None
    problems: list[str] = []
    rows = []
    for run, page in zip(runs, pages, strict=True):
        row = _row(place.url, run, page, problems)
        if row is not None:
            rows.append(row)
    if names and not runs:
        raise RunNotFound(
            f"open({url!r}): there is nothing of that name. Look what there is with: rollbook ls {place.url}"
        )
    return RunSet(rows, url, problems)


def root_of(url: str) -> tuple[Place, str]:
    """The place that an address lies in, and what of the address is below its root.

    Raises:
      NotARunPlace: neither it nor what is above it is a place of runs.
    """
    url = check_remote(url)
    scheme, bucket, prefix = parts_of(url)
    names = prefix.split("/") if prefix else []
    least = len(names) if scheme == "file" and not names else 0
    for up in range(3):
        if len(names) - up < least:
            break
        head = "/".join(names[: len(names) - up])
        root = f"file://{head}" if scheme == "file" else f"{scheme}://{'/'.join(x for x in (bucket, head) if x)}"
        place = open_place(root, patience=20.0)
        try:
            place.get(PAGE)
        except Missing:
            continue
        except (Away, Unknown) as err:
            raise PlaceAway(f"{url}: {err or 'no answer'}. Look at the address and at the network") from None
        return place, "/".join(names[len(names) - up :])
    raise NotARunPlace(
        f"{url}: no runs of rollbook lie here: neither it nor what is above it has a {PAGE}. They come here with "
        "rollbook push, or init(remote=…)"
    )


def _runs(place: Place, names: list[str]) -> list[str]:
    if len(names) >= 2:
        run = "/".join(names[:2])
        try:
            place.get(f"{run}/run.json")
        except Missing:
            return []
        return [run]
    projects = names or [name for name in place.folders("") if not name.startswith("_")]
    return [f"{project}/{run}" for project in projects for run in place.folders(f"{project}/")]


def _pages(keys: list[str]) -> Steps[list[Any]]:
    answers: list[Any] = (yield [Get(key) for key in keys]) if keys else []
    return answers


def _row(url: str, run: str, page: Any, problems: list[str]) -> dict[str, Any] | None:
    if isinstance(page, Missing):  # pieces without a page: its first writer is about to put it, or it was removed
        return None
    if isinstance(page, Exception):
        problems.append(f"{url}/{run}: {page}")
        return None
    try:
        return {"path": folder_of(url, run), **fields_of(json.loads(page.data))}
    except (ValueError, RecursionError, RollbookError) as err:
        problems.append(f"{url}/{run}: run.json cannot be used: {err}")
        return None


def fields_of(page: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run as a row of a run set has them."""
    about, _ = manifest.clean(page)
    row = {name: about.get(name) for name in FIELDS}
    row["attempts"] = len(about.get("attempts") or ())
    for name in ("config", "summary", "total"):
        row[name] = row[name] if isinstance(row[name], dict) else {}
    row["tags"] = row["tags"] if isinstance(row["tags"], list) else []
    return row
