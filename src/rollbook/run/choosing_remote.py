"""Where a run is shipped to, as `init` settles it: which place is asked for, and whether it can be used.

The look at the place is taken by a process of its own: what speaks to stores is not loaded into the training process.
"""

from __future__ import annotations

import os
import sys

from rollbook.errors import BadInput
from rollbook.foreign import is_foreign
from rollbook.remote import begin, check_remote, end, origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from rollbook.bill import Bill
    from rollbook.shapes import RunJson

__all__ = ["asked_place", "check_place", "place_to_go_on", "settle_place"]

_SECONDS = 30.0
_PATIENCE = 8.0
"""How long a look at the place may take, and for how long a call is tried again where there is no answer."""


def asked_place(remote: object) -> str | Literal[False] | None:
    """The address that the caller or $ROLLBOOK_REMOTE asks for; False for nowhere, None if nobody says.

    Raises:
      BadInput: it is no address of a place.
    """
    if remote is None:
        given = os.environ.get("ROLLBOOK_REMOTE")
        if given is None:
            return None
        return check_remote(given) if given.strip() else False
    if remote is False or remote == "":
        return False
    if remote is True:
        raise BadInput("remote=True: say where, such as remote='s3://bucket/prefix'")
    return check_remote(remote)


def place_to_go_on(asked: str | Literal[False] | None, about: RunJson) -> str | Literal[False] | None:
    """The place of a run that is continued: what is asked for, else where it was shipped."""
    former = about.get("remote")
    if asked is None and isinstance(former, str):
        return check_remote(former)
    return asked


def check_place(url: str, run: str, nonce: str, folder: str | None, takes_over: bool, bill: Bill) -> None:
    """Look whether a place can be used for a run. One that gives no answer is counted; it may answer later.

    Args:
      run: <project>/<run>.
      nonce: the run's.
      folder: of a run that is continued.
      takes_over: another process may be writing it.
    Raises:
      PlaceError, RunExists, RunIsLive, NotARun: it cannot, or another run (or the same one, written elsewhere) lies
      there. MissingExtra: the package for such places is not installed.
    """
    from rollbook import errors

    assert isinstance(url, str)
    if not url.startswith("file://"):
        from rollbook._optional import installed

        installed("obstore", extra="cloud", why=f"remote={url!r}")
    origin = origin_of(folder) if folder is not None else None
    said = _ask(
        [url, run, nonce, origin.id if origin is not None else "", str(_PATIENCE), "takeover" if takes_over else ""]
    )
    if said is None:
        return
    kind, words = said
    raised = getattr(errors, kind, errors.PlaceError)
    if isinstance(raised, type) and issubclass(raised, errors.RollbookError) and raised is not errors.PlaceAway:
        raise raised(f"init(remote={url!r}): {words}")
    bill.count("remote", message=f"{words}. The run is kept here and shipped when the place answers")


def _ask(arguments: list[str]) -> tuple[str, str] | None:
    """(name of an error, its words), or None if all is well."""
    import json
    import subprocess

    from rollbook.keeper.child import command_of
    from rollbook.keeper.launch import PATH_VARIABLE

    environment = dict(os.environ)
    environment[PATH_VARIABLE] = os.pathsep.join(os.path.abspath(p) for p in sys.path if isinstance(p, str))
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    try:
        done = subprocess.run(
            [*command_of("rollbook.ship.check"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
        said = json.loads(done.stdout or b"null")
    except subprocess.TimeoutExpired:
        return "PlaceAway", f"{arguments[0]} gave no answer within {_SECONDS:.0f} s"
    except (OSError, ValueError) as raised:
        if is_foreign(raised):
            raise
        return "PlaceAway", f"{arguments[0]} could not be looked at ({type(raised).__name__})"
    if isinstance(said, dict) and said.get("ok") is True:
        return None
    if isinstance(said, dict) and isinstance(said.get("error"), str):
        return said["error"], str(said.get("words"))
    return "PlaceAway", f"{arguments[0]} could not be looked at: {done.stderr.decode('utf-8', 'replace')[-200:]}"


def settle_place(folder: str, url: str | Literal[False] | None) -> None:
    """Write down in the run's folder where it is shipped to, or that it is not shipped any more.

    Raises:
      OSError: the folder cannot be written.
    """
    if isinstance(url, str):
        begin(folder, url, home=True)
    else:
        end(folder)
