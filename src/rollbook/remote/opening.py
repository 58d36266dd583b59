"""Addresses of remotes, and opening one."""

from __future__ import annotations

import json

from rollbook.errors import NewerFormat, NotARunPlace, PlaceAway
from rollbook.ground.addresses import PLACE_PAGE, check_remote, parts_of
from rollbook.remote.local import FolderPlace
from rollbook.remote.place import Place
from rollbook.remote.steps import Away, Missing, Refused, Unknown, said_of

__all__ = ["PAGE", "claim", "open_place"]

PAGE = PLACE_PAGE

FORMAT = 1


def open_place(url: str, *, patience: float = 40.0) -> Place:
    """The remote behind an address: s3://, gs://, az://, memory://, file:// or a path.

    It sends no request yet.

    Args:
      patience: seconds that a call is retried for if the remote does not answer.
    Raises:
      BadInput: not the address of a remote. MissingExtra: obstore is not installed.
    """
    url = check_remote(url)
    scheme, bucket, prefix = parts_of(url)
    if scheme == "file":
        return FolderPlace(url, prefix, patience)
    from rollbook.remote.objects import open_objects

    return open_objects(url, scheme, bucket, f"{prefix}/" if prefix else "", patience)


def claim(place: Place, *, make: bool) -> bool:
    """Check whether a remote holds runs; with `make`, prepare an empty one. Returns whether it holds runs now.

    Raises:
      NotARunPlace: it holds other files. NewerFormat: a later rollbook prepared it.
      PlaceAway: no answer. PlaceError: it cannot be used.
    """
    try:
        for _ in range(3):
            try:
                stored_page = place.get(PAGE)
            except Missing:
                stranger = next(iter(place.listing("")), None)
                if stranger is not None and stranger.key != PAGE:
                    raise NotARunPlace(
                        f"{place.url}: something else than runs lies here, such as {stranger.key!r}. Take a prefix of "
                        "its own, "
                        f"such as {place.url}/runs"
                    ) from None
                if not make:
                    return False
                page = json.dumps({"format": FORMAT, "by": "rollbook"}).encode()
                try:
                    place.put(PAGE, page, create=True)
                except (Refused, Unknown):
                    continue
                return True
            try:
                said = json.loads(stored_page.data)
                number = said["format"]
                if said["by"] != "rollbook" or type(number) is not int:
                    raise ValueError
            except (ValueError, KeyError, TypeError, RecursionError):
                raise NotARunPlace(
                    f"{place.url}: a {PAGE} lies here that rollbook did not write. Take another prefix"
                ) from None
            if number > FORMAT:
                raise NewerFormat(
                    f"{place.url} has format {number}; this rollbook reads up to {FORMAT}. Upgrade rollbook"
                )
            return True
    except (Away, Unknown) as err:
        raise PlaceAway(said_of(err, place.url)) from None
    raise PlaceAway(f"{place.url} gives no answer that can be relied on; try again")
