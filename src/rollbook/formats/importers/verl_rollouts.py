"""verl's dumps of generations: one file of JSON lines per step, in `trainer.rollout_data_dir` or `validation_data_dir`.

Each line has `input`, `output`, `gts`, `score`, `step` and further values of the reward function
(verl 0.9.1, verl/trainer/ppo/ray_trainer.py, `_dump_generations`; the same at commit b178a3c).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.formats.importers._rollouts import TABLES, records_of, rows_of, with_metrics
from rollbook.protocols import ForeignRun, Row

_FILE = re.compile(r"(\d+)\.jsonl")
_FIRST = 1 << 20
_LOOKED_AT = 8
"""Files at the beginning, of which some may be damaged."""


class VerlRollouts:
    """verl's dumps of generations (`<step>.jsonl`) as rollouts: prompt, answer, score, step.

    Equal prompts of a step are a group. verl records neither advantages nor dropped samples, so there are no fates. A
    folder whose name has "val" holds evaluations.
    """

    name = "verl_rollouts"
    what = "verl rollouts"
    files = ("[0-9]*.jsonl",)
    includes = ("jsonl",)

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run for the folder."""
        files = _files(path)
        if not files:
            return
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        run = ForeignRun(folder.name or "rollouts", files=[file for _step, file in files], tables=TABLES)
        run.rows = functools.partial(self._rows, files, run, "eval" if "val" in folder.name.lower() else "train")
        yield with_metrics(run, folder)

    def _rows(self, files: list[tuple[int, Path]], run: ForeignRun, mode: str) -> Iterator[Row]:
        run.left_out.clear()
        return rows_of(one for step, file in files for one in _rollouts(step, file, run, mode))


def _rollouts(step: int, file: Path, run: ForeignRun, mode: str) -> Iterator[dict[str, Any]]:
    groups: dict[str, int] = {}
    for number, (record, moment) in enumerate(records_of(file, run)):
        if "output" not in record:
            run.lose("lines without an output")
            continue
        prompt = None if record.get("input") is None else str(record["input"])
        answer = str(record["output"])
        more = {str(name): cell for name, cell in record.items() if name not in ("input", "output", "score", "step")}
        group = groups.setdefault(prompt or "", len(groups))
        own = {"item": answer, "reward": record.get("score"), "group": f"{step}-{group}", "mode": mode}
        yield {
            "id": f"{mode}-{step}-{number}",
            "time": moment,
            "clocks": {"gradient_step": step},
            "prompt": prompt,
            "turns": [{"role": "assistant", "text": answer}],
            "columns": {"status": "completed", **{name: more[name] for name in more if name not in own}, **own},
            "fate": None,
        }


def _files(path: Path) -> list[tuple[int, Path]]:
    """(step, file) of the dumps at a path, by step; none unless one of the first has outputs."""
    there = [path] if path.is_file() else list(path.glob("*.jsonl")) if path.is_dir() else []
    files = sorted((int(match[1]), file) for file in there if (match := _FILE.fullmatch(file.name)))
    return files if any(_is_dump(file) for _step, file in files[:_LOOKED_AT]) else []


def _is_dump(file: Path) -> bool:
    try:
        with open(file, "rb") as opened:
            first = opened.read(_FIRST)
    except OSError:
        return False
    return b'"output"' in first and b'"input"' in first
