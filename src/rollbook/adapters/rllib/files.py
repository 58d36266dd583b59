"""Files of episode data: `<trial>/episode_data/data-<step:08d>.json`, one per result."""

from __future__ import annotations

import os

from rollbook.system.files import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def write_episode_data(folder: str | os.PathLike[str], step: int, texts: Sequence[str]) -> str | None:
    """Write the episodes of one result: a JSON list of {name: values per step}, one entry per episode.

    Args:
      folder: the trial's folder.
      step: of the result; an existing file of the same step (a resumed trial) is replaced.
      texts: each episode as JSON, training first, evaluation after.
    Returns:
      The file's path; None if there was no episode.
    """
    if not texts:
        return None
    data_folder = os.path.join(folder, "episode_data")
    os.makedirs(data_folder, exist_ok=True)
    path = os.path.join(data_folder, f"data-{step:08d}.json")
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write("[" + ",\n ".join(texts) + "]\n")
    return path
