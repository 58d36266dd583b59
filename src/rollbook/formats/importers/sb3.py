"""Folders of Stable-Baselines3: evaluations.npz and Monitor files, with progress.json or progress.csv."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from rollbook.formats.importers._metadata import describe
from rollbook.formats.importers.csv import Csv
from rollbook.formats.importers.jsonl import JsonLines
from rollbook.protocols import ForeignRun, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_EVALUATIONS = "evaluations.npz"


class StableBaselines3:
    """Folders of Stable-Baselines3 and RL Zoo: evaluations.npz, Monitor files, progress.json or progress.csv.

    Each evaluation episode is an episode of the scope `test`, each line of a Monitor file one of `train`. Without a
    progress file, the means of the evaluations are `eval/mean_reward`, `eval/mean_ep_length` and `eval/success_rate`,
    Stable-Baselines3's names. RL Zoo's args.yml and config.yml are the configuration.
    """

    name = "sb3"
    what = "Stable-Baselines3 logs"
    files = (_EVALUATIONS, "monitor.csv", "*.monitor.csv")
    includes = ("csv", "jsonl")

    def finds(self, path: Path) -> bool:
        """Whether there is an evaluations.npz, or there are Monitor files."""
        return path.name == _EVALUATIONS if path.is_file() else bool(_own(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run: all files of the folder."""
        base = path.resolve()
        folder = base.parent if path.is_file() else base
        run = ForeignRun(folder.name)
        run.folder = folder
        describe(run, folder)
        parts: dict[str, Callable[[], Iterable[Row]]] = {}
        progress = next((name for name in ("progress.json", "progress.csv") if (folder / name).is_file()), "")
        if progress and path.is_dir():
            (inner,) = (JsonLines() if progress.endswith(".json") else Csv()).runs(folder / progress)
            _counts_with(inner, run)
            parts.update(inner.parts)
        own = _own(folder) if path.is_dir() else [base]
        if (evaluations := folder / _EVALUATIONS) in own:
            parts[_EVALUATIONS] = functools.partial(self._evaluations, evaluations, run, not progress)
        monitors = [file for file in own if file.name != _EVALUATIONS]
        if monitors:
            inner = Csv().of_files(folder, monitors, alone=not progress)
            _counts_with(inner, run)
            run.env = inner.env
            parts.update(inner.parts)
        run.files = [*([folder / progress] if progress and path.is_dir() else []), *own]
        run.give(parts)
        return [run]

    def _evaluations(self, file: Path, run: ForeignRun, with_means: bool) -> Iterator[Row]:
        import numpy as np

        try:
            moment = os.stat(file).st_mtime
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            steps, results = arrays["timesteps"], arrays["results"]
            lengths, successes = (arrays.get(name) for name in ("ep_lengths", "successes"))
            if results.ndim == 3 and results.shape[2] == 1:  # Stable-Baselines3 before 1.1
                results = results[:, :, 0]
            lengths, successes = (
                part[:, :, 0] if part is not None and part.ndim == 3 and part.shape[2] == 1 else part
                for part in (lengths, successes)
            )
            shape = results.shape
            if (
                results.ndim != 2
                or len(steps) != len(results)
                or any(part is not None and part.shape != shape for part in (lengths, successes))
            ):
                raise ValueError(f"arrays of the shapes {shape} and others")
        except Exception:  # a zip file's own errors, and those of numpy
            run.lose("evaluations.npz that cannot be read")
            return
        for n, step in enumerate(steps.tolist()):
            clocks = {"env_step": int(step)}
            if with_means:
                means = {"eval/mean_reward": float(results[n].mean())}
                if lengths is not None:
                    means["eval/mean_ep_length"] = float(lengths[n].mean())
                if successes is not None:
                    means["eval/success_rate"] = float(successes[n].mean())
                yield Row(moment, clocks, means)
            for k in range(shape[1]):
                episode: dict[str, Any] = {"episode_id": f"evaluation-{n}-{k}", "return": float(results[n, k])}
                if lengths is not None:
                    episode["length"] = int(lengths[n, k])
                if successes is not None:
                    episode["success"] = bool(successes[n, k])
                yield Row(moment, clocks, episode, scope="test", table="episodes")


def _counts_with(inner: ForeignRun, run: ForeignRun) -> None:
    """Let what is left out of a part be counted with the whole."""
    inner.left_out, inner.lost = run.left_out, run.lost


def _own(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [
        folder / name
        for name in names
        if name == _EVALUATIONS or name == "monitor.csv" or name.endswith(".monitor.csv")
    ]
