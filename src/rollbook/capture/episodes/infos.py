"""Data in an environment's `info`: running and final data, media, reward components, and keys selected by the user.

info = {"data": {"running": {"speed": 0.7}, "final": {"parts_made": 12}},     # running: kept per step, summed up
        "media": {"trace": [4, 7]},                                           # final: the last value counts
        "reward_components": {"forward": 1.0, "energy": -0.2}}
"""

from __future__ import annotations

from rollbook.capture._ledger import Tally
from rollbook.capture.storable import UNSTORABLE, flat, is_array, plain
from rollbook.errors import BadInput
from rollbook.values import flatten, scalar_of
from rollbook.values.spaces import is_picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from rollbook.capture.episodes.steps import Unstorable

_COMPONENT_DICTS = ("reward_components", "rewards")
_COMPONENT_PREFIX = "reward_"


def component_reader(given: object) -> Callable[[Mapping[str, object]], Mapping[str, object]] | None:
    """The function that finds the reward components in an info.

    Args:
      given: "auto", a dict under "reward_components" or "rewards", or the numbers whose keys begin with "reward_"
        (as in MuJoCo's environments); another text: the key of a dict, or a key prefix if it ends with a star; a
        function of the info; None for none.
    Raises:
      BadInput: none of these.
    """
    if given is None:
        return None
    if callable(given):
        return given
    if not isinstance(given, str):
        raise BadInput(
            f"components={given!r:.80}: give 'auto', a key of the info, 'prefix*', a function of the info, or None."
        )
    if given == "auto":
        return _auto_reader()
    if given.endswith("*"):
        return _prefix_reader(given[:-1])
    return lambda info: _dict_of(info.get(given))


def _dict_of(value: Any) -> Mapping[str, object]:
    return value if hasattr(value, "items") and hasattr(value, "keys") else {}


def _prefix_reader(prefix: str) -> Callable[[Mapping[str, object]], Mapping[str, object]]:
    # An environment returns the same few key sets repeatedly: inspect each of them once.
    cut = len(prefix)
    known: dict[tuple[object, ...], list[tuple[str, str]]] = {}

    def read(info: Mapping[str, object]) -> Mapping[str, object]:
        keys = tuple(info)
        names = known.get(keys)
        if names is None:
            names = [(key, key[cut:]) for key in keys if type(key) is str and key.startswith(prefix) and len(key) > cut]
            if len(known) < 1000:
                known[keys] = names
        return {short: info[key] for key, short in names} if names else {}

    return read


def _auto_reader() -> Callable[[Mapping[str, object]], Mapping[str, object]]:
    by_prefix = _prefix_reader(_COMPONENT_PREFIX)

    def read(info: Mapping[str, object]) -> Mapping[str, object]:
        for key in _COMPONENT_DICTS:
            value = info.get(key)
            if value is not None and hasattr(value, "keys"):
                return _dict_of(value)
        return by_prefix(info)

    return read


class EpisodeInfos:
    """Collects the data in the infos of one episode.

    Args:
      keys: info keys to store, "a/b" for nested ones: per step in the trajectory, the last value in the episode's row.
      unstorable: called with values that cannot be stored.
      add_picture: takes (name, pixels) of images under info["media"]; None stores images as arrays.
    Attributes:
      is_empty: whether the episode has had no info yet.
    """

    __slots__ = ("_add_picture", "_keys", "_unstorable", "final", "is_empty", "running", "selected")

    def __init__(
        self, keys: Sequence[str], unstorable: Unstorable, add_picture: Callable[[str, object], None] | None = None
    ) -> None:
        self._keys = tuple((key, tuple(key.split("/"))) for key in keys)
        self._unstorable, self._add_picture = unstorable, add_picture
        self.begin()

    def begin(self) -> None:
        """A new episode."""
        self.running: dict[str, Tally] = {}
        self.final: dict[str, object] = {}
        self.selected: dict[str, object] = {}
        self.is_empty = True

    def take(self, info: Mapping[str, object]) -> dict[str, object] | None:
        """Read the info of one step. Returns the cells that always belong in its row of `steps`."""
        self.is_empty = False
        data, media = info.get("data"), info.get("media")
        cells: dict[str, object] | None = None
        if data is not None and hasattr(data, "get"):
            cells = self._running(data.get("running"), cells)
            final = data.get("final")
            if final is not None and hasattr(final, "items"):
                self._final(final)
        if media is not None and hasattr(media, "items"):
            cells = self._media(media, cells)
        for key, path in self._keys:
            value: object = info
            for part in path:
                value = value.get(part, UNSTORABLE) if hasattr(value, "get") else UNSTORABLE
                if value is UNSTORABLE:
                    break
            else:
                self._keep(f"info/{key}", value, self.selected)
        return cells

    def columns(self) -> dict[str, object]:
        """The columns for the episode's row."""
        columns: dict[str, object] = {}
        for name, tally in self.running.items():
            low, high = tally.range
            columns[f"running/{name}/mean"] = tally.mean
            columns[f"running/{name}/sum"] = tally.total
            columns[f"running/{name}/min"] = low
            columns[f"running/{name}/max"] = high
        columns.update(self.final)
        columns.update(self.selected)
        return columns

    def scalars(self) -> dict[str, float]:
        """The same data as curves: only single numbers."""
        scalars = {f"running/{name}/mean": tally.total / tally.n for name, tally in self.running.items() if tally.n}
        for name, value in self.final.items():
            if isinstance(value, (int, float)) and type(value) in (int, float, bool):
                scalars[name] = float(value)
        return scalars

    def _running(self, running: Any, cells: dict[str, object] | None) -> dict[str, object] | None:
        if running is None or not hasattr(running, "items"):
            return cells
        cells = {} if cells is None else cells
        for name, value in flatten(running):
            number = value if type(value) is float else scalar_of(value)
            if number is not None:
                cells[f"running/{name}"] = number
                tally = self.running.get(name)
                if tally is None:
                    tally = self.running[name] = Tally()
                tally.add(float(number))
            else:
                self._keep(f"running/{name}", value, cells)
        return cells

    def _final(self, final: Any) -> None:
        for name, value in flatten(final):
            self._keep(f"final/{name}", value, self.final)

    def _media(self, media: Any, cells: dict[str, object] | None) -> dict[str, object] | None:
        cells = {} if cells is None else cells
        for name, value in flatten(media):
            if self._add_picture is not None and is_picture(value):
                self._add_picture(name, value)
            elif is_array(value):
                cells[f"media/{name}"] = value.copy()
            else:
                self._keep(f"media/{name}", value, cells)
        return cells

    def _keep(self, name: str, value: object, into: dict[str, object]) -> None:
        cell = plain(value)
        if cell is UNSTORABLE:
            self._unstorable(name, value)
        else:
            into[name] = cell


def info_cells(info: Mapping[str, object], unstorable: Unstorable, cells: dict[str, object]) -> None:
    """Every leaf of `info` that can be stored, as cells `info/…`, without the data that `EpisodeInfos.take` stores."""
    leaves: dict[str, object] = {}
    for key, value in info.items():
        if key not in ("data", "media", "episode", "final_obs", "final_info"):
            flat(f"info/{key}", value, leaves, False)
    for name, cell in leaves.items():
        if cell is UNSTORABLE:
            unstorable(name, info.get(name.split("/")[1], info))
        else:
            cells[name] = cell
