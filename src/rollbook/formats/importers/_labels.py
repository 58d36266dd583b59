"""Labels of runs of other tools, written by people: patterns of paths with fields, in a small text file near the runs.

    # rollbook.labels
    logs/*/PPO*      algo=ppo
    old/**/run_?     seed=3  config.lr=0.001
    *.csv            x=iteration

Each line holds a pattern of paths, relative to the file's folder, and fields. `*` and `?` match within one folder's
name, `**` any number of folders; a pattern matches a folder with all below it. If several lines match, the last
counts. Nothing is written into files of other tools.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.importers._plain import plain
from rollbook.system.files import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABELS_FILE = "rollbook.labels"
FIELDS = ("algo", "env", "seed", "group", "x")
"""Fields that a label may set, besides those of the configuration (`config.lr`)."""

_HIGHEST = 8
_LONGEST = 1_000_000

LabelLine = tuple[str, dict[str, object]]


def labels_of(given: Path) -> dict[str, tuple[object, str]]:
    """The labels of a folder or file: field -> (value, the labels' file).

    Those of a nearer folder count before those above it.
    """
    found: dict[str, tuple[object, str]] = {}
    path = os.path.abspath(given)
    above = os.path.dirname(path)
    folders = [path, above]
    for _ in range(_HIGHEST):
        above = os.path.dirname(above)
        folders.append(above)
    for folder in reversed(dict.fromkeys(folders)):
        for pattern, fields in lines_in(folder):
            below = os.path.relpath(path, folder).replace(os.sep, "/")
            if _expression(pattern).match(below):
                found.update({name: (value, os.path.join(folder, LABELS_FILE)) for name, value in fields.items()})
    return found


def lines_in(folder: str) -> Sequence[LabelLine]:
    """The lines of the labels of a folder; () without any."""
    file = os.path.join(folder, LABELS_FILE)
    try:
        stat = os.stat(file)
    except (OSError, ValueError):
        return ()
    return _lines(file, stat.st_mtime_ns, stat.st_size) if stat.st_size <= _LONGEST else ()


@functools.lru_cache(maxsize=256)
def _lines(file: str, _changed: int, _size: int) -> Sequence[LabelLine]:
    made = []
    with open(file, encoding="utf-8", errors="replace") as stream:
        for text in stream:
            try:
                pattern, *words = shlex.split(text, comments=True) or [""]
                if pattern:
                    made.append((pattern, dict(map(field_of, words))))
            except (ValueError, BadInput):  # a line with a mistake is ignored
                continue
    return made


def label(pattern: str, fields: Mapping[str, object], folder: str | None = None) -> tuple[str, str]:
    """Write labels of paths to the file of labels near them.

    Args:
      pattern: of paths, relative to the working folder or absolute.
      fields: as `field_of` gives them. None removes a field; a pattern without fields is removed.
      folder: that of the file; None: the one that the pattern's part without wildcards names.
    Returns:
      The file, and the pattern relative to its folder.
    """
    parts = Path(os.path.abspath(pattern)).parts
    fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?")), len(parts) - 1)
    folder = folder or os.path.join(*parts[:fixed])
    rest = os.path.relpath(os.path.join(*parts), folder).replace(os.sep, "/")
    if not os.path.isdir(folder):
        raise BadInput(f"label {pattern!r}: there is no folder {folder}. The pattern is relative to the working folder")
    file = os.path.join(folder, LABELS_FILE)
    lines = Path(file).read_text(encoding="utf-8").splitlines() if os.path.exists(file) else []
    of_pattern: dict[str, object] = {}
    kept = []
    for line in lines:
        words = _words(line)
        if words and words[0] == rest:
            of_pattern.update(dict(map(field_of, words[1:])))
        else:
            kept.append(line)
    of_pattern = {name: value for name, value in {**of_pattern, **fields}.items() if value is not None}
    if of_pattern:
        kept.append(
            " ".join([shlex.quote(rest), *(shlex.quote(f"{name}={value}") for name, value in of_pattern.items())])
        )
    with replacing(file) as temporary:
        Path(temporary).write_text("\n".join([*kept, ""]), encoding="utf-8")
    return file, rest


def _words(line: str) -> list[str]:
    """The pattern and the fields of a line; none for a comment or a line that cannot be read."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def field_of(word: str) -> tuple[str, object]:
    """The name and the value of "NAME=VALUE".

    Raises:
      BadInput: no label has such a name, or the value does not fit.
    """

    name, equals, text = word.partition("=")
    if not equals or (name not in FIELDS and not (name.startswith("config.") and len(name) > len("config."))):
        raise BadInput(
            f"label {word!r}: a field is written NAME=VALUE. Names are {', '.join(FIELDS)} and config.<setting>"
        )
    if name == "seed":
        if not text.isdecimal():
            raise BadInput(f"label {word!r}: a seed is a whole number")
        return name, int(text)
    return name, plain(text) if name.startswith("config.") else text


def matches(pattern: str, given: str | os.PathLike[str], folder: str) -> bool:
    """Whether a path, or a folder above it, is one of a pattern in the labels of a folder."""
    below = os.path.relpath(os.path.abspath(given), folder).replace(os.sep, "/")
    return _expression(pattern).match(below) is not None


@functools.lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression; it also matches everything below a folder that matches."""
    text = re.escape(pattern.strip("/"))
    for glob, means in ((r"\*\*/", "(?:.*/)?"), (r"\*\*", ".*"), (r"\*", "[^/]*"), (r"\?", "[^/]")):
        text = text.replace(glob, means)
    return re.compile(rf"{text}(?:/.*)?$")
