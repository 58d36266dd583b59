"""Every error as an answer: a status, a code, what was found, and what to do."""

from __future__ import annotations

from rollbook.errors import (
    AmbiguousKey,
    AmbiguousRun,
    BadInput,
    Damaged,
    NewerFormat,
    NotARun,
    RollbookError,
    RunNotFound,
    UnknownKey,
)
from rollbook.server.schemas.common import ErrorBody, ErrorWords

__all__ = ["STATUS", "Refused", "words_of"]

STATUS = {
    "bad_input": 400,
    "no_token": 401,
    "forbidden": 403,
    "not_found": 404,
    "unknown_key": 404,
    "gone": 410,
    "too_large": 413,
    "unreadable": 422,
    "too_many": 429,
    "failed": 500,
    "timeout": 504,
}
"""code -> HTTP status."""


class Refused(RollbookError):
    """A request without an answer.

    Args:
      code: one of STATUS.
      message: what was asked and found.
      hint: what to do.
      at: the position in a filter or query, from 0.
    """

    def __init__(self, code: str, message: str, hint: str | None = None, at: int | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.at = code, message, hint, at


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (UnknownKey, "unknown_key"),
    (AmbiguousKey, "bad_input"),
    (BadInput, "bad_input"),
    (NotARun, "gone"),
    (RunNotFound, "not_found"),
    (AmbiguousRun, "bad_input"),
    (NewerFormat, "unreadable"),
    (Damaged, "unreadable"),
    (FileNotFoundError, "gone"),
    (PermissionError, "unreadable"),
    (OSError, "unreadable"),
)
_LONGEST = 2_000


def words_of(err: BaseException) -> ErrorWords:
    """An exception in the words of the API. One that is not the client's mistake is only named by its kind."""
    if isinstance(err, Refused):
        return ErrorWords(code=err.code, message=err.message[:_LONGEST], hint=err.hint, at=err.at)
    code = next((code for kind, code in _CODES if isinstance(err, kind)), "failed")
    if isinstance(err, RollbookError):
        message, hint = _divided(str(err))
        return ErrorWords(code=code, message=message[:_LONGEST], hint=hint)
    if code == "failed":
        return ErrorWords(
            code=code,
            message=f"the server failed at this: {type(err).__name__}: {err}"[:_LONGEST],
            hint="Its terminal has the whole error; please report it.",
        )
    return ErrorWords(
        code=code,
        message=f"{type(err).__name__}: {err}"[:_LONGEST],
        hint="Ask again, or look at the run with: rollbook verify",
    )


def body_of(words: ErrorWords) -> ErrorBody:
    """The body of the answer."""
    return ErrorBody(error=words)


def _divided(text: str) -> tuple[str, str | None]:
    """One of our messages, split into what was found and what to do."""
    for mark in (" Did you mean ", " Try: ", " Available: "):
        place = text.find(mark)
        if place > 0:
            return text[:place], text[place + 1 :][:_LONGEST]
    return text, None
