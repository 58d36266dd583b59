"""What is wrong with a run, as data: what reads it asks for the kind and the counts, and never for words."""

from __future__ import annotations


class Problem(str):
    """One thing that is wrong. It prints as its sentence.

    Args:
      words: the sentence.
      kind: what is wrong: "unreadable", "missing", "gap", "unsealed", "file", the name of a field of run.json, or the
        cause under which the writer counts the same (`unknown_rollout`).
      path: of the file or folder that it is about; "" if it is about none.
      writer: whose rows are missing; "" if the path shows it.
      n: how many.
    Attributes:
      kind, path, writer, n: as above.
    """

    __slots__ = ("kind", "n", "path", "writer")

    kind: str
    path: str
    writer: str
    n: int

    def __new__(cls, words: str, kind: str, path: str = "", n: int = 1, writer: str = "") -> Problem:
        """A sentence that knows what it says."""
        self = super().__new__(cls, words)
        self.kind, self.path, self.n, self.writer = kind, path, n, writer
        return self
