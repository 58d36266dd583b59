"""Monitor files (`*.monitor.csv`) from the episodes of a run, for tools that read them.

    write_monitor(book, "export")

A file has a comment line of JSON (`t_start`, `env_id`), a header `r,l,t`, and one line per finished episode: return,
length, seconds since `t_start`. The other way, `rollbook import` and `rollbook.open` read Monitor files.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book


def write_monitor(book: Book, folder: str | os.PathLike[str], scope: str = "train") -> list[str]:
    """Write Monitor files from a run's episodes, one per environment. Returns their paths.

    Args:
      book: the run.
      folder: where they go; created if missing.
      scope: the scope of the episodes; "" takes all.
    """
    start = float(book.info.created or 0.0)
    about = json.dumps({"t_start": start, "env_id": str(book.config.get("env", None))})
    lines: dict[int, list[str]] = {}
    for row in book.episodes().to_pylist():
        if not scope or row.get("scope") in (scope, f"{scope}/"):
            of_env = lines.setdefault(int(row.get("env_index") or 0), [f"#{about}", "r,l,t"])
            seconds = row["time"].timestamp() - start
            of_env.append(f"{round(row['return'], 6)},{row['length']},{round(seconds, 6)}")
    os.makedirs(folder, exist_ok=True)
    paths = []
    for index, of_env in sorted(lines.items()):
        paths.append(os.path.join(os.path.realpath(folder), f"{index}.monitor.csv"))
        with open(paths[-1], "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join([*of_env, ""]))
    return paths
