"""Splits the infos of a vector, which gymnasium merges into one dict of arrays, each with a mask `_key`.

Merging loses data: numbers get the type of the first one (2.5 becomes 2 after an integer). This module reads what is
left; `record_envs` records before the merge.
"""

from __future__ import annotations

from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.capture.episodes.recorder import EpisodeSettings

_ALWAYS_READ = ("data", "media", "reward_components", "rewards")


def is_reported(infos: Any, settings: EpisodeSettings) -> bool:
    """Whether these infos have data of single steps, apart from returns and lengths."""
    if not hasattr(infos, "keys"):
        return any(infos)
    if settings.reads_all_infos:
        return True
    wanted = settings.info_roots
    return any(
        key in _ALWAYS_READ or key in wanted or (type(key) is str and key.startswith("reward_")) for key in infos
    )


def info_of(infos: Any, i: int, *, final: bool = False) -> dict[str, object]:
    """The info of sub-environment `i`.

    Args:
      final: it ended and was reset in this step (SAME_STEP): its last info is under "final_info".
    """
    if not hasattr(infos, "keys"):  # a list of dicts
        info: dict[str, Any] = dict(infos[i])
        last: Any = info.get("final_info")
        return dict(last) if final and hasattr(last, "keys") else info
    if final:
        last = infos.get("final_info")
        return _part(last, i) if hasattr(last, "keys") else {}
    return _part(infos, i)


def _part(infos: Any, i: int) -> dict[str, object]:
    part: dict[str, object] = {}
    for key, value in infos.items():
        if type(key) is str and key.startswith("_") and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}")
        if mask is not None and not mask[i]:
            continue
        if hasattr(value, "keys"):
            part[key] = _part(value, i)
        elif hasattr(value, "__len__") and len(value) > i:
            part[key] = value[i]
    return part


def reported_of(infos: Any, i: int, key: str = "episode") -> tuple[float | None, int | None] | None:
    """(return, length) of the ended episode of sub-environment `i` from the infos, or None."""
    if not hasattr(infos, "keys"):
        episode = infos[i].get(key) or (infos[i].get("final_info") or {}).get(key)
        return _numbers(episode.get("r"), episode.get("l")) if episode else None
    for holder in (infos, infos.get("final_info")):
        reported: object = holder.get(key) if hasattr(holder, "get") else None
        if holder is None or reported is None or not hasattr(reported, "get"):
            continue
        mask = holder.get(f"_{key}")
        if mask is None or mask[i]:
            total, length = reported.get("r"), reported.get("l")
            return _numbers(None if total is None else total[i], None if length is None else length[i])
    return None


def _numbers(total: object, length: object) -> tuple[float | None, int | None] | None:
    total, length = scalar_of(total), scalar_of(length)
    if total is None and length is None:
        return None
    return (None if total is None else float(total)), (None if length is None else int(length))
