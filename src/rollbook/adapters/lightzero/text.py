"""Text logs: `<name>_logger.txt`, with one prefix per message, as LightZero's users read and parse them.

[2025-01-02 03:04:06][learner.py:120][INFO] === Training Iteration 100 Result ===
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from rollbook.adapters.lightzero.tables import get_tabulate_vars, get_tabulate_vars_hor
from rollbook.system.guard import tolerating


class TextLogger:
    """A logger of one component, with its own file. Python's root logger and its level are not changed.

    Args:
      path: the folder; created if missing.
      name: of the component: the file is `<path>/<name>_logger.txt`, appended to.
      level: messages below it are dropped; a number or a name of Python's logging.
      terminal: where messages are also shown; None shows nothing.
      keep: called with every message of `info` and above (not tables), e.g. to log it to a run.
      write_file: False if something else writes the file.
      failed: called when the file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "default",
        level: int | str = logging.INFO,
        *,
        terminal: TextIO | None = None,
        keep: Callable[[str], object] | None = None,
        write_file: bool = True,
        failed: Callable[[OSError], object] | None = None,
    ) -> None:
        self.name = name
        self.path = os.path.join(os.fspath(path), f"{name}_logger.txt")
        self._level = level if isinstance(level, int) else logging.getLevelNamesMapping()[level.upper()]
        self._terminal, self._keep, self._write_file, self._failed = terminal, keep, write_file, failed
        if write_file:
            self._append("")

    get_tabulate_vars = staticmethod(get_tabulate_vars)
    get_tabulate_vars_hor = staticmethod(get_tabulate_vars_hor)

    def debug(self, message: object, *args: object) -> None:
        """Write a message of level DEBUG.

        Args:
          message, args: as in Python's logging: `message % args`.
        """
        self._log(logging.DEBUG, message, args)

    def info(self, message: object, *args: object) -> None:
        """Write a message of level INFO.

        Args:
          message, args: as in Python's logging: `message % args`.
        """
        self._log(logging.INFO, message, args)

    def warning(self, message: object, *args: object) -> None:
        """Write a message of level WARNING.

        Args:
          message, args: as in Python's logging: `message % args`.
        """
        self._log(logging.WARNING, message, args)

    def error(self, message: object, *args: object) -> None:
        """Write a message of level ERROR.

        Args:
          message, args: as in Python's logging: `message % args`.
        """
        self._log(logging.ERROR, message, args)

    def table(self, text: str) -> None:
        """Write a table to the file and the terminal; its numbers are recorded elsewhere.

        Args:
          text: the table, with its line ends.
        """
        self._log(logging.INFO, text, (), is_table=True)

    def _log(self, level: int, message: object, args: tuple[object, ...], is_table: bool = False) -> None:
        if level < self._level:
            return
        text = _text_of(message)
        with tolerating(Exception) as missed:
            text = text % args if args else text
        if missed:  # the two do not fit each other: nothing of them is lost
            text = " ".join([text, *map(_text_of, args)])
        now, line = time.localtime(), _calling_line()
        head = f"[{line}][{logging.getLevelName(level)}] {text}\n"
        if self._write_file:
            self._append(f"[{time.strftime('%Y-%m-%d %H:%M:%S', now)}]{head}")
        if self._keep is not None and not is_table:
            self._keep(text)
        if self._terminal is not None:
            try:
                self._terminal.write(f"[{time.strftime('%m-%d %H:%M:%S', now)}]{head}")
            except (OSError, ValueError):  # a closed terminal
                self._terminal = None

    def _append(self, text: str) -> None:
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path, "ab", buffering=0) as file:  # one write per message: processes do not mix their lines
                file.write(text.encode("utf-8", "backslashreplace"))
        except OSError as err:
            if self._failed is not None:
                self._failed(err)


def _text_of(value: object) -> str:
    with tolerating(Exception):
        return str(value)
    return f"<a {type(value).__name__} without a text>"


def _calling_line() -> str:
    """file.py:line of the first caller outside this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
