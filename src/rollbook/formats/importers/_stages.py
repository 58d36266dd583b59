"""Which folders of stages (`train`, `eval`, `logs/validation`) are parts of one training; one rule for all formats."""

from __future__ import annotations

from rollbook.formats.importers._events import last_moment
from rollbook.formats.importers._names import EVENT_FILE
from rollbook.formats.importers._paths import NEUTRAL, STAGES, TRAINING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rollbook.formats.importers._found import FoundRun
    from rollbook.protocols import ForeignRun

_TOGETHER = 1.0
"""Seconds by which the name of an event file may be too early: it has whole ones."""


def stages_joined(
    whole: dict[Path, list[FoundRun]], parts: list[FoundRun], prefixes: dict[int, str], opened: tuple[Path, Path]
) -> list[list[FoundRun]]:
    """Give the folders of stages (`train`, `eval`) and neutral ones (`tb`) to the folder of their training.

    They are its parts if there is nothing else next to them, and either the folder above has rows itself, or there
    are two stages at least. Event files say when they were written: what had ended before the training began, or goes
    with an earlier one in the same folder, is not put to it.

    Args:
      whole: folder -> the runs that are all of it; changed.
      parts: runs that share their folder with others: of event files the trainings before the newest.
      prefixes: gets what the keys of each begin with.
      opened: the folder that was opened, and its real path: a project, unless event files are in it.
    Returns:
      The stages of each earlier training.
    """
    below: dict[Path, list[Path]] = {}
    for folder in whole:
        below.setdefault(folder.parent, []).append(folder)
    earlier: list[list[FoundRun]] = []
    for above in sorted(below, key=lambda above: len(above.parts), reverse=True):
        stages = [folder for folder in below[above] if folder.name.lower() in STAGES]
        neutral = [folder for folder in below[above] if folder.name.lower() in NEUTRAL]
        if len(stages) + len(neutral) < len(below[above]):
            continue  # other trainings are next to them
        is_opened = above in opened
        has_rows = above in whole and not is_opened
        if is_opened and stages and all(map(_is_of_events, whole.get(above, ()))):
            has_rows = above in whole  # a folder of event files is a training, not a project
        if not has_rows and len(stages) < 2:
            continue
        groups = _by_training([one for one in parts if one.run.folder in stages], stages, whole)
        for folder in stages if is_opened else [*stages, *neutral]:
            if groups and folder in stages:
                whole.pop(folder)
                continue
            for one in whole.pop(folder):
                prefixes[id(one)] = f"{folder.name}/" if folder in stages else ""
                one.run.folder = above
                whole.setdefault(above, []).append(one)
        for group in groups:
            for one in group:
                prefixes[id(one)] = f"{one.run.folder.name}/" if one.run.folder is not None else ""
            part = group[0].run.part
            for one in group:
                one.run.folder, one.run.part = above, part
            if part:
                earlier.append(group)
            else:
                whole.setdefault(above, []).extend(group)
        if above not in below.get(above.parent, ()):
            below.setdefault(above.parent, []).append(above)
    return earlier


def _is_of_events(one: FoundRun) -> bool:
    return one.format_name == "tensorboard"


def _by_training(
    parts: list[FoundRun], stages: list[Path], whole: Mapping[Path, list[FoundRun]]
) -> list[list[FoundRun]]:
    """The stages of each training, of folders of event files: several trainings may have written there in turn.

    A stage belongs to the latest training that was begun before it; begun earlier than all, to the first one if it
    went on in its time. One that had ended by then is no stage of any.

    Returns:
      For each training its run, whose part is "" for the newest, and its stages; [] for other files, and if no folder
      says that it is the training.
    """
    trainings = [folder for folder in stages if folder.name.lower() in TRAINING]
    every = [*parts, *(one for folder in stages for one in whole[folder])]
    if len(trainings) != 1 or not all(map(_is_of_events, every)):
        return []
    leads = sorted((one for one in every if one.run.folder == trainings[0]), key=lambda one: written(one.run))
    groups = [[lead] for lead in leads]
    first = written(leads[0].run)
    for one in every:
        if one in leads:
            continue
        begun = [group for group in groups if written(group[0].run) <= written(one.run) + _TOGETHER]
        if begun or max(map(last_moment, one.run.files)) >= first:
            (begun or groups)[-1 if begun else 0].append(one)
    return groups


def written(run: ForeignRun) -> float:
    """The earliest time in the names of a run's event files."""
    return min((float(match[1]) for file in run.files if (match := EVENT_FILE.match(file.name))), default=0.0)
