"""Check whether a remote can be used for a run. `init` starts it in a separate process. Answers in JSON on stdout.

python -m rollbook.remote.checksums URL PROJECT/RUN NONCE ORIGIN PATIENCE [takeover]
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from rollbook.errors import RemoteUnreachable, RollbookError, RunExists, RunIsLive
from rollbook.remote import claim, open_remote, perform
from rollbook.remote.commit import Commits, NotShipped
from rollbook.remote.remote import Remote
from rollbook.remote.run_json import run_json_of
from rollbook.remote.steps import Away, Missing, Refused, Unknown, message_of
from rollbook.schema.status import STALE_SECONDS
from rollbook.system.guard import tolerating


def check(url: str, run: str, nonce: str, origin: str, *, takes_over: bool = False, patience: float = 8.0) -> None:
    """Check a remote, and prepare it for runs if it is empty.

    Args:
      run: <project>/<run>. nonce: the run's. origin: of the folder that continues it; "" for a new run.
    Raises:
      RemoteError, RunExists, RunIsLive: it cannot be used so. RemoteUnreachable: no answer.
    """
    remote = open_remote(url, patience=patience)
    claim(remote, make=True)
    try:
        try:
            there = run_json_of(remote.get(f"{run}/run.json").data)
        except Missing:
            return
        if there.nonce != nonce:
            raise RunExists(
                f"{url}/{run} is another run of that name (on {there.host}). Choose another name, id or remote"
            )
        if takes_over or there.status != "running":
            return
        others = {id: m for id, m in perform(Commits(f"{run}/", "").origins(), remote).items() if id != origin}
        moment = _store_time(remote, run) if others else 0.0
        for manifest in others.values():
            if manifest.about.get("home") and moment - manifest.promised_until("written") < STALE_SECONDS:
                raise RunIsLive(
                    f"{url}/{run} is being written on {manifest.about.get('host')}. Wait for it, or use "
                    "resume='takeover'"
                )
    except (Away, Unknown, NotShipped) as err:
        raise RemoteUnreachable(message_of(err, url)) from None


def _store_time(remote: Remote, run: str) -> float:
    """Now in unix seconds by the clock of the store, which stamps the manifests: this host's may be wrong by hours."""
    key = f"{run}/now.{os.urandom(6).hex()}"
    with tolerating(Away, Unknown, Refused):
        remote.put(key, b"?", create=True)
        stamped = [entry.modified for entry in remote.listing(key)]
        remote.delete(key)
        if stamped and stamped[0]:
            return stamped[0]
    return time.time()


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    url, run, nonce, origin, patience, *more = sys.argv[1:] if arguments is None else arguments
    answer_in_json(lambda: check(url, run, nonce, origin, takes_over="takeover" in more, patience=float(patience)))
    return 0


def answer_in_json(work: Callable[[], object]) -> None:
    """Do the work, and print whether it succeeded, or its error."""
    answer: dict[str, object] = {"ok": True}
    try:
        work()
    except RollbookError as err:
        answer = {"ok": False, "error": type(err).__name__, "words": str(err)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    sys.exit(main())
