"""Where Acme stores the files of an experiment: `<path>/<unique id>/<subpaths>`."""

from __future__ import annotations

import os
import sys
import time

from rollbook.system.guard import tolerating

__all__ = ["get_unique_id", "process_path"]

_STARTED = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def get_unique_id() -> tuple[str, ...]:
    """The flag `--acme_id` if Acme defined and absl parsed it; else the start time and number of this process.

    Acme's own id only has the start in whole seconds, so processes started together shared their files.
    """
    flags = sys.modules.get("absl.flags")
    with tolerating(Exception):  # not defined, or the command line is not parsed yet
        if flags is not None and (given := flags.FLAGS.acme_id):
            return (str(given),)
    return (_STARTED,)


def process_path(
    path: str, *subpaths: str, ttl_seconds: int | None = None, backups: bool | None = None, add_uid: bool = True
) -> str:
    """The folder `<path>/<unique id>/<subpaths>`, created if missing; `~` is the home folder.

    `ttl_seconds` and `backups` are for the file systems of Acme's authors; they have no effect here or there.
    """
    del ttl_seconds, backups
    parts = [os.path.expanduser(path), *(get_unique_id() if add_uid else ()), *filter(None, subpaths)]
    folder = os.path.join(*parts)
    os.makedirs(folder, exist_ok=True)
    return folder
