"""The data that an environment puts into the infos of an episode, for RLlib's own metrics and for files of episode
data.

The names are those that RLlib's users know. `speed` under info["data"]["running"] becomes `speed_avg_{mean,min,max}`
(the mean over the episode; then mean, min and max over the episodes) and `speed_sum_{mean,min,max}`. `parts` under
info["data"]["final"] becomes `parts_{mean,min,max}`. Both become distributions under `hist_stats`.
"""

from __future__ import annotations

import json
import math

from rollbook.adapters._plain import JsonData
from rollbook.values import flatten, scalar_of
from rollbook.values.describe import Sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

    from rollbook.values.array_types import Floats

CUSTOM, HIST, EPISODE_DATA = "custom_metrics", "hist_stats", ("episode_media", "episode_data")
MOST_VALUES = 4096
"""Values of one episode in a native distribution. For longer episodes only every second, fourth, … value is used."""


class EpisodeData:
    """Collects the data of one episode.

    Args:
      media: also store what is under info["media"], step by step, for files of episode data.
      count: called for values that are not numbers, texts, arrays or lists of those.
    """

    __slots__ = ("_count", "final", "media", "running", "wants_media")

    def __init__(self, media: bool = False, count: Callable[..., None] | None = None) -> None:
        self.wants_media, self._count = media, count
        self.running: dict[str, _Numbers] = {}
        self.final: dict[str, object] = {}
        self.media: dict[str, list[object]] = {}

    def take(self, info: Mapping[str, object], prefix: str = "") -> None:
        """Read one step's info; names get `prefix` (an agent's name and a slash)."""
        data = info.get("data")
        if data is not None and hasattr(data, "get"):
            running: Any = data.get("running")
            final: Any = data.get("final")
            if hasattr(running, "items"):
                for name, value in flatten(running, prefix):
                    number = scalar_of(value)
                    if number is not None:
                        known = self.running.get(name)
                        if known is None:
                            known = self.running[name] = _Numbers()
                        known.add(float(number))
            if hasattr(final, "items"):
                self.final.update(flatten(final, prefix))
        if self.wants_media:
            media: object = info.get("media")
            if hasattr(media, "items"):
                for name, value in media.items():
                    self.media.setdefault(f"{prefix}{name}", []).append(self._storable(f"{prefix}{name}", value))

    def push(self, metrics_logger: MetricsLogger) -> None:
        """Add the episode to RLlib's metrics, so that its own outputs have it."""
        for name, numbers in self.running.items():
            self._stats(metrics_logger, f"{name}_avg", numbers.total / numbers.sample.n)
            self._stats(metrics_logger, f"{name}_sum", numbers.total)
            metrics_logger.log_value((HIST, name), _array(numbers.sample.values), reduce="item_series")
        for name, value in self.final.items():
            number = scalar_of(value)
            if number is not None:
                self._stats(metrics_logger, name, float(number))
                metrics_logger.log_value((HIST, name), _array([float(number)]), reduce="item_series")
        if self.wants_media and self.media:
            metrics_logger.log_value(EPISODE_DATA, self.text(), reduce="item_series")

    def text(self) -> str:
        """The media as JSON: {name: values per step}. NaN and infinities become null."""
        return json.dumps(self.media, allow_nan=False, separators=(",", ":"))

    @staticmethod
    def _stats(metrics_logger: MetricsLogger, name: str, value: float) -> None:
        # RLlib's own mean would average the env runners' means, whatever their numbers of episodes: see `tidy`.
        metrics_logger.log_value((CUSTOM, f"{name}_mean"), value, reduce="item_series")
        for reduce in ("min", "max"):
            metrics_logger.log_value((CUSTOM, f"{name}_{reduce}"), value, reduce=reduce)

    def _storable(self, name: str, value: object) -> object:
        walk = JsonData()
        data, odd = walk(value), walk.odd
        if odd is not None and self._count is not None:
            self._count(
                f"rllib/object_in/{name}",
                message=f"info['media'] holds {name!r}, a {type(odd).__module__}.{type(odd).__qualname__} that JSON "
                "cannot hold; its repr is kept. Return numbers, texts, arrays, lists or dicts of those",
            )
        return data


class _Numbers:
    """The sum of numbers, and a sample of at most `MOST_VALUES` of them."""

    __slots__ = ("sample", "total")

    def __init__(self) -> None:
        self.sample, self.total = Sample(MOST_VALUES), 0.0

    def add(self, number: float) -> None:
        self.sample.add((number,))
        self.total += number


def tidy(result: dict[str, object]) -> None:
    """Take means over all episodes, and make every distribution a flat list, for any number of episodes.

    RLlib returns a series of one item without its list, and its TensorBoard writer drops lists of arrays of different
    lengths. Either would make a distribution appear or vanish with the number of episodes.
    """
    for part in _parts(result):
        custom: Any = part.get(CUSTOM)
        if hasattr(custom, "items"):
            for path, name, value in list(_leaves(custom)):
                if str(name).endswith("_mean") and (hasattr(value, "tolist") or isinstance(value, (list, tuple))):
                    values = _flat(value)
                    path[name] = math.fsum(values) / len(values) if values else math.nan
        distributions: Any = part.get(HIST)
        if hasattr(distributions, "items"):
            for path, name, value in list(_leaves(distributions)):
                path[name] = _flat(value)


def take_episode_data(result: dict[str, object]) -> list[str]:
    """Take out the JSON texts of the episodes in a result: first those of training, then those of the evaluation."""
    texts: list[str] = []
    for part in _parts(result):
        media: Any = part.get(EPISODE_DATA[0])
        if not hasattr(media, "get"):
            continue
        listed = media.get(EPISODE_DATA[1])
        texts += [listed] if isinstance(listed, str) else [text for text in listed or () if isinstance(text, str)]
        media.pop(EPISODE_DATA[1], None)
        if not media:
            part.pop(EPISODE_DATA[0])
    return texts


class Evaluations:
    """Distinguishes results with a new evaluation from those to which RLlib attaches the last one again.

    Between two evaluations RLlib repeats the last one in every result. A new evaluation always differs in its times.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def without_repeated(self, result: dict[str, object]) -> dict[str, object]:
        """The result; if the previous result had the same evaluation, a copy without it."""
        evaluation: Any = result.get("evaluation")
        if not hasattr(evaluation, "items"):
            return result
        fingerprint = _fingerprint(evaluation)
        if fingerprint != self._last:
            self._last = fingerprint
            return result
        take_episode_data({"evaluation": evaluation})  # nor in RLlib's own outputs
        return {name: value for name, value in result.items() if name != "evaluation"}


_SHAPED = (CUSTOM, HIST, EPISODE_DATA[0])
"""The parts of a result that `tidy` and `take_episode_data` change."""


def _fingerprint(evaluation: Mapping[str, object]) -> int:
    """A value shared by an evaluation and its repetitions only: its times.

    In repetitions, RLlib 2.60 changes the type of counters, updates lifetime counters, measures throughputs again, and
    leaves out the state of the workers.
    """
    numbers = [
        (name, float(number))
        for name, value in flatten(evaluation)
        if "lifetime" not in name
        and "throughput" not in name
        and not any(part in _SHAPED for part in name.split("/"))
        and (number := scalar_of(value)) is not None
    ]
    fractions = [(name, repr(number)) for name, number in numbers if not number.is_integer()]
    return hash(tuple(fractions or numbers))


def _parts(result: dict[str, object]) -> list[Any]:
    evaluation: object = result.get("evaluation")
    inside: object = evaluation.get("env_runners") if hasattr(evaluation, "get") else None
    parts: tuple[object, ...] = (result.get("env_runners"), inside)
    return [part for part in parts if hasattr(part, "get")]


def _leaves(tree: Any) -> Iterator[tuple[dict[str, object], str, object]]:
    for name, value in tree.items():
        if hasattr(value, "items"):
            yield from _leaves(value)
        else:
            yield tree, name, value


def _flat(value: object) -> list[float]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _flat(item)]
    number = scalar_of(value)
    return [] if number is None else [float(number)]


def _array(numbers: Sequence[float]) -> Floats:
    import numpy as np

    return np.asarray(numbers)
