"""`rollbook shapes`: what each command prints with `--json`. Tests hold real answers to it."""

from __future__ import annotations

import click

from rollbook.cli.output import print_json

VERSION = 1
"""Rises when a field goes or changes its meaning; fields that are added do not change it."""

# fmt: off
_ROW = {
    "time": "text", "scope": "text", "at": "text", "attempt": "integer", "writer": "text", "lane": "integer",
    "seq": "integer", "index": "integer", "*": "any",
}
_FINDING = {
    "run": "text", "project": "text", "name": "text", "level": "text", "rule": "text", "key": "text",
    "message": "text", "clocks": {"*": "integer"},
}
_CHECKPOINT = {"id": "text", "path": "text", "score": "number?", "*": "any"}
_UPLOAD = {
    "run": "text", "pieces": "integer", "bytes": "integer", "files": "integer", "stored": "integer", "swept": "integer",
    "done": "boolean", "remark": "text",
}
_DOWNLOAD = {"run": "text", "files": "integer", "bytes": "integer", "there": "integer"}

SHAPES: dict[str, object] = {
    "board": [{"name": "text", "first": "boolean", "state": {"*": "any"}}],
    "ls": [{"id": "text", "*": "any"}],
    "show": {
        "path": "text", "project": "text", "name": "text", "id": "text", "status": "text", "failure": "any",
        "why": "text?",
        "seed": "integer?", "attempts": "integer", "created": "number?", "ended": "number?", "worked": "number",
        "resume": ["text"], "patch?": "text", "config": {"*": "any"},
        "summary": {"*": "any"}, "writers": {"*": "integer"}, "seconds": {"*": "number"},
        "checkpoints": {"kept": "integer", "*": _CHECKPOINT}, "tables": {"*": "integer"},
        "keys": {"*": {"value": "any", "*": "integer"}},
        "alerts": [{"rule": "text", "level": "text", "message": "text", "*": "any"}],
        "drops": {"*": "integer"}, "remarks": {"*": "integer"}, "reports": {"*": "text"},
        "retention": {"*": "integer"},
        "silent_sinks": {"*": "any"}, "remote": {"*": "any"},
        "problems": ["text"],
    },
    "cause": {
        "sentences": ["text"], "x": "text", "at": "number", "time": "number?", "clocks": {"*": "integer"},
        "attempt": "integer?", "window": "number",
        "value": "any", "unusual": [{"key": "text", "at": "number", "*": "any"}], "looked_at": "integer",
        "alerts": [{"*": "any"}], "episodes": [{"*": "any"}], "media": [{"*": "any"}], "samples": [{"*": "any"}],
        "text": [{"*": "any"}], "in_window": {"*": "integer"}, "checkpoint_before": "any", "checkpoint_after": "any",
        "timings": "any", "log_name": "text?", "log": ["text"], "values?": [{"*": "any"}], "others?": {"*": "any"},
    },
    "logs": [{
        "time?": "number?", "stream?": "text", "text?": "text", "name?": "text", "label?": "text", "bytes?": "integer",
    }],
    "disk": {
        "sentences": ["text"], "total": "integer",
        "runs": [{
            "run": "text", "id": "text", "status": "text", "total": "integer", "tables": "integer",
            "journal": "integer", "checkpoints": "integer", "media": "integer", "logs": "integer", "other": "integer",
        }],
    },
    "rm": {
        "sentences": ["text"], "dry_run?": "boolean", "bin?": "text", "refused?": {"*": "text"},
        "runs": [{"path": "text", "id": "text", "bytes": "integer", "*": "any"}],
    },
    "plot": {"text": "text?", "wrote": "text?"},
    "compare": {
        "sentences": ["text"],
        "pairs": [{
            "a": "text", "b": "text", "outcome?": "text", "better?": "text?", "won?": "number", "of?": "integer",
            "p?": "number?", "limit?": "number?", "look?": "integer", "any_shape?": "number?", "holds?": "boolean?",
            "enough?": "integer?", "more?": "integer?", "difference": "number?", "sentence": "text", "*": "any",
        }],
        "more_seeds": {"*": "integer"},
        "groups": [{
            "group": "text", "n": "integer", "low": "number?", "high": "number?", "method": "text", "claim": "number?",
            "crashed": "integer", "running": "integer", "*": "any",
        }],
        "*": "any",
    },
    "novelty": [{"rows": "integer", "new": "integer", "repeated": "integer", "*": "number"}],
    "unused": [{"reason": "text", "groups": "integer", "rows": "integer", "ids": ["text"], "*": "number"}],
    "shared-prompts": {
        "sentences": ["text"], "measure": "text", "parts": ["text"], "above": ["number?"], "shared": "integer",
        "only": ["integer"], "mean": "any", "better": "integer", "worse": "integer",
        "prompts": [{
            "task_id": "text", "prompt": "text?", "gain": "number", "n": "integer", "mean": "number",
            "solved": "integer", "example": "text", "n_other": "integer", "mean_other": "number",
            "solved_other": "integer", "example_other": "text",
        }],
    },
    "sweep": {
        "sentences": ["text"],
        "settings": [{
            "setting": "text", "share": "number?", "low": "number?", "high": "number?", "alone": "number?",
            "goes_with": "text", "alike": "boolean", "levels": "integer",
            "together": ["text"], "why": "text",
        }],
        "configurations": [{
            "configuration": "text", "mean": "number?", "std": "number?", "n": "integer", "may_be_best": "boolean",
            "crashed": "integer", "running": "integer", "*": "any",
        }],
    },
    "curves": {"key": "text", "axis": "text", "sentences": ["text"], "points": [{"*": "any"}]},
    "findings": {
        "findings": [{"*": "any"}], "alerts": "integer", "looked_at": "integer", "quiet": "integer",
        "sentences": ["text"],
    },
    "plans": [{"*": "any"}],
    "series": {
        "sentences": ["text"], "series": [{"run": "text", "key": "text", "axis": "text", "*": "any"}],
        "points": [{"run": "text", "key": "text", "axis": "text", "rows": "integer", "*": "any"}],
    },
    "diff": {
        "sentences": ["text"], "equal": "integer",
        "differences": [{
            "kind": "text", "name": "text", "value": "text", "runs": "text", "n": "integer", "mean": "number?",
            "explained": "number?",
        }],
    },
    "scores": [{
        "algorithm": "text", "runs": "integer", "statistic": "text", "estimate": "number", "low": "number?",
        "high": "number?", "*": "any",
    }],
    "seeds": {
        "std": "number", "power": "number", "difference": "number?", "seeds_needed": "integer?",
        "fewest": "integer", "pairs_compared": "integer",
        "detectable": [{"seeds": "integer", "difference": "number?"}], "pairs": [{"*": "any"}], "sentences": ["text"],
    },
    "report": {"wrote": "text"},
    "tail": {"time": "number", "clocks": {"*": "integer"}, "values": {"*": "any"}},
    "wait": {
        "outcome": "text", "run": "text", "path": "text", "status": "text", "values": {"*": "any"},
        "seconds": "number", "hint?": "text",
    },
    "alerts": [{**_FINDING, "time": "text", "seconds": "number"}],
    "check": [_FINDING],
    "episodes": [{**_ROW, "episode_id": "text", "return": "number?", "length": "number?"}],
    "samples": [{**_ROW, "sample_id": "text", "item": "text"}],
    "text": [{**_ROW, "key": "text", "text": "text"}],
    "media": [{**_ROW, "key": "text", "kind": "text", "path": "text", "file": "text?"}],
    "rows": [_ROW],
    "checkpoints": [{
        **_ROW, "checkpoint_id": "text", "path": "text", "score": "number?", "is_best": "boolean", "kept": "boolean",
        "status": "text",
    }],
    "play": {"video": "text", "episode": "text"},
    "timings": [{
        "name": "text", "calls": "integer", "seconds": "number", "own": "number", "share": "number",
        "median": "number", "p99": "number", "longest": "number", "first": "number", "begin?": "number?",
        "width?": "number?",
        "strip?": [{"stretch": "integer", "calls": "integer", "seconds": "number", "own": "number"}],
    }],
    "rollouts": [{"*": "any"}],
    "export": {"wrote": "text", "counts": {"*": "integer"}},
    "sql": [{"*": "any"}],
    "views": {"sql": "text"},
    "import": [{"folder": "text", "rows": "integer", "left_out": {"*": "integer"}}],
    "forward": {"sink": "text", "rows": "integer"},
    "verify": {"*": ["text"]},
    "repair": {"*": ["text"]},
    "join": {"files": "integer", "bytes": "integer", "known": "integer", "clashes": ["text"]},
    "seal": {
        "segments": "integer", "frame_files": "integer", "rows": "integer", "aside": "integer", "merged": "integer",
        "problems": ["text"],
    },
    "trim": {
        "keep_bytes": "integer", "bytes": "integer", "tokens": "integer", "text": "integer", "answers": "integer",
    },
    "push": _UPLOAD,
    "pull": {"runs": [_DOWNLOAD], "problems": ["text"]},
    "sync": {"up": _UPLOAD, "down": _DOWNLOAD, "tidied": {"*": "integer"}},
    "catalogue": {"runs": "integer", "seconds_old": "number", "problems": ["text"]},
    "shapes": {"version": "integer", "shapes": {"*": "any"}},
}
# fmt: on
"""Command -> what it prints. `tail` prints one such object a line; `episodes --episode` one row with what was kept.

"text", "integer", "number", "boolean" and "any" name values; a `?` behind one means that it may be null, a `?` behind
a field that it may be missing, and the field `*` stands for further ones. A number that JSON does not have is a text.
"""


@click.command()
@click.argument("command", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (the only form).")
def shapes(command: str | None, as_json: bool) -> None:
    """Print what a command, or every command, answers with --json.

    The version rises when a field goes or changes its meaning; more fields may come in any release.

    \b
    Examples:
      rollbook shapes
      rollbook shapes compare
    """
    from rollbook.errors import did_you_mean

    if command is not None and command not in SHAPES:
        raise click.UsageError(f"{command!r} has no answer in JSON.{did_you_mean(command, list(SHAPES))}")
    print_json({"version": VERSION, "shapes": SHAPES if command is None else {command: SHAPES[command]}})
