"""Texts that come out of a run, made harmless for where they are shown. Standard library only."""

from __future__ import annotations

__all__ = ["csv_cell", "printable"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def printable(text: object) -> str:
    """A text that moves no terminal's cursor: control and escape characters are spelled out."""
    words = str(text)
    return words if words.isprintable() else "".join(c if c.isprintable() else _spelled(c) for c in words)


def csv_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula and no terminal for a command.

    One that begins with =, +, -, @ or white space and is no number gets an apostrophe in front; control characters but
    tab and new line are spelled out.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\t\n" else _spelled(c) for c in text)
    return f"'{text}" if text[:1] in _FORMULA and not _is_number(text) else text


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
