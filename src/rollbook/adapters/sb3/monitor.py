"""Monitor files (`*.monitor.csv`): write them as episodes end, read them, and export them from a book.

    env = Monitor(env, "logs/0")                      # as Stable-Baselines3's, with its faults gone
    rows = read_monitor("logs")                       # dicts; load_results() gives a pandas DataFrame
    write_monitor(book, "export")                     # the episodes of any run, for tools that read Monitor files

A file has a comment line of JSON (`t_start`, `env_id`), a header `r,l,t,…`, and one line per finished episode: return,
length, seconds since `t_start`.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
import warnings
from glob import glob

from rollbook.adapters._plain import parsed
from rollbook.adapters.sb3 import _host
from rollbook.errors import RollbookError, RollbookWarning
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import pandas as pd

    from rollbook.book import Book
    from rollbook.run.scope import Scope

__all__ = ["EXT", "LoadMonitorResultsError", "Monitor", "ResultsWriter", "get_monitor_files", "load_results"]
__all__ += ["read_monitor", "record_monitor", "write_monitor"]

EXT = "monitor.csv"

if TYPE_CHECKING or _host.VERSION is None:
    if TYPE_CHECKING:

        class _Base:
            def __init__(self, env: Any, *more: Any) -> None:
                self.env = env
    else:
        _Base = need("gymnasium", extra="gym", why="the Monitor of the SB3 adapter").Wrapper

    class LoadMonitorResultsError(Exception):
        """There is no Monitor file, or none that can be read."""
else:
    from stable_baselines3.common.monitor import LoadMonitorResultsError
    from stable_baselines3.common.monitor import Monitor as _Base


class ResultsWriter:
    """Appends episodes to one Monitor file; each line is in the file when `write_row` returns.

    Args:
      filename: `<name>.monitor.csv`. The extension is added if missing; for a folder the file is `monitor.csv`.
      header: contents of the comment line.
      extra_keys: further columns.
      override_existing: replace an existing file. Otherwise it is continued, with a header if it has none yet.
    Attributes:
      t_start: from the file's comment line; times in the file are relative to it. None if the line has none.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str] = "",
        header: Mapping[str, Any] | None = None,
        extra_keys: Sequence[str] = (),
        override_existing: bool = True,
    ) -> None:
        path = os.fspath(filename)
        if not path.endswith(EXT):
            path = os.path.join(path, EXT) if os.path.isdir(path) else f"{path}.{EXT}"
        self.path = os.path.realpath(path)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._columns = ["r", "l", "t", *extra_keys]
        continued = not override_existing and os.path.exists(self.path) and os.path.getsize(self.path) > 0
        about = dict(header or {})
        if continued:
            about, self._columns = _adopt(self.path, self._columns)
        self.t_start: float | None = about.get("t_start")
        self.file_handler = open(self.path, "a" if continued else "w", newline="")  # noqa: SIM115  # until close()
        if not continued:
            self.file_handler.write(f"#{json.dumps(about)}\n")
            self._line(dict(zip(self._columns, self._columns, strict=True)))

    def write_row(self, epinfo: Mapping[str, object]) -> None:
        """Append one episode.

        Args:
          epinfo: column -> value: r, l, t and the further columns; missing ones are empty cells.
        Raises:
          ValueError: a key is not a column of this file.
        """
        unknown = [key for key in epinfo if key not in self._columns]
        if unknown:
            raise ValueError(
                f"write_row(): {unknown[0]!r} is not a column of {self.path}; it has {', '.join(self._columns)}"
            )
        self._line(epinfo)

    def close(self) -> None:
        """Close the file."""
        self.file_handler.close()

    def _line(self, row: Mapping[str, object]) -> None:
        text = io.StringIO()
        csv.DictWriter(text, self._columns, lineterminator="\n").writerow(row)
        self.file_handler.write(text.getvalue())
        self.file_handler.flush()


class Monitor(_Base):
    """Counts the episodes of one environment and writes them to a Monitor file.

    Args, attributes and errors are those of Stable-Baselines3. Returns are unrounded in `get_episode_rewards()` and
    have six decimals in the file. A continued file keeps correct times. Memory does not grow within an episode.

    Args:
      env: the environment.
      filename: of the file; None writes no file.
      allow_early_resets: whether `reset` may be called before an episode is over.
      reset_keywords: arguments of `reset` to store with the episode.
      info_keywords: entries of the last `info` to store with the episode.
      override_existing: replace an existing file.
    """

    EXT = EXT

    def __init__(
        self,
        env: Any,
        filename: str | os.PathLike[str] | None = None,
        allow_early_resets: bool = True,
        reset_keywords: Sequence[str] = (),
        info_keywords: Sequence[str] = (),
        override_existing: bool = True,
    ) -> None:
        if _host.VERSION is None:
            super().__init__(env)
        else:  # its own file would be opened as soon as it is named
            super().__init__(env, None, allow_early_resets, tuple(reset_keywords), tuple(info_keywords))
        self.t_start = time.time()
        self.results_writer: ResultsWriter | None = None
        if filename is not None:
            spec = getattr(env, "spec", None)
            about = {"t_start": self.t_start, "env_id": str(spec.id if spec is not None else None)}
            extra = (*reset_keywords, *info_keywords)
            self.results_writer = ResultsWriter(filename, about, extra, override_existing)
            self.t_start = self.results_writer.t_start or self.t_start
        self.reset_keywords, self.info_keywords = tuple(reset_keywords), tuple(info_keywords)
        self.allow_early_resets = allow_early_resets
        self.rewards: list[float] = []  # one element: the sum so far
        self.needs_reset = True
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self.episode_times: list[float] = []
        self.total_steps = 0
        self.current_reset_info: dict[str, object] = {}
        self._return, self._length = 0.0, 0

    def reset(self, **kwargs: Any) -> Any:
        """Begin an episode.

        Raises:
          RuntimeError: the episode is not over, and `allow_early_resets` is false.
          ValueError: an argument of `reset_keywords` is missing.
        """
        if not self.allow_early_resets and not self.needs_reset:
            raise RuntimeError(
                "Tried to reset an environment before done. If you want to allow early resets, wrap your env with "
                "Monitor(env, path, allow_early_resets=True)"
            )
        for key in self.reset_keywords:
            if kwargs.get(key) is None:
                raise ValueError(f"Expected you to pass keyword argument {key} into reset")
            self.current_reset_info[key] = kwargs[key]
        self._return, self._length, self.needs_reset = 0.0, 0, False
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        """Take a step; at the end of an episode its record is in `info["episode"]` and in the file.

        Args:
          action: passed on.
        Raises:
          RuntimeError: the episode is over, and the environment was not reset.
        """
        if self.needs_reset:
            raise RuntimeError("Tried to step environment that needs reset")
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return += float(reward)
        self._length += 1
        self.total_steps += 1
        if terminated or truncated:
            info["episode"] = self._ended(info)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the environment and the file."""
        self.env.close()
        if self.results_writer is not None:
            self.results_writer.close()

    def get_total_steps(self) -> int:
        """Steps since the beginning."""
        return self.total_steps

    def get_episode_rewards(self) -> list[float]:
        """The return of every finished episode."""
        return self.episode_returns

    def get_episode_lengths(self) -> list[int]:
        """The length of every finished episode."""
        return self.episode_lengths

    def get_episode_times(self) -> list[float]:
        """The end of every finished episode, in seconds since t_start."""
        return self.episode_times

    def _ended(self, info: Mapping[str, object]) -> dict[str, object]:
        self.needs_reset = True
        seconds = time.time() - self.t_start
        record: dict[str, object] = {"r": round(self._return, 6), "l": self._length, "t": round(seconds, 6)}
        record.update({key: info[key] for key in self.info_keywords})
        self.episode_returns.append(self._return)
        self.episode_lengths.append(self._length)
        self.episode_times.append(seconds)
        record.update(self.current_reset_info)
        if self.results_writer is not None:
            self.results_writer.write_row(record)
        return record


def get_monitor_files(path: str | os.PathLike[str]) -> list[str]:
    """The Monitor files of a folder, sorted by name."""
    return sorted(glob(os.path.join(glob_escaped(os.fspath(path)), "*" + EXT)))


def glob_escaped(path: str) -> str:
    """`path` with glob's special characters taken literally."""
    from glob import escape

    return escape(path)


def read_monitor(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The episodes of a Monitor file, or of all Monitor files in a folder, in the order in which they ended.

    Args:
      path: the file or the folder.
    Returns:
      One dict per episode: r, l, t (seconds since the earliest `t_start`), time (unix seconds), file, further columns.
        Numbers are numbers, empty cells None. A last line without a newline counts if it has every column (an editor
        may have removed the newline). If a kill cut it earlier, it is left out with a RollbookWarning.
    Raises:
      LoadMonitorResultsError: there is no Monitor file, or a file is not one; the message names it.
    """
    folder = os.fspath(path)
    files = get_monitor_files(folder) if os.path.isdir(folder) else [folder]
    if not files or not all(os.path.exists(file) for file in files):
        raise LoadMonitorResultsError(f"No monitor files of the form *{EXT} found in {folder}")
    rows: list[dict[str, Any]] = []
    starts = []
    for file in files:
        start, episodes = _read_one(file)
        starts.append(start)
        rows += episodes
    first = min(starts)
    for row in rows:
        row["t"] = row["time"] - first
    return sorted(rows, key=lambda row: row["time"])


def load_results(path: str | os.PathLike[str]) -> pd.DataFrame:
    """All Monitor files of a folder as one pandas DataFrame: index, r, l, t and further columns, ordered by t.

    Args:
      path: the folder.
    Raises:
      LoadMonitorResultsError: there are no Monitor files.
      MissingExtra (an ImportError): pandas is not installed.
    """
    rows = read_monitor(path)
    pandas = need("pandas", extra="pandas", why="load_results() (pandas is required for loading results)")
    plain = [{key: value for key, value in row.items() if key not in ("time", "file")} for row in rows]
    return pandas.DataFrame(plain, columns=None if plain else ["r", "l", "t"]).reset_index()


def record_monitor(run: Scope, path: str | os.PathLike[str]) -> int:
    """Write the episodes of Monitor files to a run (table `episodes`, scope "train"). Returns the number of episodes.

    Their env_step is the running sum of lengths; their time is the one in the file.

    Args:
      run: the run.
      path: a Monitor file, or a folder of them.
    """
    rows = read_monitor(path)
    if not rows:
        return 0
    total, steps = 0, []
    for row in rows:
        total += int(row["l"])
        steps.append(total)
    extra = {key for row in rows for key in row} - {"r", "l", "t", "time", "file"}
    columns: dict[str, list[object]] = {
        "episode_id": [f"{run.run.id}-monitor-{i}" for i in range(len(rows))],
        "return": [float(row["r"]) for row in rows],
        "length": [int(row["l"]) for row in rows],
        "monitor_seconds": [float(row["t"]) for row in rows],
        **{key: [row.get(key) for row in rows] for key in sorted(extra)},
    }
    offset = run.run.internals.writer.time_offset
    moments = [int(row["time"] * 1e9) - offset for row in rows]
    scope = run.scope("train")
    scope.record("episodes", columns, n=len(rows), clock_columns={"env_step": steps}, time_column=moments)
    return len(rows)


def write_monitor(book: Book, folder: str | os.PathLike[str], scope: str = "train") -> list[str]:
    """Write Monitor files from a run's episodes, one per environment. Returns their paths.

    Args:
      book: the run.
      folder: where they go; created if missing.
      scope: the scope of the episodes; "" takes all.
    """
    episodes = [row for row in book.episodes().to_pylist() if not scope or row.get("scope") in (scope, f"{scope}/")]
    start = float(book.info.created or 0.0)
    writers: dict[int, ResultsWriter] = {}
    env_id = str(book.config.get("env", None))
    for row in episodes:
        index = int(row.get("env_index") or 0)
        if index not in writers:
            about = {"t_start": start, "env_id": env_id}
            writers[index] = ResultsWriter(os.path.join(os.fspath(folder), str(index)), about)
        seconds = row["time"].timestamp() - start
        writers[index].write_row({"r": round(row["return"], 6), "l": row["length"], "t": round(seconds, 6)})
    for writer in writers.values():
        writer.close()
    return [writer.path for _, writer in sorted(writers.items())]


def _read_one(file: str) -> tuple[float, list[dict[str, object]]]:
    with open(file, encoding="utf-8", newline="") as handle:
        text = handle.read()
    first, _, rest = text.partition("\n")
    try:
        start = float(json.loads(first.lstrip("#"))["t_start"]) if first.startswith("#") else None
    except (ValueError, KeyError, TypeError):
        start = None
    if start is None:
        raise LoadMonitorResultsError(
            f"{file} is not a Monitor file: its first line has to be '#' and JSON with t_start; found {first[:80]!r}"
        )
    rows = []
    lines, torn = _without_torn_end(rest)
    if torn:
        warnings.warn(
            f"{file}: the last line, {torn[:80]!r}, is not whole and is left out", RollbookWarning, stacklevel=3
        )
    for row in csv.DictReader(io.StringIO(lines)):
        episode: dict[str, Any] = {key: _number(value) for key, value in row.items() if isinstance(key, str)}
        if isinstance(episode.get("t"), (int, float)) and isinstance(episode.get("r"), (int, float)):
            episode["time"], episode["file"] = start + float(episode["t"]), file
            rows.append(episode)
    return start, rows


def _without_torn_end(text: str) -> tuple[str, str]:
    """Split a Monitor file into its header and lines, and a last line that is not a complete episode.

    The newline does not show whether a last line is complete: editors remove it, and a kill may come just before it.
    The line counts if it has a cell for each column, and numbers for r, l and t.
    """
    end = text.rfind("\n") + 1
    lines, last = text[:end], text[end:]
    if not last or not lines:
        return (lines, "") if lines else (text, "")
    header = next(csv.reader(io.StringIO(lines)), [])
    cells = next(csv.reader([last]), [])
    row = dict(zip(header, cells, strict=False))
    numbers = all(isinstance(_number(row.get(key)), (int, float)) for key in ("r", "l", "t"))
    if len(cells) == len(header) and numbers and last.count('"') % 2 == 0:
        return f"{text}\n", ""
    return lines, last


def _number(text: str | None) -> object:
    return None if text is None else parsed(text, {"": None, "True": True, "False": False})


def _adopt(path: str, columns: list[str]) -> tuple[dict[str, object], list[str]]:
    """Comment and columns of a file to continue. A cut last line is removed; a complete one gets its newline."""
    with open(path, "rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            _, _, rest = data.decode("utf-8", "replace").partition("\n")
            if _without_torn_end(rest)[1] or not rest:
                file.truncate(whole)
            else:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")
                whole = len(data)
    lines = data[:whole].decode("utf-8", "replace").splitlines()
    try:
        about = json.loads(lines[0].lstrip("#"))
        header = next(csv.reader([lines[1]]))
    except (IndexError, ValueError):
        raise RollbookError(
            f"{path} cannot be continued: it does not begin with '#' and JSON and a header. Move it away, or use "
            "override_existing=True"
        ) from None
    missing = [name for name in columns if name not in header]
    if missing:
        raise RollbookError(f"{path} cannot be continued: it has no column {missing[0]!r}, only {', '.join(header)}")
    return about, header
