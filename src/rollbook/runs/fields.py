"""What is known about a run without opening it, by dotted names: `status`, `config.lr`, `summary.best`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rollbook.errors import BadInput, did_you_mean
from rollbook.runs.measures import split_columns
from rollbook.schema import manifest
from rollbook.schema.source import is_view
from rollbook.schema.status import heard_at
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

FIELDS = tuple(manifest.listed(manifest.RunJson()))
"""The fields of run.json in a listing, besides `path`. Each run has all of them, None if unknown."""

_NESTED = ("config", "summary", "total", "folder")


def value_at(row: Mapping[str, object], name: str) -> Any:
    """The value at a dotted name; None if there is none. Keys that contain dots are found, too."""
    if name in row:
        return row[name]
    if name in COMPUTED:
        return COMPUTED[name](row)
    first, _, rest = name.partition(".")
    inner = row.get(first)
    if type(inner) is dict and rest in inner:  # the usual case, three times as fast
        return inner[rest]
    value: object = row
    parts = name.split(".")
    for index, part in enumerate(parts):
        if not isinstance(value, Mapping):
            return None
        rest = ".".join(parts[index:])
        if rest in value:
            return value[rest]
        value = value.get(part)
    return value


def duration_of(row: Mapping[str, object]) -> float | None:
    """Seconds from the begin of a run to its end or, if it has none, to its last sign of life on this disk."""
    created, ended = row.get("created"), row.get("ended")
    if ended is None and not row.get("made_by"):
        path = str(row.get("path") or "")
        ended = None if not path or is_view(path) else heard_at(path)
    if not isinstance(created, (int, float)) or not isinstance(ended, (int, float)):
        return None
    return max(0.0, float(ended) - float(created))  # the last file may have been stamped by another clock


COMPUTED: dict[str, Callable[[Mapping[str, object]], Any]] = {"duration": duration_of}
"""Fields that a listing computes from others: name -> function of a run's fields."""


def group_value(row: Mapping[str, object], name: str) -> Any:
    """The value by which a run is put into a group.

    If neither files nor path name the algorithm or environment of another tool's run, the rest of its path is used
    instead: two runs with an unknown algorithm are not one group.
    """
    value = value_at(row, name)
    if value is None and name in ("algo", "env") and row.get("made_by"):
        said = value_at(row, "folder.other") or row.get("group") or row.get("name")
        return f"unknown ({said})"
    return value


def values_at(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """`value_at` of every run."""
    if rows and all(name in row for row in rows):
        return [row[name] for row in rows]
    first, _, rest = name.partition(".")
    try:
        return [row[first][rest] for row in rows]  # plain mappings that all have it: five times as fast
    except (KeyError, TypeError, IndexError):
        return [value_at(row, name) for row in rows]


def grouped(value: object) -> Any:
    """A value as groups distinguish it: 1 and 1.0 are one group; True and the text "1" are others."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        return {str(name): grouped(inner) for name, inner in value.items()}
    return [grouped(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def group_key(value: object) -> str:
    """A text that is equal for the values of one group."""
    return json.dumps(grouped(value), default=str, sort_keys=True)


def group_label(value: object) -> str:
    """The name of the group with this value: a text as it is, in quotes if it reads as a number or a word of JSON."""
    return _label_of_text(value) if isinstance(value, str) else group_key(value)


@functools.lru_cache(maxsize=1024)
def _label_of_text(value: str) -> str:
    """The same of a text. Thousands of runs have the same few."""
    with tolerating(ValueError):
        return group_key(value) if not isinstance(json.loads(value), (str, list, dict)) else value
    return value


def flat(config: Mapping[str, object], prefix: str = "") -> dict[str, Any]:
    """A nested configuration as dotted path -> value; lists and empty mappings are values.

    Args:
      prefix: begins each path, such as "config.".
    """
    cells: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            cells.update(flat(value, f"{prefix}{name}."))
        else:
            cells[f"{prefix}{name}"] = value
    return cells


def field_names(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Every name for which some run has a value, the fixed fields first."""
    names = dict.fromkeys(("path", *(name for name in FIELDS if name not in _NESTED), *COMPUTED))
    known: set[tuple[str, ...]] = set()  # most runs of a folder share their flat fields
    for row in rows:
        for nested in _NESTED:
            value = row.get(nested)
            shape: tuple[str, ...] = ()
            if isinstance(value, dict) and not any(isinstance(inner, Mapping) for inner in value.values()):
                shape = (nested, *value)
            if shape not in known:
                names.update(dict.fromkeys(flat(value, f"{nested}.") if isinstance(value, Mapping) else ()))
            if shape:
                known.add(shape)
    return list(names)


def is_field(name: str, rows: Sequence[Mapping[str, object]]) -> bool:
    """Whether some run has a field of this name; an empty set has any name below config and summary."""
    if name in ("path", *FIELDS, *COMPUTED) or (rows and name in rows[0]):
        return True
    return name.partition(".")[0] in _NESTED and (not rows or any(_has(row, name) for row in rows))


def grouping_fields(by: object, rows: Sequence[Mapping[str, object]], asked: str) -> list[str]:
    """The columns by which runs are grouped: of a text with commas, or of a list; ["auto"] if none is named.

    A comma inside a call or quotes divides nothing, and neither does one in the name of a field.

    Raises:
      BadInput: what was named is neither, or nothing, or "auto" among others.
    """
    if isinstance(by, str):
        names = [by] if "," not in by or is_field(by, rows) else split_columns(by)
    else:
        names = list(by) if isinstance(by, (list, tuple)) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise BadInput(
            f"{asked}: fields make the groups, found {by!r:.80} of type {type(by).__name__}.",
            "Name one, several ('config.algo, config.lr', or a list), 'auto' for what differs in the configuration, "
            "or {label: runs} where that is given",
        )
    if "auto" in names and len(names) > 1:
        raise BadInput(f"{asked}: 'auto' finds the fields itself.", "Give it alone, or name all fields")
    return list(dict.fromkeys(names))


def check_one(name: object, asked: str) -> None:
    """Raise if what should be the name of one field is something else. Raises: BadInput."""
    if not isinstance(name, str):
        raise BadInput(f"{asked}: the name of one field is a text, found {name!r:.80} of type {type(name).__name__}")


def field_of(name: str, rows: Sequence[Mapping[str, object]], asked: str) -> str:
    """The field that somebody named; an empty set accepts any name below config and summary.

    A setting may be called without `config.` where no field has that name, `lr`; so may its last parts where no other
    setting has them: `passes` is `config.agent.passes`.

    Raises:
      BadInput: no run has such a field; the message lists the fields.
    """
    check_one(name, asked)
    if is_field(name, rows):
        return name
    known = field_names(rows)
    inner = [full_name for full_name in known if full_name.endswith(f".{name}")]
    settings = [full_name for full_name in inner if full_name.startswith("config.")]
    own = f"config.{name}"
    if own in settings or len(settings) == 1:
        return own if own in settings else settings[0]
    first = name.partition(".")[0]
    hint = f" Did you mean {' or '.join(map(repr, inner[:3]))}?" if inner else did_you_mean(name, known)
    quoted = " Put text in single quotes." if first == name and not inner else ""
    if "/" in name or first == "metrics":  # as other tools write the number of a key
        key = name.removeprefix("metrics.")
        raise BadInput(f"{asked}: no run has a field {name!r:.80}.", f'A number of a key is a call: last("{key:.80}")')
    absent = "the run has no" if len(rows) == 1 else f"none of {amount(len(rows), 'run')} has a"
    raise BadInput(f"{asked}: {absent} field {name!r:.80}.", f"{hint}{quoted}")


def _has(row: Mapping[str, object], name: str) -> bool:
    return value_at(row, name) is not None or _mentions(row, name)


def _mentions(row: Mapping[str, object], name: str) -> bool:
    """Whether the name exists, even if its value is None."""
    first, _, rest = name.partition(".")
    inner = row.get(first)
    return isinstance(inner, Mapping) and (rest in inner or (bool(rest) and _mentions(inner, rest)))


def column_of(values: Sequence[object]) -> tuple[pa.Array, bool]:
    """An Arrow column of the runs' values under one name, and whether it was converted to text.

    Numbers stay numbers and text stays text. If runs have different types, lists or mappings, all values become text.
    """
    # Imported here: listing runs needs neither numpy nor pyarrow.
    from rollbook.values.arrow import any_column, strings

    array, as_json = any_column([list(v) if isinstance(v, tuple) else v for v in values])
    if as_json is None:
        return array, False
    return strings([v if isinstance(v, str) else cell for v, cell in zip(values, array.to_pylist(), strict=True)]), True
