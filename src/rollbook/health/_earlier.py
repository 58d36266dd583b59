"""Earlier runs of the same settings, for rules that compare with them.

What `below_earlier` and `unlike_earlier` remember of a run, and which alerts it had, is in its data/keeper/rules.json,
and in finished.json when it is over. No row of another run is read. A file that is damaged, missing or of another
version is passed over.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from bisect import bisect_left, bisect_right
from itertools import accumulate

from rollbook.health._config import plain
from rollbook.schema import manifest
from rollbook.schema.run_files import RunFile
from rollbook.system.files import read_regular
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from rollbook.schema.records import RunInfo

    Known = TypeVar("Known", bound="Earlier")

FEWEST = 5
"""Compare with exactly this many: of 152 healthy trainings 7 were below three earlier ones, 1 below five."""

_MOST_FILES, _MOST_LIKE, _MOST_BYTES, _MOST_POINTS = 1_000, 50, 1 << 20, 1_000
"""Limits: newest files of a project to look at, files of the same settings to read, bytes of one, points of a curve."""

_ASIDE = re.compile(r"(^|[_.\-/])(seeds?|dir|path|folder|device|host|hostname|timestamp|date|run_name|run_id)$", re.I)
"""Settings that do not make runs different: the seed, and where and when a run was made."""

_MOST_LEVELS = 8

OF_GAIN = 0.35
"""How far below a run must be to be worse: a share of the gain of the earlier run that gained least."""

_GOOD, _BAD = "good", "bad"
"""Tags for runs to compare with, and for runs never to compare with."""


class Earlier:
    """What every rule that compares runs remembers of one.

    Attributes:
      id: the run's.
      kin: see `kin`.
      began, ended: when its first value came, and when the last ones were looked at, in unix seconds.
      clock: the name of the clock of its curves.
      seed: None if it had none.
      commit: of its code, the first characters; "" if it is not known.
      is_good: somebody has given it the tag "good".
    """

    __slots__ = ("began", "clock", "commit", "ended", "id", "is_good", "kin", "seed")
    rule = ""

    def __init__(self, run_id: str, memory: Mapping[str, Any]) -> None:
        """Raises: KeyError, TypeError, ValueError if the memory of the rule is of another shape."""
        self.id, self.kin, self.clock = run_id, str(memory["kin"]), str(memory["clock"])
        self.seed = memory["seed"] if isinstance(memory["seed"], int) else None
        self.began, self.ended = _number(memory["began"]), _number(memory["ended"])
        self.commit, self.is_good = "", False


class EarlierRun(Earlier):
    """What `below_earlier` remembers of an earlier run: its returns.

    Attributes:
      gain: how far its mean return rose above the first one.
      steps: the readings of the points of its curve.
      other: the reading at its first return that was not like those before; None if there was none.
    """

    __slots__ = ("_least", "_means", "gain", "other", "steps")
    rule = "below_earlier"

    def __init__(self, run_id: str, memory: Mapping[str, Any]) -> None:
        """See `Earlier`."""
        super().__init__(run_id, memory)
        points = [*memory["points"], *([memory["newest"]] if memory["newest"] else [])][: _MOST_POINTS + 1]
        self.steps = [_number(step) for step, _mean in points]
        self._means = [_number(mean) for _step, mean in points]
        self._least = list(accumulate(reversed(self._means), min))[::-1]
        if not points or self.steps != sorted(self.steps):
            raise ValueError("no curve")
        self.gain = _number(memory["best"]) - _number(memory["start"])
        self.other = None if memory["other"] is None else _number(memory["other"])

    @property
    def level(self) -> float:
        """The mean return over the last quarter of its steps."""
        last = [mean for step, mean in zip(self.steps, self._means, strict=True) if step >= 0.75 * self.steps[-1]]
        return sum(last) / len(last)

    def at(self, step: float) -> float | None:
        """The mean return at a reading of the clock, between two points on the line; None before the first one."""
        i = bisect_right(self.steps, step)
        if not i or i == len(self.steps):
            return self._means[i - 1] if i else None
        (first, last), (low, high) = self.steps[i - 1 : i + 1], self._means[i - 1 : i + 1]
        return low + (high - low) * (step - first) / (last - first)

    def least_from(self, step: float) -> float:
        """The lowest mean return from a reading of the clock on."""
        i = bisect_right(self.steps, step)
        return self._least[max(0, i - 1)]


class EarlierValues(Earlier):
    """What `unlike_earlier` remembers of an earlier run: the range of some keys.

    Attributes:
      last: the largest reading of the clock.
    """

    __slots__ = ("_points", "last")
    rule = "unlike_earlier"

    def __init__(self, run_id: str, memory: Mapping[str, Any]) -> None:
        """See `Earlier`."""
        super().__init__(run_id, memory)
        self._points = {str(key): _in_order(about) for key, about in memory["memory"].items()}
        self.last = max((points[-1][0] for points in self._points.values() if points), default=0.0)

    def range(self, key: str, begin: float, end: float) -> tuple[float, float] | None:
        """The least and the largest value of a key between two readings of the clock; None if it had none."""
        points = self._points.get(key, [])
        first = bisect_left(points, begin, key=lambda point: point[0])
        own = points[first : bisect_left(points, end, first, key=lambda point: point[0]) + 1]
        return (min(point[1] for point in own), max(point[2] for point in own)) if own else None


def kin(run: RunInfo) -> str:
    """Equal for runs of the same settings: project, configuration, length, group and name, the seed aside."""
    number = rf"(?<=seed)[-_=]?\d+|\b{run.seed}\b|(?<=_){run.seed}(?![^_])|\d{{6,}}"  # of a seed, a moment or a job
    name = re.sub(number, "#", run.name)
    asked = [run.project, name, run.group, dict(run.total), _settled(run.config, 0)]
    text = json.dumps(asked, sort_keys=True, default=str)
    return f"{zlib.crc32(text.encode()):08x}-{len(text)}"


def find(kind: type[Known], run: RunInfo, began: float, clock: str, given: Iterable[object] = ()) -> tuple[Known, ...]:
    """`FEWEST` earlier runs of the same settings that finished without an alert above a note; () if there are fewer. If
    several have the same seed, the newest counts.

    Runs with the tag "good" come first, then the newest others, except those far worse than the best five
    (`_far_below`), so that bad runs without an alert do not become the standard for later ones.

    Args:
      kind: what to read of them.
      run: this one.
      began: the time of its first value: others had ended by then.
      clock: of its values.
      given: runs that are known beside those in the folder of the project.
    """
    own = kin(run)
    known = [other for other in given if isinstance(other, Earlier) and other.kin == own]
    known += [other for kept in _in_project(run, own) for other in kept]
    known = [other for other in known if other.id != run.id and other.ended < began and other.clock == clock]
    worse = _far_below([other for other in known if isinstance(other, EarlierRun)])
    found: dict[object, Known] = {}
    for other in sorted(known, key=lambda other: (not other.is_good, -other.ended)):
        if not isinstance(other, kind) or (other.id in worse and not other.is_good):
            continue
        found.setdefault(other.id if other.seed is None else other.seed, other)
    return tuple(found.values())[:FEWEST] if len(found) >= FEWEST else ()


def _far_below(runs: Sequence[EarlierRun]) -> frozenset[str]:
    """The ids of runs whose last returns are far below those of the best five: by more than these differ, and by 35 %
    of what the one of them gained that gained least."""
    best = sorted(runs, key=lambda run: -run.level)[:FEWEST]
    if len(best) < FEWEST:
        return frozenset()
    least = min(run.level for run in best)
    room = max(best[0].level - least, OF_GAIN * min(run.gain for run in best))
    return frozenset(run.id for run in runs if run.level < least - room)


def widest(runs: Sequence[EarlierRun]) -> float:
    """The largest distance between the mean returns of runs at one reading of the clock that all of them reached."""
    width = 0.0
    for step in runs[0].steps if runs else ():
        then = [value for run in runs if step <= run.steps[-1] and (value := run.at(step)) is not None]
        if len(then) == len(runs):
            width = max(width, max(then) - min(then))
    return width


def named(runs: Sequence[Earlier]) -> str:
    """How many, for a message."""
    return f"{len(runs)} earlier runs of the same settings"


def listed(runs: Sequence[Earlier]) -> str:
    """Their ids, each with the commit of its code, for the end of a message."""
    each = [f"{run.id[:40]} of commit {run.commit}" if run.commit else run.id[:40] for run in runs]
    return f" (compared with {', '.join(each)})"


def _settled(config: Any, level: int) -> Any:
    if level > _MOST_LEVELS or not hasattr(config, "items"):
        return config
    return {str(key): _settled(value, level + 1) for key, value in config.items() if not _ASIDE.search(str(key))}


def _in_project(run: RunInfo, own: str) -> Iterator[list[Earlier]]:
    """What is known of each in the folder of the project, the newest first."""
    folder = run.path
    files: list[tuple[float, str, str]] = []
    with tolerating(OSError), os.scandir(os.path.dirname(folder)) as siblings:
        for sibling in siblings:
            for name in (RunFile.RULES, RunFile.FINISHED):  # of a running run, and of a finished one
                path = os.path.join(sibling.path, RunFile.KEEPER, name)
                with tolerating(OSError):
                    about = os.stat(path, follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode) and about.st_size <= _MOST_BYTES and sibling.path != folder:
                        files.append((about.st_mtime, sibling.path, path))
                        break
    like = 0
    for _time, other, path in sorted(files, reverse=True)[:_MOST_FILES]:
        with tolerating(OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            content = read_regular(path)
            if own.encode() not in content:  # far cheaper than to parse it
                continue
            like += 1
            if like > _MOST_LIKE:
                return
            kept = json.loads(content)
            kept = kept["rules"] if path.endswith(RunFile.FINISHED) else kept
            has_page = any(not level.startswith("note\0") for _rule, level, _count in kept["said"])
            memories = kept["rules"]
            if has_page or all(memories.get(kind.rule, {}).get("kin") != own for kind in (EarlierRun, EarlierValues)):
                continue
            run_json = manifest.look(other)
            if run_json.status == "finished" and _BAD not in run_json.tags:
                yield list(_remembered(run_json, memories, own))


def _remembered(about: manifest.RunJson, memories: Mapping[str, Any], own: str) -> Iterator[Earlier]:
    """What each rule remembers of one run."""
    commit = (about.git or {}).get("commit")
    for kind in (EarlierRun, EarlierValues):
        with tolerating(KeyError, TypeError, ValueError, AttributeError):
            memory = memories[kind.rule]
            if memory["kin"] == own:
                other = kind(about.id, memory)
                other.commit = commit[:8] if isinstance(commit, str) else ""
                other.is_good = _GOOD in about.tags
                yield other


def _in_order(about: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    points = [*about["points"], *([about["open"]] if about["open"] else [])][: _MOST_POINTS + 1]
    return sorted((_number(step), _number(low), _number(high)) for step, low, high in points)


def _number(value: object) -> float:
    number = plain(value)
    if number is None:
        raise ValueError(f"{value!r:.50} is not a number")
    return number
