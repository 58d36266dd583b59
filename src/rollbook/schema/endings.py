"""Why a run ended early, and the line that resumes it: the only place that has these words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from rollbook.schema import manifest
from rollbook.schema.manifest import RunJson

_WORDS = {
    "crashed": ("Ended without an exception", "its process vanished (SIGKILL, out of memory, power)"),
    "killed": ("Killed from outside", "it left no word"),
    "stale": ("Silent", "its host cannot be asked, and nothing was heard of it for a minute"),
}
"""Status -> (what happened, what is known of it), where the run itself noted nothing."""
_LONGEST = 300


def why_ended(about: RunJson, status: str) -> tuple[str, str] | None:
    """(what happened, which runs may share; the same in a line) of a run that ended badly or is silent; None of others.

    Args:
      about: its run.json; status: as readers derive it.
    """
    failure = manifest.failure(about)
    if failure is not None:
        return failure["type"], one_line(failure)
    kind, known = _WORDS.get(status, ("", ""))
    return (kind, f"{kind}: {known}") if kind else None


def one_line(failure: Mapping[str, str]) -> str:
    """A failure in one line: the first of its text, with what follows a colon at its end."""
    lines = [line.strip() for line in f"{failure['type']}: {failure['message']}".split("\n")]
    text, *more = [line for line in lines if line]
    for line in more:
        if not text.endswith(":"):
            break
        text += f" {line}"
    return text.removesuffix(":")[:_LONGEST]


def how_to_resume(about: RunJson) -> list[str]:
    """How to resume a run: the command that starts its program again, and Python, for programs that call `init`.

    The command is missing where it is not known, or has a secret that was hidden. Then the program needs the variable.
    """
    if about.made_by or not about.id:
        return []
    command, lines = about.command or [], []
    if command and "***" not in " ".join(command) and "-c" not in command[1:2]:
        cd = f"cd {shlex.quote(about.cwd)} && " if about.cwd else ""
        lines.append(f"{cd}ROLLBOOK_RESUME={about.id} {shlex.join(command)}")
    elif about.door:
        lines.append(f"ROLLBOOK_RESUME={about.id}")
    if not about.door:
        lines.append(f'rollbook.init({about.project!r}, {about.name!r}, run_id={about.id!r}, resume="must")')
    return lines


def resume_line(about: RunJson) -> str:
    """The last of them: Python for a program that calls `init`, else the command; "" where nothing is known."""
    return (how_to_resume(about) or [""])[-1]
