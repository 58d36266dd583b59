"""Makes texts from a run safe to display. Standard library only."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LARGEST = 2**63
_SMALL, _HUGE = 1e-3, 1e21
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def printable(text: object) -> str:
    """A text that cannot control a terminal: control and escape characters are escaped."""
    words = str(text)
    return words if words.isprintable() else "".join(c if c.isprintable() else _spelled(c) for c in words)


def amount(n: int, what: str) -> str:
    """A number of things: "1 file", "2,000 files"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def setting_text(value: object) -> str:
    """The value of a setting as it is written everywhere: 3e-4, 0.003, 100000, adam, true, none.

    `plain` of dashboard/src/data/numbers.ts is the same for the page; settings.cases.json there holds both to it.
    """
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(value).lower()
    if isinstance(value, float):
        return number_text(float(value))
    return printable(value) if isinstance(value, (str, int)) else printable(json_text(value))


def number_text(value: float, figures: int | None = 6) -> str:
    """A number with this many significant figures, or all before its point; no trailing zeros; below 0.001 as 3e-4.

    Args:
      figures: None: as many as tell it from every other number.
    """
    if value - value != 0:
        return str(value)
    if figures is None:
        rounded = value
    else:  # no digit before the point becomes a zero that was none
        whole = len(str(int(abs(value)))) if abs(value) < _HUGE else 0
        rounded = float(f"{value:.{max(figures, whole) - 1}e}")
    if 0 < abs(rounded) < _SMALL or abs(rounded) >= _HUGE:
        exact = next(text for n in range(18) if float(text := f"{rounded:.{n}e}") == rounded)
        digits, _, power = exact.partition("e")
        return f"{digits}e{'+' * (abs(rounded) >= 1)}{int(power)}"
    if value.is_integer():
        return str(int(value))
    return str(int(rounded)) if rounded.is_integer() else repr(rounded)


def csv_cell(text: str) -> str:
    """A text that neither a spreadsheet takes for a formula nor a terminal for a command.

    One that begins with =, +, -, @ or white space and is not a number gets an apostrophe in front. Control characters,
    except tab and new line, are escaped.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\t\n" else _spelled(c) for c in text)
    return f"'{text}" if text[:1] in _FORMULA and not _is_number(text) else text


def json_text(value: object, indent: int | None = None) -> str:
    """Any value as JSON that every parser accepts (RFC 8259): the format of `--json` and of an export to JSON lines.

    NaN and infinities are the texts "NaN", "Infinity" and "-Infinity", as in the page's answers. Integers beyond 64
    bits are texts of their digits; decimals and fractions are numbers. Bytes are texts; invalid UTF-8 and half
    surrogate pairs are escaped. Times and other values without a JSON form are texts.
    """
    return json.dumps(_for_json(value), indent=indent, allow_nan=False)


def _for_json(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int):
        return int(value) if -_LARGEST <= value < _LARGEST else str(int(value))
    if isinstance(value, float):
        if value - value == 0:
            return float(value)
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(_for_json(str(name))): _for_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_for_json(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    plain = getattr(value, "tolist", None)  # of numpy
    if not callable(plain) and hasattr(value, "as_integer_ratio"):
        return _for_json(exact_number(value))
    return _for_json(plain()) if callable(plain) else _for_json(str(value))


def exact_number(value: Any) -> int | float:
    """A decimal or a fraction as an integer if it is one, such as a sum of integers in SQL; else as a float."""
    as_float = float(value)
    return int(value) if as_float - as_float == 0 and value == int(value) else as_float


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def quantity(value: float) -> str:
    """A measured number in four digits, large ones whole and with separators: 0.9833, 171.7, 44,820."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:,.4g}"
