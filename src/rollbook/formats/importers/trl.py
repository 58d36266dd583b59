"""TRL's logged completions: `completions/completions_<step>.parquet` below the output folder (`log_completions=True`).

Columns: `step`, `prompt`, `completion`, one for each reward function, those of `log_extra`, `advantage`
(TRL 1.16, trl/trainer/grpo_trainer.py, `GRPOTrainer.log`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.formats.importers._rollouts import dump_run
from rollbook.protocols import ForeignRun

_FILE = re.compile(r"completions_(\d+)\.parquet")
_OWN = ("step", "prompt", "completion", "advantage")


class TrlCompletions:
    """TRL's logged completions (`completions_<step>.parquet`) as rollouts: prompt, completion, rewards, advantage.

    Equal prompts of a step are a group. `reward` is filled if the table has one column of numbers between completion
    and advantage: the weights of several reward functions are not in the file. Only the main process writes it, and
    only at steps that are logged.
    """

    name = "trl"
    what = "TRL completions"
    files = ("completions_*.parquet",)

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run for the folder, named like the output folder above `completions`."""
        files = _files(path)
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        output = folder.parent if folder.name == "completions" else folder
        yield dump_run(f"{output.name or 'trl'}-completions", files, _rollouts)


def _rollouts(step: int, file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(file, "rb") as opened:
            table, moment = pq.read_table(opened), os.stat(file).st_mtime
        listed = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError):  # of a text that is no UTF-8
        run.lose("files that cannot be read")
        return
    if not {"prompt", "completion"} <= set(table.column_names):
        run.lose("files without a prompt and a completion")
        return
    more = [name for name in table.column_names if name not in _OWN and not name.startswith("__")]
    numbers = [name for name in more if pa.types.is_floating(table.schema.field(name).type)]
    groups: dict[str, int] = {}
    for number, row in enumerate(listed):
        prompt, turns = _text(row["prompt"]), _turns(row["completion"])
        group = groups.setdefault(prompt, len(groups))
        own = {
            "item": _text(row["completion"]),
            "reward": row[numbers[0]] if len(numbers) == 1 else None,
            "group": f"{step}-{group}",
            "mode": "train",
        }
        advantage = row.get("advantage")
        yield {
            "id": f"train-{step}-{number}",
            "time": moment,
            "clocks": {"gradient_step": step},
            "prompt": prompt,
            "turns": turns,
            "columns": {"status": "completed", **{name: row[name] for name in more if name not in own}, **own},
            "fate": None if advantage is None else {"used": True, "advantage": advantage},
        }


def _turns(completion: Any) -> list[dict[str, Any]]:
    """A completion as turns: the messages of a conversation, or one of the assistant."""
    if _is_conversation(completion):
        return [
            {"role": message.get("role"), "text": _text(message.get("content")), "calls": message.get("tool_calls")}
            for message in completion
        ]
    return [{"role": "assistant", "text": _text(completion)}]


def _text(value: Any) -> str:
    """A text as it is; one message as its content; several as lines `role: content`; all else as JSON."""
    if isinstance(value, str):
        return value
    if _is_conversation(value):
        texts = [_text(message.get("content")) for message in value]
        if len(texts) == 1:
            return texts[0]
        return "\n".join(f"{message.get('role')}: {text}" for message, text in zip(value, texts, strict=True))
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "role" in one for one in value)


def _files(path: Path) -> list[tuple[int, Path]]:
    """(step, file) of the tables at a path or in its folder `completions`, by step."""
    if path.is_file():
        there = [path]
    else:
        there = [file for folder in (path, path / "completions") for file in folder.glob("completions_*.parquet")]
    return sorted((int(match[1]), file) for file in there if (match := _FILE.fullmatch(file.name)))
