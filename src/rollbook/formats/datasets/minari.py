"""Minari data sets: export trajectories of a run, and import a data set into a run.

    to_minari(book, "cartpole/ppo-v0", algorithm_name="PPO", author="me")
    from_minari("cartpole/ppo-v0", run)

Written through `minari.create_dataset_from_buffers`, one episode in memory at a time. Images are stored losslessly.
"""

from __future__ import annotations

import inspect
import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rollbook.errors import BadInput
from rollbook.formats.datasets._cells import tree_of
from rollbook.formats.datasets._replay import Replay, flat_tree
from rollbook.formats.datasets._source import StepSource, Trajectory
from rollbook.formats.datasets._whole import Exported, whole_trajectories
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.protocols import Recorder


def to_minari(
    book: Book,
    dataset_id: str,
    *,
    episodes: Sequence[str] | Callable[[dict[str, Any]], bool] | None = None,
    agent: str | None = None,
    observation_space: object = None,
    action_space: object = None,
    env: object = "recorded",
    infos: bool = True,
    counts: Exported | None = None,
    **metadata: object,
) -> Any:
    """Write the trajectories of a run as a Minari data set in the local database.

    Args:
      book: the run.
      dataset_id: "namespace/name-v0". With several agents, each gets its own data set: "namespace/name-<agent>-v0".
      episodes: ids, or a function of an episode's row; None: all that have trajectories.
      agent: only this one.
      observation_space, action_space: the spaces; None: the recorded ones.
      env: an id, a spec or an environment that can be made again from the data set; "recorded": the recorded one, if
        gymnasium knows its id; None: none.
      infos: keep infos that exist at every step. Minari also has one for the reset, which is not recorded: it is NaN,
        0, False or "".
      counts: counts what was written and left out.
      metadata: algorithm_name, author, author_email, code_permalink, description, data_format, … as in
        `create_dataset_from_buffers`.
    Returns:
      The `MinariDataset`; with several agents a dict of them.
    Raises:
      BadInput: nothing to write, unknown spaces, or an id that exists or is not valid in Minari.
      MissingExtra: Minari is not installed.
    """
    minari = need("minari", extra="minari", why="to_minari()")
    source = StepSource(book, episodes=episodes, agents=None if agent is None else [agent])
    counts = counts if counts is not None else Exported()
    made = {}
    for name in source.agents:  # before anything is written: an invalid id breaks Minari's whole database
        _check_id(_id_of(dataset_id, name) if name and agent is None else dataset_id)
    for name in source.agents:
        own_id = _id_of(dataset_id, name) if name and agent is None else dataset_id
        if _folder_of(own_id).exists():
            raise BadInput(
                f"to_minari(…, {own_id!r}): there is a data set of that id.",
                f"Choose another version, or delete it with minari.delete_dataset({own_id!r}).",
            )
        spaces = (
            _space(source, observation_space, "observation", name),
            _space(source, action_space, "action", name),
        )
        buffers = _buffers(source, name, spaces, infos, counts)
        made[name] = _create(minari, own_id, buffers, spaces, _spec(source, env), metadata)
    return made if len(made) > 1 else next(iter(made.values()))


def _check_id(dataset_id: str) -> None:
    """Raise BadInput for an id that Minari would reject after half of the data set is written."""
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(dataset_id)
    except (ValueError, TypeError) as err:
        raise BadInput(
            f"to_minari(…, {dataset_id!r}): {err}",
            "Use namespace/name-v0; each part is letters, digits, - and _, a namespace has two characters or more.",
        ) from None


def _folder_of(dataset_id: str) -> Path:
    """The folder of a data set, which exists if the id is in use."""
    from minari.storage.datasets_root_dir import get_dataset_path

    return Path(get_dataset_path(dataset_id))


def _create(
    minari: Any, dataset_id: str, buffers: object, spaces: tuple[object, object], env: object, metadata: Any
) -> object:
    taken = inspect.signature(minari.create_dataset_from_buffers).parameters
    options = dict(metadata)
    if "jpeg_encoding" in taken:
        options.setdefault("jpeg_encoding", False)  # JPEG is lossy
    if "data_format" not in options and not _has("h5py"):
        options["data_format"] = "arrow"
    try:
        with warnings.catch_warnings():  # about metadata that was not given
            warnings.simplefilter("ignore")
            return minari.create_dataset_from_buffers(
                dataset_id,
                buffer=buffers,
                env=env,
                observation_space=spaces[0],
                action_space=spaces[1],
                **options,
            )
    except BaseException:
        shutil.rmtree(_folder_of(dataset_id), ignore_errors=True)  # a partial data set; it did not exist before
        raise


def _buffers(
    source: StepSource, agent: str, spaces: tuple[object, object], infos: bool, exported: Exported
) -> Iterator[object]:
    from minari.data_collector import EpisodeBuffer

    for trajectory in whole_trajectories(source, exported, agent):
        row = trajectory.row
        options = row.get("options")
        yield EpisodeBuffer(
            seed=row.get("seed"),
            options=json.loads(options) if options else None,
            observations=trajectory.observations(spaces[0]),
            actions=trajectory.actions(spaces[1]),
            rewards=trajectory.column("reward", 0.0).astype(np.float64),
            terminations=trajectory.column("terminated", False).astype(bool),
            truncations=trajectory.column("truncated", False).astype(bool),
            infos=_infos(trajectory) if infos else None,
        )


_AT_RESET: dict[str, object] = {"f": np.nan, "i": 0, "u": 0, "b": False}


def _infos(trajectory: Trajectory) -> object:
    """Infos that exist at every step, with a placeholder for the reset's."""
    infos: dict[str, object] = {}
    for name, cells in trajectory.columns.items():
        path = name.removeprefix("info/")
        if path == name:
            continue
        if isinstance(cells, np.ndarray) and cells.dtype.kind in _AT_RESET:
            first = np.full((1, *cells.shape[1:]), _AT_RESET[cells.dtype.kind], dtype=cells.dtype)
            joined = np.concatenate([first, cells])
            # As in Minari's own collector: its Arrow storage cannot read back an array of one axis.
            infos[path] = joined if joined.ndim > 1 else list(joined)
        elif cells and all(isinstance(cell, str) for cell in cells):
            infos[path] = ["", *cells]
    tree = tree_of(infos) if infos else None
    return tree if isinstance(tree, dict) else None


def _space(source: StepSource, given: object, what: str, agent: str) -> object:
    if isinstance(given, dict):  # by agent
        given = given.get(agent)
    space = given if given is not None else source.space(what, agent)
    if space is None:
        raise BadInput(
            f"to_minari(): the {what} space of {source.book.path} was not recorded (only recording wrappers do that).",
            f"Pass {what}_space=.",
        )
    return space


def _spec(source: StepSource, env: object) -> object:
    if env != "recorded":
        return env
    name = source.env_id()
    if not name or source.agents != [""]:
        return None
    try:
        gymnasium = need("gymnasium", extra="gym", why="to_minari()")
        spec = gymnasium.spec(name)
        gymnasium.make(spec).close()
        return spec
    except Exception:  # not registered here, or it needs a missing package: the data set has no environment
        return None


def _id_of(dataset_id: str, agent: str) -> str:
    stem, dash, version = dataset_id.rpartition("-v")
    safe = "".join(c if c.isalnum() or c == "_" else "_" for c in agent)
    return f"{stem}-{safe}-v{version}" if dash and version.isdigit() else f"{dataset_id}-{safe}"


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def from_minari(
    dataset: Any, recorder: Recorder, *, episodes: Sequence[int] | None = None, agent: str = "", prefix: str = ""
) -> Exported:
    """Write a Minari data set into a run, one episode in memory at a time.

    Args:
      dataset: a `MinariDataset`, or the id of one in the local database.
      recorder: a run or a scope.
      episodes: indices; None: all.
      agent: written as the agent of every step.
      prefix: prefix of every episode's id in the run; default: the data set's id.
    Raises:
      MissingExtra: Minari is not installed.
    """
    if isinstance(dataset, str):
        dataset = need("minari", extra="minari", why="from_minari()").load_dataset(dataset)
    replay = Replay(recorder)
    spec = getattr(dataset, "env_spec", None)
    replay.spaces(dataset.observation_space, dataset.action_space, agent, getattr(spec, "id", None))
    begins = prefix or str(dataset.spec.dataset_id)
    for episode in dataset.iterate_episodes(episodes):
        replay.add(_trajectory(episode, f"{begins}#{episode.id}", agent, dataset))
    replay.finish()
    return Exported(replay.episodes, replay.steps)


def _trajectory(episode: Any, episode_id: str, agent: str, dataset: Any) -> Trajectory:
    n = len(episode.rewards)
    observations: dict[str, Any] = {}
    flat_tree("obs", episode.observations, observations)
    columns: dict[str, Any] = {}
    flat_tree("action", episode.actions, columns)
    infos: dict[str, Any] = {}
    if episode.infos:
        flat_tree("info", episode.infos, infos)
    for name, cells in infos.items():
        if len(cells) in (n, n + 1):
            columns[name] = _texts(cells[len(cells) - n :])
    columns.update(
        reward=np.asarray(episode.rewards, dtype=np.float64),
        terminated=np.asarray(episode.terminations, dtype=bool),
        truncated=np.asarray(episode.truncations, dtype=bool),
    )
    last = {name: cells[n] for name, cells in observations.items() if len(cells) > n}
    columns.update({name: cells[:n] for name, cells in observations.items()})
    facts: dict[str, Any] = next(iter(dataset.storage.get_episode_metadata([episode.id])), {})
    row = {"seed": facts.get("seed"), "options": json.dumps(facts["options"]) if facts.get("options") else None}
    return Trajectory(episode_id, agent, np.arange(n), columns, last, np.zeros(n, dtype=np.int64), row)


def _texts(cells: Any) -> object:
    """Decode texts, which HDF5 returns as bytes."""
    if len(cells) and isinstance(cells[0], bytes):
        return [cell.decode("utf-8", "backslashreplace") for cell in cells]
    return cells
