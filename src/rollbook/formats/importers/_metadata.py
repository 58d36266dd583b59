"""Metadata of a foreign run: its configuration, its seed and its group.

Tools store them in separate files (`.hydra/config.yaml`, params.json, args.yml), in texts (CleanRL's table) or in
the name of a folder. All of it is read as plain data: Python tags in yaml files are ignored, and a configuration
that is a Python file is never executed.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import json
import os
import re
from collections import Counter
from pathlib import Path

from rollbook.formats.importers._paths import NEUTRAL
from rollbook.formats.importers._plain import plain
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.protocols import ForeignRun

CONFIG_NAMES = (
    "params.json",
    "config.json",
    "variant.json",
    "hparams.json",
    "args.json",
    "cfg.json",
    "hyperparameters.json",
    "hparams.yaml",
    "config.yaml",
    "config.yml",
    "configuration.yaml",
    "cfg.yaml",
    "args.yaml",
)
"""A file with one of these names next to the rows is the configuration; the first readable one is used."""

FROM_NAME = "the name of its folder"
"""The source of a seed or a group that only a name says."""

_HYDRA = ".hydra/config.yaml"
_LIGHTZERO = ("formatted_total_config.py", "total_config.py")
_HIGHEST = 3
"""How many folders, from that of the rows upwards, are searched for the metadata of a tool: LightZero writes into
log/serial/."""

_ABOVE = 3
"""How many folders above the rows may hold a configuration of any tool."""

_OWN_PLACES = frozenset({".git", "pyproject.toml", "setup.py"})
"""A folder with one of these is a project: what is called config.yaml there is not a run's."""

_LONGEST = 8 * 1024 * 1024
_MOST = 20_000
"""The maximum number of entries of a configuration. Aliases in yaml can expand a few lines to millions."""

_MOST_NESTED = 64
_DEEPEST = 5
_SEEDS = ("seed", "random_seed", "rng_seed")
_GROUPS = ("exp_name", "experiment_name", "run_group", "group", "experiment")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,16}(?=>)")
"""The address of an object in one process ("<function f at 0x7f12…>"): it differs between runs of one configuration."""

_CLEANRL = re.compile(r"(?P<env_id>.+)__(?P<exp_name>.+)__(?P<seed>\d+)__\d{9,11}")
_VERSION = re.compile(r"version_\d+")
_SEEDED = re.compile(r"(?:(?P<group>.*?)[-_.,+]+)?s(?:eed)?[-_=]?(?P<seed>\d{1,10})", re.IGNORECASE)


def files_below(folder: Path, pattern: str) -> Iterator[Path]:
    """The files of such names in a folder and all below it; several times as fast as `Path.rglob`."""
    for inside, _folders, names in os.walk(folder):
        for name in fnmatch.filter(names, pattern):
            if os.path.isfile(file := os.path.join(inside, name)):
                yield Path(file)


def with_own_names(runs: Iterable[tuple[ForeignRun, str]]) -> list[ForeignRun]:
    """The runs; if several have the same name, what follows each is added to it.

    Args:
      runs: (run, what it is recognised by).
    """
    marked = list(runs)
    times = Counter(run.name for run, _ in marked)
    for run, mark in marked:
        if times[run.name] > 1:
            run.name = f"{run.name}-{mark}"
    return [run for run, _ in marked]


def describe(run: ForeignRun, folder: Path, config: Mapping[str, Any] | None = None) -> None:
    """Set a run's missing metadata from what is stored next to its rows.

    Args:
      folder: where its rows are.
      config: the configuration among the rows; files and the folder's name add missing entries.
    """
    known, (stored, file) = dict(config or {}), config_at(folder)
    if stored:
        run.sources.setdefault("config", file)
    if _VERSION.fullmatch(folder.name):
        folder = folder.parent
    name = os.path.basename(os.path.abspath(folder))
    cleanrl = _CLEANRL.fullmatch(name)
    run.config = {**stored, **known, **run.config}
    if cleanrl is not None and not run.config:
        run.config = {key: plain(value) for key, value in cleanrl.groupdict().items()}
    run.algo = run.algo or _trainer_of(run.config)
    seeded = _SEEDED.fullmatch(name)
    if run.seed is None:
        run.seed = named_seed(run.config)
    if run.seed is None and (cleanrl or seeded):
        run.seed, run.sources["seed"] = int((cleanrl or seeded)["seed"]), FROM_NAME  # type: ignore[index]
    if run.group is None:
        group_name = _shallowest(run.config, _GROUPS, str) or (cleanrl["exp_name"] if cleanrl else None)
        if group_name is None:
            run.sources["group"] = FROM_NAME
        if group_name is None and seeded is not None and int(seeded["seed"]) == run.seed:
            group_name = seeded["group"] or os.path.basename(os.path.dirname(os.path.abspath(folder)))
        run.group = group_name


def complete(run: ForeignRun) -> None:
    """Set the seed and the group of a run that its tool has no record of: from its configuration, else its name."""
    seeded = _SEEDED.fullmatch(run.name)
    if run.seed is None:
        run.seed = named_seed(run.config)
    if run.seed is None and seeded is not None:
        run.seed, run.sources["seed"] = int(seeded["seed"]), FROM_NAME
    if run.group is None:
        group_name = _shallowest(run.config, _GROUPS, str)
        if group_name is None:
            run.sources["group"] = FROM_NAME
        if group_name is None and seeded is not None and int(seeded["seed"]) == run.seed:
            group_name = seeded["group"]
        run.group = group_name or None


def config_near(folder: Path) -> dict[str, Any]:
    """The configuration in files at a folder, or a little above it; empty if there is none."""
    return config_at(folder)[0]


def config_at(folder: Path) -> tuple[dict[str, Any], str]:
    """The configuration in files at a folder or up to three above it, and the file; ({}, "") if there is none.

    The seed is not taken from a file above the folders of several runs.
    """
    start = os.path.abspath(folder)
    try:
        with os.scandir(start) as entries:
            here = {entry.name: entry.is_dir() for entry in entries}
    except OSError:
        return {}, ""
    for name in CONFIG_NAMES:
        if name in here and (config := _mapping(f"{start}/{name}")):
            return config, f"{start}/{name}"
    if config := _zoo(start, [name for name, is_folder in here.items() if is_folder]) or _isaac(start):
        return config, start
    for above in _from(start):
        if (above != start or ".hydra" in here) and (config := _mapping(f"{above}/{_HYDRA}")):
            return config, f"{above}/{_HYDRA}"
        if above != start and (config := _isaac(above)):
            return config, above
        for name in _LIGHTZERO:
            if (above != start or name in here) and (config := _assigned(f"{above}/{name}")):
                return config, f"{above}/{name}"
    return _above(start, here)


def _above(folder: str, here: Mapping[str, bool]) -> tuple[dict[str, Any], str]:
    """The configuration in a folder above; see `config_at`."""
    is_own, names = True, frozenset(here)
    for _ in range(_ABOVE):
        if names & _OWN_PLACES:
            break
        name = os.path.basename(folder).lower()
        folder = os.path.dirname(folder)
        try:
            names = _of_interest(folder, os.stat(folder).st_mtime_ns)
        except OSError:
            break
        if names & _OWN_PLACES or folder in (os.path.expanduser("~"), os.path.dirname(folder)):
            break
        of_stage = name in NEUTRAL or (name.isdecimal() and os.path.basename(folder).lower() in NEUTRAL)
        is_own = is_own and (of_stage or "configuration.yaml" in names)
        for called in CONFIG_NAMES:
            if called in names and (config := _mapping(f"{folder}/{called}")):
                if not is_own:
                    config = {key: value for key, value in config.items() if key not in _SEEDS}
                return config, f"{folder}/{called}"
        if "args.yml" in names and (config := _zoo(folder, [])):
            return (config if is_own else {k: v for k, v in config.items() if k not in _SEEDS}), f"{folder}/args.yml"
    return {}, ""


@functools.lru_cache(maxsize=4096)
def _of_interest(folder: str, changed: int) -> frozenset[str]:
    """Which names in a folder say something about a configuration; listed once for all runs below, until it changes."""
    return frozenset(os.listdir(folder)) & {*CONFIG_NAMES, *_OWN_PLACES, "args.yml"}


def hydra_of(folder: Path) -> dict[str, Any]:
    """The configuration of the Hydra job whose folder this is, or a little below; empty without one."""
    return next(filter(None, (_mapping(f"{above}/{_HYDRA}") for above in _from(os.path.abspath(folder)))), {})


def _from(folder: str) -> Iterator[str]:
    """A folder and the folders above it in which metadata is searched."""
    for _ in range(_HIGHEST):
        yield folder
        folder = os.path.dirname(folder)


def _trainer_of(config: Mapping[str, Any]) -> str:
    """The algorithm that ML-Agents' configuration gives each behavior; "" if there are several or none."""
    behaviors = config.get("behaviors")
    each = behaviors.values() if isinstance(behaviors, dict) else ()
    types = {str(one.get("trainer_type") or "") for one in each if isinstance(one, dict)}
    return types.pop() if len(types) == 1 else ""


def of_table(text: str) -> dict[str, Any] | None:
    """The configuration in a markdown table "|param|value|", as CleanRL logs it; None for other texts."""
    lines = text.strip().splitlines()
    if len(lines) < 3 or [cell.strip() for cell in lines[0].strip("| ").split("|")] != ["param", "value"]:
        return None
    config = {}
    for line in lines[2:]:
        key, bar, value = line.strip().removeprefix("|").partition("|")
        if bar:
            config[key.strip()] = plain(value.removesuffix("|").strip())
    return config


def _zoo(folder: str, inner: list[str]) -> dict[str, Any]:
    """RL Zoo: `<env>/args.yml` (the arguments) and `<env>/config.yml` (the hyper-parameters)."""
    for inside in [folder, *(f"{folder}/{name}" for name in sorted(inner))]:
        arguments = _mapping(f"{inside}/args.yml")
        more = _mapping(f"{inside}/config.yml") if arguments or inside != folder else {}
        if arguments or more:
            return {**arguments, **({"hyperparams": more} if more else {})}
    return {}


def _isaac(folder: str) -> dict[str, Any]:
    """Isaac Lab: `params/env.yaml` and `params/agent.yaml`."""
    configs = {part: _mapping(f"{folder}/params/{part}.yaml") for part in ("env", "agent")}
    return {part: config for part, config in configs.items() if config}


def _mapping(file: str) -> dict[str, Any]:
    """A JSON or yaml file as plain data; empty if it is invalid, too large, or not a mapping."""
    try:
        stat = os.stat(file)
    except (OSError, ValueError):
        return {}
    return _read(file, stat.st_size, stat.st_mtime_ns) if 0 < stat.st_size <= _LONGEST else {}


@functools.lru_cache(maxsize=4096)
def _read(file: str, size: int, mtime: int) -> dict[str, Any]:
    """See `_mapping`. The result is cached until the file changes: pages refresh every two seconds."""
    try:
        with open(file, encoding="utf-8", errors="backslashreplace") as stream:
            text = _ADDRESS.sub("", stream.read(_LONGEST))
        parsed = json.loads(text) if file.endswith(".json") else yaml_of(text)
        return parsed if isinstance(parsed, dict) and _is_small(parsed, [_MOST]) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _is_small(value: object, left: list[int]) -> bool:
    """Whether a value has at most `left[0]` entries; aliases count each time."""
    left[0] -= 1
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left[0] >= 0 and all(_is_small(inner, left) for inner in inside)


def yaml_of(text: str) -> object:
    """Yaml as plain data; tags, such as those of Python, are ignored.

    Raises:
      ValueError: not yaml.
    """
    import yaml

    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A safe loader that ignores tags."""

    def bare(loader: Any, tag: str, node: Any) -> object:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            items = loader.construct_sequence(node, deep=True)
            if tag.endswith("collections.OrderedDict") and items:  # a list of one list of pairs
                return {str(pair[0]): pair[1] for pair in items[0] if isinstance(pair, list) and len(pair) == 2}
            return items
        return loader.construct_scalar(node) or tag.rpartition(":")[2]

    Plain.add_multi_constructor("", bare)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=Plain):  # one by one: building values recurses as deep as they are nested
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_NESTED:
                raise ValueError(f"more than {_MOST_NESTED} levels")
        return yaml.load(text, Loader=Plain)
    except (yaml.YAMLError, TypeError, AttributeError) as err:
        raise ValueError(str(err)) from None


def _assigned(file: str) -> dict[str, Any]:
    """The first dict of literals that a Python file assigns; the file is parsed, not run."""
    try:
        if not 0 < os.stat(file).st_size <= _LONGEST:
            return {}
        tree = ast.parse(Path(file).read_text(encoding="utf-8", errors="backslashreplace"))
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
                parsed = _literal(statement.value)
                return parsed if isinstance(parsed, dict) and _is_small(parsed, [_MOST]) else {}
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    return {}


def _literal(node: ast.expr) -> object:
    """The value of a literal; the source text of anything else."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_literal(key)): _literal(value) for key, value in pairs if key is not None}
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(item) for item in node.elts]
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.unparse(node)
    return value if isinstance(value, (bool, int, float, str, type(None))) else ast.unparse(node)


def _shallowest(config: Mapping[str, Any], names: tuple[str, ...], kind: type) -> Any:
    """The value of that kind under one of the names, in the outermost mapping that has one; else None."""
    level: list[Mapping[str, Any]] = [config]
    for _depth in range(_DEEPEST):
        for name in names:
            for mapping in level:
                value = mapping.get(name)
                if isinstance(value, kind) and not isinstance(value, bool) and value != "":
                    return value
        level = [inner for mapping in level for inner in mapping.values() if isinstance(inner, dict)]
    return None
