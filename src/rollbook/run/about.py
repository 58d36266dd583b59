"""run.json: the identity and status of a run, read and replaced as a whole."""

from __future__ import annotations

import json
import os

from rollbook.errors import NewerFormat, NotARun
from rollbook.journal.format import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["new_id", "read_about", "write_about"]

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """Eight letters and digits that no other run has (40 random bits)."""
    return "".join(_LETTERS[byte & 31] for byte in os.urandom(8))


def read_about(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a run's run.json.

    Raises:
      NotARun: there is none, or it cannot be read.
      NewerFormat: a later rollbook wrote it.
    """
    path = os.path.join(folder, "run.json")
    try:
        with open(path, encoding="utf-8") as file:
            about = json.load(file)
    except FileNotFoundError:
        raise NotARun(
            f"{os.fspath(folder)} has no run.json. A folder of runs? Try: rollbook ls {os.fspath(folder)}"
        ) from None
    except (OSError, ValueError) as err:
        raise NotARun(f"{path} cannot be read: {err}. Try: rollbook repair {os.fspath(folder)}") from None
    if (
        not isinstance(about, dict)
        or not isinstance(about.get("id"), str)
        or not isinstance(about.get("attempts"), list)
        or any(not isinstance(entry, dict) or type(entry.get("n")) is not int for entry in about["attempts"])
    ):
        raise NotARun(
            f"{path} does not describe a run: no id or attempts in it. Try: rollbook repair {os.fspath(folder)}"
        )
    if not isinstance(about.get("format"), int) or about["format"] > VERSION:
        raise NewerFormat(
            f"{os.fspath(folder)} has format {about.get('format')!r}; this rollbook reads up to {VERSION}. Upgrade "
            f"rollbook."
        )
    return about


def write_about(folder: str | os.PathLike[str], about: dict[str, Any]) -> None:
    """Replace run.json atomically.

    Raises:
      OSError: it cannot be written; the old one is untouched.
    """
    path = os.path.join(folder, "run.json")
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"  # the ticker and the loop may both be here
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1, default=repr)
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise
