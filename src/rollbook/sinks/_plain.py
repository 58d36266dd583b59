"""Makes text from a run safe for a terminal, a line of a file or a file name.

Keys, names and texts are untrusted: an escape sequence in one could rewrite the reader's screen.
"""

from __future__ import annotations

import re
import unicodedata
import zlib

from rollbook.errors import BadInput

_ORDINARY = re.compile(r"[\x20-\x7e]*\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))]
)
LONGEST_NAME = 60


def plain(text: str, *, newlines: bool = False) -> str:
    r"""The text with everything that is not plainly visible written out as `\x1b` or `\u202e`.

    That is control characters, terminal escapes, marks that turn the direction of writing, and halves of surrogate
    pairs. With `newlines`, line ends stay (as LF) and tabs become four spaces.
    """
    if _ORDINARY.match(text):
        return text
    if newlines:
        text = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(
        char if char.isprintable() or (newlines and char == "\n") else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def wide(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, columns: int, mark: str = "..") -> str:
    """The text in at most this many columns; `mark` shows where something was cut off."""
    if wide(text) <= columns:
        return text
    out, used = "", 0
    for char in text:
        used += wide(char)
        if used > columns - len(mark):
            break
        out += char
    return (out + mark)[: max(columns, 0)]


def file_name(text: str) -> str:
    """A name for a file or folder: letters, digits, `_` and `-` only, at most 60 characters, valid on every system.

    A name that had to be changed ends in a checksum, so that two different names do not share a file.
    """
    name = _UNSAFE.sub("_", text)[:LONGEST_NAME]
    if name == text and name and name.lower() not in _RESERVED:
        return name
    return f"{name[: LONGEST_NAME - 9]}-{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def leaving_out(leave_out: str, sink: str) -> re.Pattern[str] | None:
    """The compiled option `leave_out` of a sink, None for "".

    Raises:
      BadInput: it is no regular expression.
    """
    try:
        return re.compile(leave_out) if leave_out else None
    except (re.error, TypeError) as err:
        raise BadInput(
            f"the {sink} sink was given leave_out={leave_out!r}, which is not a regular expression ({err}); "
            "'' leaves nothing out"
        ) from None


def whole_number(value: int) -> str:
    """The digits of an integer, however long (Python refuses decimal digits beyond 4,300: hexadecimal then)."""
    try:
        return int.__repr__(value)
    except ValueError:
        return hex(value)


def as_number(value: float) -> str:
    """A number for readers: integers in full, floats with six significant digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return whole_number(value)
    return f"{value:.6g}"
