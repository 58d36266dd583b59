"""The uncommitted changes of the program's repository, as a patch that is kept with the run: bounded, without secrets.

    code.patch, code.attempt_2.patch      in the run's folder; `git apply` takes them, where nothing was hidden

`git diff HEAD` runs in a thread, with a time limit, and without external diff programs that the repository configures.
If the patch is too large, it has the first files that fit. Files that git does not track are listed by name only,
except for the program itself, whose text is kept. After any failure there is no patch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import zlib
from contextlib import suppress

from rollbook.run.origin.secrets import HIDDEN, hidden, without_secrets
from rollbook.system.files import is_regular, real_path, replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES = 256 * 1024
_MOST_NAMES = 50
_MOST_EXCLUDED = 500
_LONGEST_LINE = 2_000
_NAMED = re.compile(
    r"""([A-Za-z_][\w.-]*)(["']?\]?\s*(?::\s*[\w.\[\] |]+?\s*=|[:=])\s*)(["'])((?:(?!\3)[^\\]|\\.)+)\3"""
)
_BARE = re.compile(r"""^([+\- ]\s*(?:export\s+)?(?:-\s+)?)([A-Za-z_][\w.-]*)(\s*[:=]\s*)([^\s"'#]+)\s*$""")
_PROGRAMS = (".py", ".ipynb", ".c", ".cc", ".cpp", ".h", ".cu", ".rs", ".js", ".ts", ".go")


def patch_of(
    git: Sequence[str],
    environ: Mapping[str, str],
    folder: str,
    *,
    is_changed: bool,
    is_new: bool,
    seconds: float,
    large: Sequence[str] = (),
) -> dict[str, object]:
    """The patch of the repository around a folder.

    Args:
      git: how git is called, with its folder and its harmless options.
      environ: of that call.
      folder: where the program was started.
      is_changed: whether a file that git knows differs from the commit.
      is_new: the repository has no commit yet.
      large: files that are left out, seen from the repository's top.
      seconds: the time limit of each call.
    Returns:
      text, `left_out` (files that did not fit), `untracked` (names), `files_untracked`; {} if git does not answer.
    """
    raw: bytes | None = b""
    if is_changed:
        how = [
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--ignore-submodules=dirty",
            "--submodule=short",
        ]
        plain = ["-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false"]
        base = "--cached" if is_new else "HEAD"
        leave_out = [":(top)", *(f":(top,exclude,literal){name}" for name in large[:_MOST_EXCLUDED])]
        raw = _output([*git, *plain, "diff", *how, base, "--", *leave_out], environ, seconds, 4 * MOST_BYTES)
        if raw is None:
            return {}
    others = ["ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z"]
    names = _output([*git, *others], environ, seconds, MOST_BYTES)
    untracked = [os.fsdecode(name) for name in (names or b"").split(b"\0") if name]
    text = (raw or b"").decode("utf-8", "replace")
    if program := _own_program(untracked, folder):
        top = _output([*git, "rev-parse", "--show-toplevel"], environ, seconds, 4_096)
        text += _as_new(program, os.fsdecode((top or b"").strip()) or folder)
    kept, left_out = _fitting(text)
    return {
        "text": without_secrets_in_code(kept) if kept else "",
        "left_out": [*large, *left_out][:_MOST_NAMES],
        "untracked": untracked[:_MOST_NAMES],
        "files_untracked": len(untracked),
    }


def keep_patch(run_folder: str, attempt: int, found: Mapping[str, object]) -> dict[str, object]:
    """Write a patch into a run's folder. Returns its entry in run.json.

    Raises:
      OSError: the disk is full, or the folder cannot be written.
    """
    text = str(found.get("text") or "")
    facts: dict[str, object] = {name: found[name] for name in ("left_out", "untracked") if found.get(name)}
    if found.get("files_untracked"):
        facts["files_untracked"] = found["files_untracked"]
    if text:
        name = "code.patch" if attempt == 1 else f"code.attempt_{attempt}.patch"
        with replacing(os.path.join(run_folder, name)) as temporary, open(temporary, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        facts |= {"patch": name, "diff": f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"}
    return facts


def without_secrets_in_code(text: str) -> str:
    """The lines of a patch: values of names that mark a secret and everything that looks like one are hidden."""
    lines: list[str] = []
    is_code = is_key = False
    for line in text.split("\n"):
        if line.startswith(("diff --git ", "+++ ", "--- ")):
            is_code = line.rstrip().endswith(_PROGRAMS) if not line.endswith("/dev/null") else is_code
            is_key = False
            lines.append(line)
            continue
        if "-----BEGIN " in line and "PRIVATE KEY" in line:
            is_key = True
        elif is_key and "-----END " in line:
            is_key = False
        if is_key:
            lines.append(line[:1] + HIDDEN)
            continue
        lines.append(_line(line, is_code))
    return "\n".join(lines)


def _line(line: str, is_code: bool) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[:_LONGEST_LINE]} … {len(line) - _LONGEST_LINE:,} characters left out …"
    if ("=" in line or ":" in line) and len(line) > 8:
        line = _NAMED.sub(_named, line)
        if not is_code:
            line = _BARE.sub(_bare, line)
    return without_secrets(line)


def _named(match: re.Match[str]) -> str:
    shown = hidden(match[1], match[4])
    return match[0] if shown == match[4] else f"{match[1]}{match[2]}{match[3]}{shown}{match[3]}"


def _bare(match: re.Match[str]) -> str:
    shown = hidden(match[2], match[4])
    return match[0] if shown == match[4] else f"{match[1]}{match[2]}{match[3]}{shown}"


def _own_program(untracked: Sequence[str], folder: str) -> str:
    """The path of the program that runs, if git does not know it; "" if it does."""
    given = str((getattr(sys, "argv", None) and sys.argv[0]) or "")
    program = real_path(os.path.join(folder, given))
    for name in untracked if given else ():
        path = real_path(os.path.join(folder, name))
        if program == path or (name.endswith("/") and program.startswith(path + os.sep)):
            return program if is_regular(program) else ""
    return ""


def _as_new(program: str, top: str) -> str:
    """A file as the patch that makes it."""
    with open(program, "rb") as file:
        lines = file.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
    name = os.path.relpath(program, real_path(top)).replace(os.sep, "/")
    head = (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n"
    )
    return head + "".join(f"+{line}\n" for line in lines)


def _fitting(text: str) -> tuple[str, list[str]]:
    """The parts of a patch that fit, whole files, and the names of the others."""
    parts = re.split(r"(?m)^(?=diff --git )", text)
    kept, left_out, size = [], [], 0
    for part in parts:
        size += len(part)
        if size <= MOST_BYTES:
            kept.append(part)
        else:
            size -= len(part)
            left_out.append(part.partition("\n")[0].rpartition(" b/")[2])
    return "".join(kept), left_out


def _output(command: Sequence[str], environ: Mapping[str, str], seconds: float, most: int) -> bytes | None:
    """The first bytes that a program prints; None if it is missing, fails, or takes too long."""
    try:
        program = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(environ)
        )
    except (OSError, ValueError):
        return None
    got: list[bytes] = []
    reader = threading.Thread(target=_read, args=(program, most, got), daemon=True)  # git's helpers may keep the pipe
    reader.start()
    reader.join(timeout=seconds)
    text = got[0] if got else None
    try:
        if text is None or len(text) > most:
            program.kill()
        failed = program.wait(timeout=seconds) != 0 and (text is None or len(text) <= most)
    except subprocess.TimeoutExpired:
        program.kill()
        return None
    return None if failed else text


def _read(program: subprocess.Popen[bytes], most: int, got: list[bytes]) -> None:
    assert program.stdout is not None
    with suppress(OSError, ValueError), program.stdout as stream:
        got.append(stream.read(most + 1))
