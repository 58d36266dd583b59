"""Looks at comparisons, stored with the runs, so that each further look allows for those before it.

`<root>/comparisons/looks/<digest of the question>.json` holds the looks without a plan, `comparisons/<name>-<digest of
the projects>.json` a plan and its looks. A question is what is measured in which projects; its looks are
those of pairs of groups.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rollbook.compare.facts import Fact
from rollbook.compare.plans import plan_data
from rollbook.errors import BadInput, InvalidName
from rollbook.schema.addresses import is_address
from rollbook.stats import Study
from rollbook.system import files

Asked = Mapping[str, object]
"""The question: projects, metric, score, task …"""


class Kept(NamedTuple):
    """What is stored of a question, and where.

    Attributes:
      path: "" if the runs are in no folder that can be written to.
      plan: its name; None without a plan.
      asked: the question.
      study: the plan and its looks; None: there is none yet.
      seeds: of a plan, group -> the runs that were looked at.
    """

    path: str
    plan: str | None
    asked: Asked
    study: Study | None = None
    seeds: Mapping[str, Sequence[str]] = {}


def kept(root: str, plan: str | None, asked: Asked, of_plan: Asked) -> Kept:
    """What is stored of a question.

    Args:
      root: the folder of the runs; "" or an address: nothing is kept.
      plan: its name, or None.
      asked: the question, which looks without a plan share.
      of_plan: what else a plan is about: the field of the groups, for example.
    Raises:
      BadInput: the plan was made for another question.
      InvalidName: the name of the plan cannot be that of a file.
    """
    if plan is not None:
        asked = {**asked, **of_plan}
    path = "" if not root or is_address(root) else _path(root, plan, asked)
    stored = files.read_json(path) if path and os.path.exists(path) else {}
    if not isinstance(stored.get("study"), dict):
        return Kept(path, plan, asked)
    if plan is not None and stored.get("asked") != asked:
        raise BadInput(
            f"compare(plan={plan!r}): this plan was made for {_in_words(stored.get('asked'))}, and now "
            f"{_in_words(asked)} is asked. A plan says beforehand what is compared.",
            "Take another name for another question",
        )
    try:
        study = Study.from_data(stored["study"])
    except (BadInput, KeyError, TypeError, ValueError) as err:
        if plan is None:
            return Kept(path, plan, asked)  # looks of another version: start counting again
        raise BadInput(f"compare(plan={plan!r}): {err}") from err
    seeds = stored.get("seeds")
    return Kept(path, plan, asked, study, seeds if isinstance(seeds, dict) else {})


def keep(before: Kept, study: Study, seeds: Mapping[str, Sequence[str]]) -> list[Fact]:
    """Store a look; a fact if that is not possible. Nothing is written where nothing is new.

    Raises:
      BadInput: runs that a plan has looked at are missing.
    """
    if before.plan is not None:
        _refuse_missing_seeds(before.plan, before.seeds, seeds)
    elif study.looks == (before.study.looks if before.study is not None else ()):
        return []
    if not before.path:
        return [Fact("look not kept", values={"why": "the runs are not in one folder here"})]
    data: dict[str, Any] = {"asked": before.asked, "study": study.as_data()}
    if before.plan is not None:
        data |= {"name": before.plan, "seeds": seeds, "verdicts": [verdict.as_data() for verdict in study.verdicts]}
    try:
        os.makedirs(os.path.dirname(before.path), exist_ok=True)
        files.write_json(before.path, data)
    except OSError as err:
        return [Fact("look not kept", values={"why": f"{os.path.dirname(before.path)}: {err.strerror or err}"})]
    return []


def plans_below(root: str) -> list[dict[str, Any]]:
    """The plans stored with the runs of a folder, by name: name, asked, and `compare.plan_data` with the last verdicts.

    Links and files that are not plans are left out.
    """
    folder = os.path.join(root, "comparisons")
    plans = []
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, file)
        stored = files.read_json(path) if file.endswith(".json") and not os.path.islink(path) else {}
        if isinstance(stored.get("asked"), dict) and isinstance(stored.get("study"), dict) and stored.get("name"):
            try:
                data = plan_data(Study.from_data(stored["study"]))
            except (BadInput, KeyError, TypeError, ValueError):
                continue
            verdicts = stored.get("verdicts")
            plans.append({"name": str(stored["name"]), "asked": stored["asked"], **data, "verdicts": verdicts or []})
    return plans


def _path(root: str, plan: str | None, asked: Asked) -> str:
    folder = os.path.join(root, "comparisons")
    if plan is None:
        return os.path.join(folder, "looks", f"{_digest(asked)}.json")
    if not plan or any(c in plan for c in "/\\\0") or plan.startswith("."):
        raise InvalidName(f"plan={plan!r}: a plan's name becomes a file's name.", "Use letters, digits, - and _")
    return os.path.join(folder, f"{plan}-{_digest(asked.get('projects'))[:8]}.json")


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _in_words(asked: object) -> str:
    """The question of a plan: metric='test/return', by='config.algo', …"""
    if not isinstance(asked, Mapping):
        return "?"
    return ", ".join(f"{name}={value!r}" for name, value in asked.items() if value)


def _refuse_missing_seeds(plan: str, before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> None:
    """Raise if seeds of the last look are missing in this one."""
    for arm, names in before.items():
        gone = [name for name in names if name not in now.get(arm, ())]
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise BadInput(
                f"compare(plan={plan!r}): of {arm}, {gone[0]}{more} had a score at the last look and none now. "
                "A plan keeps the runs that were looked at.",
                "Choose them, too, or make a new plan for seeds that were not looked at",
            )
