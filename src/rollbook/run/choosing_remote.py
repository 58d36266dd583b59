"""Decides in `init` where a run is shipped: which remote is asked for, and whether it can be used.

A separate process checks the remote, so that the training process does not load the code that talks to stores.
"""

from __future__ import annotations

import os
import sys

from rollbook.errors import BadInput
from rollbook.schema.addresses import begin, check_remote, end, make_home, note_away, origin_of
from rollbook.system.files import pasted
from rollbook.system.guard import ours
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from rollbook.errors import RollbookError
    from rollbook.schema.manifest import RunJson
    from rollbook.system.bill import Bill


def requested_remote(remote: object) -> str | Literal[False] | None:
    """The address from the caller or $ROLLBOOK_REMOTE; False for nowhere, None if neither is set.

    Raises:
      BadInput: it is not the address of a remote.
    """
    if remote is None:
        given = os.environ.get("ROLLBOOK_REMOTE")
        if given is None:
            return None
        return check_remote(given) if given.strip() else False
    if remote is False or remote == "":
        return False
    if remote is True:
        raise BadInput("remote=True names no remote: give its address, such as remote='s3://bucket/prefix'")
    return check_remote(remote)


def remote_to_go_on(asked: str | Literal[False] | None, about: RunJson) -> str | Literal[False] | None:
    """The remote of a run that is continued: the requested one, else its former one."""
    return check_remote(about.remote) if asked is None and about.remote else asked


def check_usable(url: str, run: str, nonce: str, folder: str | None, takes_over: bool, bill: Bill) -> str:
    """Check whether a remote can be used for a run. A remote that does not answer is counted; it may answer later.

    Args:
      run: <project>/<run>.
      nonce: the run's nonce.
      folder: the folder of a run that is continued.
      takes_over: another process may be writing it.
    Returns:
      Why it does not answer, "" if it does.
    Raises:
      RemoteError, RunExists, RunIsLive, NotARun: it cannot be used, or it holds another run of that name (or the same
        run,
      written elsewhere). MissingExtra: the package for such remotes is not installed.
    """
    from rollbook.errors import RemoteUnreachable

    _need_client(url)
    origin = origin_of(folder) if folder is not None else None
    answer = _ask(
        "checksums",
        [
            url,
            run,
            nonce,
            origin.id if origin is not None else "",
            str(TUNING.remote_patience_seconds),
            "takeover" if takes_over else "",
        ],
        TUNING.remote_seconds,
    )
    if answer is None:
        return ""
    raised, words = answer
    if raised is not RemoteUnreachable:
        raise raised(f"init(remote={url!r}): {words}")
    bill.count("remote", message=f"{words}. The run is kept here and shipped when the remote answers")
    return words


def bring_run(url: str, project: str, name: str, run_id: str, root: str, *, takes_over: bool) -> None:
    """Download the run with this id, which is to be resumed and is not here, from its remote, if it is there.

    Raises:
      RunIsLive: it is written elsewhere. RemoteUnreachable: no answer, so its existence is unknown. RemoteError,
      Damaged, RunExists: it cannot be downloaded. MissingExtra: the package for such remotes is not installed.
    """
    _need_client(url)
    more = ["takeover"] if takes_over else []
    answer = _ask(
        "fetching", [url, project, name, run_id, root, str(TUNING.remote_patience_seconds), *more], TUNING.bring_seconds
    )
    if answer is not None:
        raised, words = answer
        here = os.path.join(root, project)
        by_hand = f"rollbook pull {pasted(f'{url}/{project}/{name}-{run_id}')} --dir {pasted(root)}"
        raise raised(
            f"init(run_id={run_id!r}, remote={url!r}): {words}. Run {run_id!r} is not in {here}, so it was looked for "
            f"there. To bring it by hand: {by_hand}; to begin another "
            "run: leave out resume= and run_id="
        )


def _need_client(url: str) -> None:
    if not url.startswith("file://"):
        from rollbook.system.optional import installed

        installed("obstore", extra="cloud", why=f"remote={url!r}")


def _ask(module: str, arguments: list[str], seconds: float) -> tuple[type[RollbookError], str] | None:
    """Run a module of `rollbook.remote`; returns (an error, its message), or None on success."""
    from rollbook import errors

    answer = _answer_of(module, arguments, seconds)
    if answer is None:
        return None
    raised = getattr(errors, answer[0], errors.RemoteError)
    is_error = isinstance(raised, type) and issubclass(raised, errors.RollbookError)
    return raised if is_error else errors.RemoteError, answer[1]


def _answer_of(module: str, arguments: list[str], seconds: float) -> tuple[str, str] | None:
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
            [*command_of(f"rollbook.remote.{module}"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
        answer = json.loads(done.stdout or b"null")
    except subprocess.TimeoutExpired:
        return "RemoteUnreachable", f"{arguments[0]} gave no answer within {seconds:.0f} s"
    except ours(OSError, ValueError) as raised:
        return "RemoteUnreachable", f"{arguments[0]} could not be looked at ({type(raised).__name__})"
    if isinstance(answer, dict) and answer.get("ok") is True:
        return None
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return answer["error"], str(answer.get("words"))
    return (
        "RemoteUnreachable",
        f"{arguments[0]} could not be looked at: {done.stderr.decode('utf-8', 'replace')[-200:]}",
    )


def settle_remote(folder: str, url: str | Literal[False] | None, away: str = "") -> None:
    """Store in the run's folder where it is shipped, or that it is no longer shipped.

    Args:
      away: why the remote does not answer, "" if it does.
    Raises:
      OSError: the folder cannot be written.
    """
    make_home(folder)
    if isinstance(url, str):
        begin(folder, url, home=True)
        if away:
            note_away(folder, away)
    else:
        end(folder)
