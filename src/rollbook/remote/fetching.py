"""Fetch a run that is to be resumed from its remote. `init` starts it in a separate process when the run is not in its
folder. Answers in JSON on stdout.

python -m rollbook.remote.fetching URL PROJECT NAME RUN_ID ROOT PATIENCE [takeover]
"""

from __future__ import annotations

import sys

from rollbook.errors import RemoteError, RemoteUnreachable
from rollbook.remote import Remote, open_remote, perform
from rollbook.remote.checksums import answer_in_json, check
from rollbook.remote.commit import Commits
from rollbook.remote.pull import pull
from rollbook.remote.run_json import run_json_of
from rollbook.remote.steps import Away, Missing, Unknown, message_of
from rollbook.system.files import pasted
from rollbook.system.tuning import TUNING


def bring(
    url: str, project: str, name: str, run_id: str, root: str, *, takes_over: bool = False, patience: float = 8.0
) -> bool:
    """Pull the run with that id into <root>/<project>; False if the remote has none.

    Raises:
      RunIsLive: it is being written elsewhere. RemoteUnreachable: no answer. RemoteError: it is too large for this.
      Damaged: a piece does not match its manifest.
    """
    remote = open_remote(url, patience=patience)
    try:
        run, nonce = _find(remote, project, name, run_id)
        if not run:
            return False
        check(url, run, nonce, "", takes_over=takes_over, patience=patience)
        shipped = perform(Commits(f"{run}/", "").origins(), remote)
    except (Away, Unknown) as err:
        raise RemoteUnreachable(message_of(err, url)) from None
    size = sum(file.size for origin in shipped.values() for file in origin.files.values())
    if size > TUNING.fetched_bytes:
        raise RemoteError(
            f"{url}/{run} has {size / 1e9:,.1f} GB, more than init loads. Bring it here first: "
            f"rollbook pull {pasted(f'{url}/{run}')} --dir {pasted(root)}"
        )
    pull(remote, run, root)
    return True


def _find(remote: Remote, project: str, name: str, run_id: str) -> tuple[str, str]:
    """(<project>/<run>, its nonce) of the run of an id; ("", "") if there is none."""
    likely = f"{name}-{run_id}"
    others = (run for run in remote.folders(f"{project}/") if run.endswith(f"-{run_id}") and run != likely)
    for run in (likely, *others):
        try:
            about = run_json_of(remote.get(f"{project}/{run}/run.json").data)
        except Missing:
            continue
        if about.id == run_id:
            return f"{project}/{run}", about.nonce
    return "", ""


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    url, project, name, run_id, root, patience, *more = sys.argv[1:] if arguments is None else arguments
    takes_over = "takeover" in more
    answer_in_json(lambda: bring(url, project, name, run_id, root, takes_over=takes_over, patience=float(patience)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
