"""One endpoint of the API: its address, the shapes of request and answer, and the function that answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from rollbook.server.shared.shapes import Ask
from rollbook.server.shared.state import ServerContext


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer in pieces, made while it is sent.

    Attributes:
      media_type: its media type.
      pieces: made one after the other, in a thread.
      filename: a name to save it under; None: it is shown, not saved.
      many: whether it is large enough to be compressed.
    """

    media_type: str
    pieces: Iterator[bytes]
    filename: str | None = None
    many: bool = False


@dataclass(frozen=True, slots=True)
class Download:
    """A file, sent unchanged.

    Attributes:
      path: of the file; inside its run, and no link out of it.
      media_type: a type that no browser executes.
      attachment: whether it is only to be saved.
    """

    path: str
    media_type: str
    attachment: bool


Lane = Literal["light", "work", "question"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route of the API.

    Attributes:
      method, path: HTTP method, and address with {names}.
      ask: the shape of the request: names of the path, then the query (GET, DELETE) or the JSON body (POST, PUT).
      answer: the shape of the answer, or the media type if it is not JSON.
      work: returns the answer; runs in a thread.
      summary: one sentence.
      entries: for frames, the shape of an entry.
      edits: whether it changes something: needs the edit token.
      large: whether the body may be large.
      lane: which threads answer. A "question" (SQL of the client) and a "light" request (which must be answered under
        any load) each have their own threads.
      errors: the statuses of possible errors.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    ask: type[Ask]
    answer: type[object] | str
    work: Callable[[ServerContext, Any], Any]
    summary: str
    entries: type[object] | None = None
    edits: bool = False
    large: bool = False
    lane: Lane = "work"
    errors: tuple[int, ...] = field(default=(400, 401, 403, 404, 413, 422, 429, 500, 504))

    @property
    def path_names(self) -> list[str]:
        """The names in the address."""
        return re.findall(r"\{(\w+)(?::\w+)?\}", self.path)
