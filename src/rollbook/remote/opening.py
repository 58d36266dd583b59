"""Addresses of remotes, and opening one."""

from __future__ import annotations

import json

from rollbook.errors import ForeignRemote, NewerFormat, RemoteUnreachable
from rollbook.remote.local import FolderRemote
from rollbook.remote.remote import Remote
from rollbook.remote.steps import Away, Missing, Refused, Unknown, message_of
from rollbook.schema.addresses import REMOTE_PAGE, check_remote, parts_of

PAGE = REMOTE_PAGE

FORMAT = 1


def open_remote(url: str, *, patience: float = 40.0) -> Remote:
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
        return FolderRemote(url, prefix, patience)
    from rollbook.remote.objects import open_objects

    return open_objects(url, scheme, bucket, f"{prefix}/" if prefix else "", patience)


def claim(remote: Remote, *, make: bool) -> bool:
    """Check whether a remote holds runs; with `make`, prepare an empty one. Returns whether it holds runs now.

    Raises:
      ForeignRemote: it holds other files. NewerFormat: a later rollbook prepared it.
      RemoteUnreachable: no answer. RemoteError: it cannot be used.
    """
    try:
        for _ in range(3):
            try:
                stored_page = remote.get(PAGE)
            except Missing:
                stranger = next(iter(remote.listing("")), None)
                if stranger is not None and stranger.key != PAGE:
                    raise ForeignRemote(
                        f"{remote.url}: something else than runs lies here, such as {stranger.key!r}. Take a prefix of "
                        "its own, "
                        f"such as {remote.url}/runs"
                    ) from None
                if not make:
                    return False
                page = json.dumps({"format": FORMAT, "by": "rollbook"}).encode()
                try:
                    remote.put(PAGE, page, create=True)
                except (Refused, Unknown):
                    continue
                return True
            try:
                parsed = json.loads(stored_page.data)
                number = parsed["format"]
                if parsed["by"] != "rollbook" or type(number) is not int:
                    raise ValueError
            except (ValueError, KeyError, TypeError, RecursionError):
                raise ForeignRemote(
                    f"{remote.url}: a {PAGE} lies here that rollbook did not write. Take another prefix"
                ) from None
            if number > FORMAT:
                raise NewerFormat(
                    f"{remote.url} has format {number}; this rollbook reads up to {FORMAT}. Upgrade rollbook"
                )
            return True
    except (Away, Unknown) as err:
        raise RemoteUnreachable(message_of(err, remote.url)) from None
    raise RemoteUnreachable(f"{remote.url} gives no answer that can be relied on; try again")
