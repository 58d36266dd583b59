"""A run's summary, changed by this process and others: safe at once as marks, in run.json after about a second."""

from __future__ import annotations

import os
import time

from rollbook.schema import manifest
from rollbook.schema.run_files import RunFile
from rollbook.system.guard import tolerating
from rollbook.values import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

    from rollbook.run.open_run import OpenRun


class Watched(dict):  # type: ignore[type-arg]
    """A dict that reports changes: a run's configuration and its summary."""

    def __init__(self, values: Mapping[str, object], changed: Callable[[str], None]) -> None:
        super().__init__(values)
        self._changed = changed

    def __setitem__(self, key: str, value: object) -> None:
        super().__setitem__(key, value)
        self._changed(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._changed(key)

    def update(self, *args: object, **kwargs: object) -> None:
        """As `dict.update`, with anything that has named values: a namespace, a dataclass, an OmegaConf of which some
        values are missing. Reports each key; never raises."""
        from rollbook.run.origin.config import entries_of

        for given in (*args, kwargs):
            for key, value in entries_of(given).items():
                self[key] = value

    def setdefault(self, key: str, default: object = None) -> Any:
        """As `dict.setdefault`; reports a new key."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: object) -> Any:
        """As `dict.pop`."""
        value = super().pop(key, *default)
        self._changed(key)
        return value

    def popitem(self) -> tuple[str, Any]:
        """As `dict.popitem`."""
        key, value = super().popitem()
        self._changed(key)
        return key, value

    def clear(self) -> None:
        """As `dict.clear`; reports each key."""
        for key in list(self):
            del self[key]

    def __ior__(self, other: object) -> Self:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)


class SummaryWords:
    """The entries of a run's summary, each with its time. The newer entry for a key wins."""

    def __init__(self, run: OpenRun) -> None:
        self._run = run
        self._stored: dict[str, object] = dict(run.summary)
        self._words: dict[str, list[object]] = {}  # key -> [unix ns, value] or [unix ns], set by this attempt
        self._begun, self._others_stamp = time.time_ns(), 0

    def changed_keys(self, summary: Mapping[str, object]) -> list[str]:
        """The keys whose current value no mark has: a nested value was changed."""
        return [key for key in summary if key not in self._stored or repr(self._stored[key]) != repr(summary[key])]

    def report(self, keys: list[str]) -> None:
        """Write a mark about these keys of the summary, and the file that other processes read."""
        from rollbook.run.origin.config import plain

        run = self._run
        values = plain({key: run.summary[key] for key in keys if key in run.summary})[0]
        gone = [key_of(key) for key in keys if key not in run.summary]
        self._stored.update(values)
        for key in gone:
            self._stored.pop(key, None)
        run._write_aside({"mark": "summary", "values": values, "gone": gone})
        now = time.time_ns()
        self._words |= {key: [now, value] for key, value in values.items()} | {key: [now] for key in gone}
        if not run._writer.main:
            manifest.write_summary(run.folder, run._writer.id, self._words)

    def poll(self) -> bool:
        """Merge changes of other processes into the summary; returns whether there were any."""
        folder, summary = self._run.folder, self._run.summary
        stamp = self._others_stamp
        with tolerating(OSError):
            stamp = os.stat(os.path.join(folder, RunFile.KEEPER, RunFile.SUMMARY)).st_mtime_ns
        if stamp == self._others_stamp:
            return False
        is_new = False
        for key, word in manifest.summary_of_others(folder, self._begun).items():
            if word[0] > self._words.get(key, [0])[0]:
                self._words[key] = word
                if len(word) == 2:
                    dict.__setitem__(summary, key, word[1])
                    self._stored[key] = word[1]
                else:
                    dict.pop(summary, key, None)
                    self._stored.pop(key, None)
                is_new = True
        self._others_stamp = stamp
        return is_new
