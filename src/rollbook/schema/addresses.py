"""The remote to which a run is shipped: its address, and what the run folder stores about it. Standard library only.

    check_remote("s3://bucket/prefix/")            # "s3://bucket/prefix"
    begin(run_folder, "s3://bucket/prefix", home=True)
    origin_of(run_folder)                          # Origin(id="node7-3fa09c21", url="s3://bucket/prefix", home=True)

An origin is one folder that holds (a part of) a run; the remote has a manifest for each. Credentials are never part of
an address, and are never stored.
"""

from __future__ import annotations

import os
import re
import time

from rollbook.errors import BadInput
from rollbook.schema.run_files import RunFile
from rollbook.system.files import exists, is_folder, lexists, make_folders, pasted, read_json, write_json

_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "memory": "memory",
    "file": "file",
}
REMOTE_PAGE = "rollbook.json"
"""The file at the root of every remote that marks it as holding runs."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
LATE_SECONDS = 60.0
"""A shipment may be this late before its last report counts as outdated. Readers of a remote wait as long."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


class Origin:
    """A folder that is shipped.

    Attributes:
      id: its name in the remote.
      url: the remote.
      home: whether it is the run's home: run.json in the remote is written from here.
    """

    __slots__ = ("home", "id", "url")

    def __init__(self, id: str, url: str, home: bool) -> None:
        self.id, self.url, self.home = id, url, home

    def __repr__(self) -> str:
        return f"Origin({self.id!r}, {self.url!r}, home={self.home})"


def is_address(text: object) -> bool:
    """Whether this is a remote, or a project or run in one: it has a scheme, or is the path of such a folder."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    return isinstance(text, str) and (_ADDRESS.match(text) is not None or _is_in_remote(text))


def _is_in_remote(path: str) -> bool:
    """Whether a folder is a remote, or a project or run in one. Local folders of runs look different."""
    if not path.strip():
        return False
    folder = os.path.abspath(os.path.expanduser(path))
    if _is_remote(folder):
        return True
    above = os.path.dirname(folder)
    if is_folder(os.path.join(folder, "m")):
        return _is_remote(os.path.dirname(above))
    return _is_remote(above) and not is_folder(os.path.join(folder, "data"))


def _is_remote(folder: str) -> bool:
    return read_json(os.path.join(folder, REMOTE_PAGE)).get("by") == "rollbook"


def check_remote(url: object) -> str:
    """An address in its normal form.

    Raises:
      BadInput: it is not an address, or contains a credential.
    """
    text = os.fspath(url) if isinstance(url, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text.strip():
        raise BadInput(f"remote={url!r:.100}: pass an address such as 's3://bucket/prefix'")
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        return f"file://{os.path.abspath(os.path.expanduser(text.strip()))}"
    scheme = _SCHEMES.get(match[1].lower())
    if scheme is None:
        raise BadInput(
            f"remote={_without_secret(text)!r}: the kind of remote {match[1]}:// is not known. Use s3://, gs://, "
            "az:// or file://"
        )
    rest = match[2]
    if scheme == "file":
        return f"file://{os.path.abspath(os.path.expanduser(rest))}"
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or "?" in rest or "#" in rest:
        raise BadInput(
            f"remote={_without_secret(text)!r}: an address holds no credentials or options. They come from the "
            "environment, as for every tool of that cloud"
        )
    if not _BUCKET.fullmatch(bucket):
        raise BadInput(
            f"remote={text!r:.100}: {bucket!r:.60} cannot be the name of a bucket. Write {scheme}://bucket/prefix"
        )
    names = [name for name in prefix.split("/") if name]
    if any(name in (".", "..") or not name.isprintable() for name in names):
        raise BadInput(f"remote={text!r:.100}: the prefix holds '.', '..' or what cannot be printed")
    return f"{scheme}://{'/'.join([bucket, *names])}"


def _without_secret(text: str) -> str:
    head, _, _rest = text.partition("://")
    return f"{head}://…"


def parts_of(url: str) -> tuple[str, str, str]:
    """(scheme, bucket, prefix) of an address in normal form; ("file", "", its path) for a folder."""
    scheme, _, rest = url.partition("://")
    if scheme == "file":
        return scheme, "", rest
    bucket, _, prefix = rest.partition("/")
    return scheme, bucket, prefix


def run_and_base(folder: str) -> str:
    """<project>/<run> of a run's folder: its name in a remote."""
    head, run = os.path.split(os.path.abspath(folder))
    return f"{os.path.basename(head)}/{run}"


def begin(folder: str | os.PathLike[str], url: str, *, home: bool, host: str = "", new_id: bool = False) -> Origin:
    """Record that a run's folder is shipped to a remote. Its id stays; a new address replaces the former one.

    Args:
      folder: the run's folder.
      url: the remote.
      home: whether run.json in the remote is written from here.
      host: part of the id, for people who read ids. Default: this host's name.
      new_id: use a new id: the stored one belongs to the folder from which this one was copied.
    Raises:
      OSError: it cannot be written. BadInput: not the address of a remote.
    """
    url = check_remote(url)
    path = os.path.join(folder, RunFile.KEEPER, _NAME)
    own = os.path.dirname(path)
    known = origin_of(folder)
    if known is not None and not new_id and known.url == url and known.home == home:
        return known
    former = None if new_id else known or _origin_in(os.path.join(own, _OFF))
    if former is not None:
        id = former.id
    else:
        import socket

        name = "".join(c if c.isalnum() or c == "-" else "-" for c in (host or socket.gethostname()))[:40] or "host"
        id = f"{name}-{os.urandom(4).hex()}"
    make_folders(own, inside=folder)
    if former is None or former.url != url:  # data about another remote does not apply to this one
        for name in (RunFile.SHIPPED, RunFile.SHIPPED_NAMES):
            try:
                os.unlink(os.path.join(own, name))
            except FileNotFoundError:
                continue
    content = {"origin": id, "url": url, "home": home}
    if known is not None:
        write_json(path, content, durable=True)
    else:
        temporary = f"{path}.{os.urandom(4).hex()}.new"
        write_json(temporary, content, durable=True)
        try:  # if two processes begin at the same time, one wins
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            os.replace(temporary, path)
        finally:
            if lexists(temporary):
                os.unlink(temporary)
    written = origin_of(folder)
    if written is None:
        raise OSError(f"{path} was written and cannot be read")
    return written


def origin_of(folder: str | os.PathLike[str]) -> Origin | None:
    """The stored origin of a run's folder; None if it is not shipped."""
    return _origin_in(os.path.join(folder, RunFile.KEEPER, _NAME))


def pulled_from(folder: str | os.PathLike[str]) -> dict[str, object]:
    """What a pull stored with the files it downloaded; {} without a pull.

    `url` (of the remote), `covers` (rows that other folders shipped), `files` (path -> sha256 of each downloaded file)
    and `copy`: whether run.json was downloaded too, so that the folder is a copy and the run's home is elsewhere.
    """
    return read_json(_pulled_path(folder))


def is_copy(folder: str | os.PathLike[str]) -> bool:
    """Whether a run's folder was pulled from a remote and is not written here. Its run.json is never uploaded."""
    pulled = pulled_from(folder)
    if "copy" in pulled:
        return pulled["copy"] is True
    own = os.path.join(folder, RunFile.KEEPER)
    return bool(pulled) and not any(exists(os.path.join(own, name)) for name in (_NAME, _OFF))


def make_home(folder: str | os.PathLike[str]) -> None:
    """Record that a run continues in this folder, which may have been a copy until now.

    Raises:
      OSError: it cannot be written.
    """
    if is_copy(folder):
        write_json(_pulled_path(folder), {**pulled_from(folder), "copy": False}, durable=True)


def _pulled_path(folder: str | os.PathLike[str]) -> str:
    return os.path.join(folder, RunFile.KEEPER, RunFile.PULLED)


def end(folder: str | os.PathLike[str]) -> None:
    """Record that a run's folder is no longer shipped. The data in the remote stays.

    Raises:
      OSError: it cannot be written.
    """
    path = os.path.join(folder, RunFile.KEEPER, _NAME)
    try:
        os.replace(path, os.path.join(os.path.dirname(path), _OFF))
    except FileNotFoundError:
        return


_NAME, _OFF = "ship.json", "ship.off"


def _origin_in(path: str) -> Origin | None:
    stored = read_json(path)
    id, url = stored.get("origin"), stored.get("url")
    if not isinstance(id, str) or not isinstance(url, str) or not _BUCKET.fullmatch(id):
        return None
    try:
        return Origin(id, check_remote(url), stored.get("home") is True)
    except BadInput:
        return None


def backlog(folder: str | os.PathLike[str], *, since: float = 0.0) -> dict[str, object] | None:
    """The progress of shipping, from the shipper's last report; None if the folder is not shipped, {} before the first
    try.

    `time` (of the last try) and `since` (of the oldest waiting data), both unix seconds; `waiting_files`,
    `waiting_bytes`, `failures` (consecutive failed tries), `words` (the reason), `files`, `bytes` (in the remote),
    `done` (everything is shipped), `due` (unix seconds of the next promised try; None after the last). If a report is
    overdue by more than a minute, it is not trusted: `done` is False, the waiting amounts are unknown (None), and
    `late_seconds` is added.

    Args:
      folder: the run's folder.
      since: start of the current attempt in unix seconds: an earlier report does not cover rows that are logged now.
    """
    if origin_of(folder) is None:
        return None
    path = os.path.join(folder, RunFile.KEEPER, RunFile.SHIPPED)
    state = read_json(path)
    if not state:
        waited = time.time() - since if since else 0.0
        return {"done": False, "words": f"nothing was tried in {waited:.0f} s"} if waited > LATE_SECONDS else {}
    try:
        written, now = os.stat(path).st_mtime, time.time()
        due, began = float(state.get("due") or "inf"), float(state.get("time") or 0.0)
    except (OSError, TypeError, ValueError):
        return state
    # Each age uses one clock: the report's times are compared with each other, the file's age with now. A clock that
    # was set back makes ages negative, and nothing late.
    late = (now - written) - (due - began)
    if began < since and written < since:
        words = "nothing was shipped yet since this attempt began"
    elif late > LATE_SECONDS:
        words = (
            f"the last report is {now - written:.0f} s old, {late:.0f} s later than promised: the keeper that ships "
            "takes long, hangs or is gone. It is replaced while the run is written; else: "
            f"rollbook push {pasted(folder)}"
        )
    else:
        return state
    reason = str(state.get("words") or "")
    unknown = {"waiting_files": None, "waiting_bytes": None}
    return {
        **state,
        **unknown,
        "done": False,
        "words": f"{words} ({reason})" if reason else words,
        "late_seconds": late,
    }


def note_away(folder: str | os.PathLike[str], words: str) -> None:
    """Record, before anything was shipped, why the remote does not answer. Data about earlier shipments stays.

    Raises:
      OSError: it cannot be written.
    """
    path = os.path.join(folder, RunFile.KEEPER, RunFile.SHIPPED)
    now, known = time.time(), read_json(path)
    failures = known.get("failures")
    state = {"waiting_files": 0, "waiting_bytes": 0, **known, "time": now, "done": False, "words": words}
    state["since"] = known.get("since") or now
    state["failures"] = (failures if isinstance(failures, int) else 0) + 1
    write_json(path, state)
