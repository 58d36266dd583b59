"""All values of RLlib's and Tune's results as rows of a run, with the same names and numbers.

    Walker(include=["env_runners/", "learners/"]).log(run, result)

A result is a nested dict of numbers, arrays, texts and other values from callbacks; names are joined with "/".
"""

from __future__ import annotations

import re

from rollbook.errors import BadInput
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.run.scope import Scope

    Patterns = str | Iterable[str] | None
    """Regular expressions on names: one, several, or none."""

SKIPPED = ("config",)
"""Entries of every result that are not logged: the configuration is stored once, with the run."""
_CHANGING_TEXTS = ("date",)


def flatten_result(result: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a nested result as ("a/b", value). Keys that are not text (policy numbers, tuples) become text."""
    for key, value in result.items():
        name = f"{prefix}{'/'.join(map(str, key)) if isinstance(key, tuple) else key}"
        if not prefix and name in SKIPPED:
            continue
        if hasattr(value, "items") and hasattr(value, "keys"):
            yield from flatten_result(value, f"{name}/")
        else:
            yield name, value


def clocks_of(result: Mapping[Any, object]) -> dict[str, int]:
    """The clocks of a result: `env_step`, `epoch` (the training iteration) and `policy_version` (of the sampling)."""
    runners: object = result.get("env_runners")
    reported = {
        "env_step": _first(
            result.get("num_env_steps_sampled_lifetime"),
            runners.get("num_env_steps_sampled_lifetime") if hasattr(runners, "get") else None,
            result.get("timesteps_total"),
        ),
        "epoch": result.get("training_iteration"),
        "policy_version": runners.get("weights_seq_no") if hasattr(runners, "get") else None,
    }
    clocks = {}
    for name, value in reported.items():
        number = scalar_of(value)
        if number is not None and number == number and int(number) == number:
            clocks[name] = int(number)
    return clocks


def file_step(result: Mapping[Any, object]) -> int:
    """The step that names the files of a result: env steps, or else the iteration."""
    total = scalar_of(result.get("timesteps_total"))
    clocks = clocks_of(result)
    return int(total) if total else clocks.get("env_step") or clocks.get("epoch") or 0


class Walker:
    """Logs results.

    Args:
      include: regular expressions (or one); only names that contain a match are logged. None: all.
      exclude: the same; names that contain a match are left out.
    Raises:
      BadInput: not a regular expression.
    """

    def __init__(self, include: str | Iterable[str] | None = None, exclude: str | Iterable[str] | None = None) -> None:
        self._include, self._exclude = _patterns("include", include), _patterns("exclude", exclude)
        self._texts: dict[str, str] = {}
        self._lists: set[str] = set()
        self._wanted: dict[str, bool] = {}

    def wants(self, name: str) -> bool:
        """Whether values of that name are logged."""
        known = self._wanted.get(name)
        if known is None:
            known = not self._include or any(p.search(name) for p in self._include)
            known = known and not any(p.search(name) for p in self._exclude)
            self._wanted[name] = known
        return known

    def log(
        self, run: Scope, result: Mapping[Any, object], more: Iterator[tuple[str, object]] | None = None
    ) -> dict[str, Any]:
        """Log one result at its clocks.

        Numbers go into one row, texts only when they change. Lists and arrays of numbers are distributions; arrays that
        look like images or videos are logged as such. Other values are counted under `rllib/unloggable` and named once.

        Args:
          more: pairs of name and value to log instead of all leaves of the result.
        Returns:
          The row.
        """
        clocks, row = clocks_of(result), {}
        for name, value in more if more is not None else flatten_result(result):
            if value is None or not self.wants(name):
                continue
            number = scalar_of(value)
            if isinstance(value, str):
                self._text(run, name, value, clocks)
            elif number is None or (name in self._lists and not isinstance(value, bool)):
                if not self._several(run, name, value, clocks):
                    run.count(
                        "rllib/unloggable",
                        message=f"the result holds {name!r}, a {type(value).__module__}.{type(value).__qualname__}, "
                        "which no table can hold; it was left out, everything else was logged. Exclude it, or "
                        "report numbers, texts or arrays",
                    )
            else:
                row[name] = number
        if row:
            run.log(row, **clocks)
        return row

    def _text(self, run: Scope, name: str, value: str, clocks: Mapping[str, int]) -> None:
        if name not in _CHANGING_TEXTS and self._texts.get(name) != value:
            self._texts[name] = value
            run.log_text(name, value, **clocks)

    def _several(self, run: Scope, name: str, value: object, clocks: Mapping[str, int]) -> bool:
        """Log a value that is not a single number. Returns False if that is not possible."""
        import numpy as np

        if scalar_of(value) is not None:  # a series of one item, which RLlib returns without its list
            value = [value]
        if isinstance(value, (list, tuple)):
            self._lists.add(name)
            if not value:
                return True
            done = [self._picture(run, name, item, clocks) for item in value]
            if all(done):
                return True
        elif self._picture(run, name, value, clocks):
            return True
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            return False  # ragged
        if array.dtype.kind not in "biuf":
            return False
        if array.size:
            run.log_histogram(name, array.reshape(-1), **clocks)
        return True

    def _picture(self, run: Scope, name: str, value: object, clocks: Mapping[str, int]) -> bool:
        """Log `value` if it is an array that looks like an image ([h, w, 1|3|4] or channels first) or a video."""
        array: Any = value
        shape: tuple[int, ...] = getattr(value, "shape", ())
        if getattr(getattr(value, "dtype", None), "kind", "") not in "uf" or len(shape) not in (3, 4, 5):
            return False
        if shape[-1] in (1, 3, 4) and min(shape[-3:-1]) >= 8:
            pass
        elif shape[-3] in (1, 3, 4) and min(shape[-2:]) >= 8:
            import numpy as np

            array = np.moveaxis(array, -3, -1)
        else:
            return False
        from rollbook.adapters._pixels import as_uint8

        array = as_uint8(array)
        if len(shape) == 3:
            run.log_image(name, array, **clocks)
        else:
            videos = array if len(shape) == 5 else array[None]
            for video in videos:
                run.log_video(name, video, **clocks)
        return True


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _patterns(what: str, given: Patterns) -> list[re.Pattern[str]]:
    try:
        return [re.compile(text) for text in ([given] if isinstance(given, str) else given or ())]
    except (re.error, TypeError) as err:
        raise BadInput(
            f"{what}={given!r:.200}: {err}. Give regular expressions, such as 'env_runners/.*_mean'"
        ) from err
