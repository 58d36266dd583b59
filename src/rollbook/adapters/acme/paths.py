"""Where Acme puts the files of an experiment: `<path>/<unique id>/<subpaths>`."""

from __future__ import annotations

import os
import sys
import time

from rollbook.ground.foreign import ours

__all__ = ["get_unique_id", "process_path"]

_STARTED = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def get_unique_id() -> tuple[str, ...]:
    """The flag `--acme_id` if Acme defined and absl parsed it; else start of this process and its number.

    Acme's own has the start in whole seconds alone, so that processes started together shared their files.
    """
    flags = sys.modules.get("absl.flags")
    if flags is not None:
        try:
            given = flags.FLAGS.acme_id
        except ours(Exception):  # not defined, or the command line is not parsed yet
            given = None
        if given:
            return (str(given),)
    return (_STARTED,)


def process_path(
    path: str, *subpaths: str, ttl_seconds: int | None = None, backups: bool | None = None, add_uid: bool = True
) -> str:
    """The folder `<path>/<unique id>/<subpaths>`, made if it was not there; `~` stands for the home folder.

    `ttl_seconds` and `backups` are for the file systems of Acme's authors; they do nothing, there as here.
    """
    del ttl_seconds, backups
    parts = [os.path.expanduser(path), *(get_unique_id() if add_uid else ()), *filter(None, subpaths)]
    folder = os.path.join(*parts)
    os.makedirs(folder, exist_ok=True)
    return folder
