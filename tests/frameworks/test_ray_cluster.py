"""Many machines write one run: real Ray, a head and two nodes with roots and hosts of their own on one machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("rllib",)

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402

import rollbook  # noqa: E402
from rollbook.book.book import Book  # noqa: E402
from rollbook.book.repair.joining import join  # noqa: E402
from rollbook.run.ray import Address, address  # noqa: E402
from rollbook.schema.addresses import backlog  # noqa: E402
from rollbook.system.files import read_json  # noqa: E402
from rollbook.system.liveness import HOST_VARIABLE, is_alive  # noqa: E402
from waiting import until  # noqa: E402

SOURCES = os.pathsep.join([str(Path(rollbook.__file__).parents[1]), str(Path(__file__).parents[1] / "support")])


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roots")


@pytest.fixture(scope="module")
def nodes(roots: Path) -> Iterator[dict[str, Any]]:
    """A head (where the driver is) and two nodes of other hosts, named by the resource that is theirs."""
    common = {"include_dashboard": False, "object_store_memory": 80 * 1024**2}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **common})
    made: dict[str, Any] = {"cluster": cluster}
    try:
        for name in ("near", "far"):
            own = {HOST_VARIABLE: name, "ROLLBOOK_DIR": str(roots / name), "PYTHONPATH": SOURCES}
            made[name] = cluster.add_node(num_cpus=4, resources={name: 100}, env_vars=own, **common)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        cluster.wait_for_nodes()
        yield made
    finally:
        ray.shutdown()
        cluster.shutdown()
        for page in roots.rglob("state-*.json"):  # a node that goes leaves its keepers, which end by themselves
            keeper = read_json(str(page))
            if keeper.get("phase") != "done" and is_alive(keeper) is not False:
                try:
                    os.kill(int(keeper["pid"]), signal.SIGKILL)
                except ProcessLookupError:
                    continue


@ray.remote(num_cpus=0, max_restarts=1)
class Sampler:
    """Logs as many rows as it is asked to and says how many it logged."""

    def __init__(self, told: Any, name: str) -> None:
        self.run = told.writer() if isinstance(told, Address) else told
        self.name = name

    def sample(self, first: int, n: int) -> int:
        for i in range(first, first + n):
            self.run.log({f"{self.name}/x": float(i)}, env_step=i)
        return n

    def about(self) -> tuple[int, str, str]:
        return os.getpid(), self.run.internals.writer.id, str(self.run.folder)


@ray.remote(num_cpus=0)
def evaluate(told: Address, step: int) -> str:
    with told.writer() as run:
        run.log({"eval/return": float(step)}, env_step=step)
        return str(run.internals.writer.id)


def rows_of(book: Book, name: str) -> list[float]:
    return sorted(book.metrics([f"{name}/x"])[f"{name}/x"].to_pylist())


@pytest.mark.core
def test_actors_and_tasks_on_three_nodes_write_one_run_through_kills_and_restarts(
    nodes: dict[str, Any], roots: Path
) -> None:
    run = rollbook.init("ant", "ppo", dir=roots / "home", sinks=[])
    run.log({"loss": 1.0}, env_step=0)
    seen = address(run)
    unseen = Address("/folders/of/another/host" + seen.folder, seen.nonce, seen.page)
    tolds = {f"{node}{i}": (told, node) for node, told in (("near", seen), ("far", unseen)) for i in range(3)}
    actors = {
        name: Sampler.options(resources={node: 1}, max_restarts=1 if name == "near0" else 0).remote(told, name)
        for name, (told, node) in tolds.items()
    }
    logged = {name: ray.get(actor.sample.remote(0, 200)) for name, actor in actors.items()}
    about = {name: ray.get(actor.about.remote()) for name, actor in actors.items()}
    assert {folder for name, (_, _, folder) in about.items() if name[:4] == "near"} == {str(run.folder)}
    (part,) = {folder for name, (_, _, folder) in about.items() if name[:3] == "far"}
    assert Path(part) == roots / "far" / "ant" / run.folder.name

    for name in ("near0", "near1", "far0"):  # one comes back, two do not
        os.kill(about[name][0], signal.SIGKILL)
    until(lambda: _answers(actors["near0"]))
    assert ray.get(actors["near0"].about.remote())[1] != about["near0"][1]
    for name in ("near0", "near2", "far1", "far2"):
        logged[name] += ray.get(actors[name].sample.remote(200, 50))
    closers = ray.get([evaluate.options(resources={"near": 1}).remote(seen, step) for step in (1, 2)])
    assert len(set(closers)) == 2

    nodes["cluster"].remove_node(nodes["far"], allow_graceful=False)
    for name in ("near0", "near2"):
        ray.kill(actors[name])
    run.finish()
    until(lambda: all(is_alive_on("near", about) is False for about in _pages(run.folder, "near")))
    join(part, run.folder, force=True)

    book = Book(run.folder)
    for name, n in logged.items():
        assert rows_of(book, name) == [float(i) for i in range(n)], name
    assert sorted(book.metrics(["eval/return"])["eval/return"].to_pylist()) == [1.0, 2.0]
    writers = {writer["id"]: writer for writer in book.writers}
    assert len(writers) == 1 + 6 + 1 + 2
    assert {writer["host"] for writer in writers.values()} == {os.uname().nodename, "near", "far"}
    told = writers[about["near0"][1]]["whereabouts"]["ray"]
    assert (told["node"], told["restarted"]) == (nodes["near"].node_id, False)
    assert {writer["attempt"] for writer in writers.values()} == {1}
    assert [writers[id]["state"] for id in closers] == ["closed", "closed"]
    assert book.status == "finished"


def _answers(actor: Any) -> bool:
    try:
        ray.get(actor.about.remote(), timeout=0.5)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return False
    return True


def _pages(run: Path, host: str) -> list[dict[str, Any]]:
    pages = [read_json(str(path)) for path in (run / "data" / "journal").glob("*/writer.json")]
    return [page for page in pages if page.get("host") == host and not page.get("keeper")]


def is_alive_on(host: str, page: dict[str, Any]) -> bool | None:
    """Whether a process lives, asked as somebody on that host."""
    former = os.environ.get(HOST_VARIABLE)
    os.environ[HOST_VARIABLE] = host
    try:
        return is_alive(page)
    finally:
        if former is None:
            del os.environ[HOST_VARIABLE]
        else:
            os.environ[HOST_VARIABLE] = former


DRIVER = """
import os, sys, time
import ray, rollbook
from rollbook.run.ray import address  # noqa: E402

ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)

@ray.remote(num_cpus=0, resources={"near": 1})
class Sampler:
    def __init__(self, told):
        self.run = told.writer()

    def sample(self, n):
        for i in range(n):
            self.run.log({"x": float(i)}, env_step=i)
        return n

run = rollbook.init("ant", "driver", dir=sys.argv[2], sinks=[])
run.log({"loss": 1.0}, env_step=0)
actor = Sampler.remote(address(run))
print(run.folder, ray.get(actor.sample.remote(300)), flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_driver_that_dies_leaves_every_row_of_its_actors(nodes: dict[str, Any], roots: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, nodes["cluster"].address, str(roots / "home")],
        env={**os.environ, "PYTHONPATH": SOURCES},
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    folder, n = done.stdout.splitlines()[-1].split()  # Ray says things of its own before
    book = Book(folder)
    until(lambda: all(is_alive_on("near", page) is False for page in _pages(Path(folder), "near")))
    assert sorted(book.metrics(["x"])["x"].to_pylist()) == [float(i) for i in range(int(n))]
    assert book.status == "crashed"


def score_of(book: Any) -> tuple[int, str]:
    return int(book.seed), ray.get_runtime_context().get_node_id()


def three_runs(tmp_path: Path) -> Any:
    for seed in range(3):
        with rollbook.init("p", "n", seed=seed, dir=tmp_path, sinks=[], keeper="inline") as run:
            for i in range(4):
                run.log({"loss": float(i)}, env_step=i)
    return rollbook.open(tmp_path)


def test_a_function_over_many_runs_is_called_in_the_cluster(nodes: dict[str, Any], tmp_path: Path) -> None:
    answers = three_runs(tmp_path).map(score_of, on="ray", workers=2)
    assert sorted(seed for seed, _node in answers.values) == [0, 1, 2]


def test_a_table_of_many_runs_is_a_dataset(nodes: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("ray.data")
    data = three_runs(tmp_path).to_ray("metrics")
    rows = [row for row in data.take_all() if row["loss"] is not None]
    assert sorted((row["run_seed"], row["loss"]) for row in rows) == [(s, float(i)) for s in range(3) for i in range(4)]


def test_a_part_that_a_node_kept_is_shipped_and_read_as_one_run(nodes: dict[str, Any], roots: Path) -> None:
    store = f"file://{roots / 'store'}"
    run = rollbook.init("ant", "shipped", dir=roots / "home", sinks=[], remote=store)
    run.log({"loss": 1.0}, env_step=0)
    told = address(run)
    unseen = Address("/folders/of/another/host" + told.folder, told.nonce, told.page)
    actor = Sampler.options(resources={"near": 1}, max_restarts=0).remote(unseen, "near")
    assert ray.get(actor.sample.remote(0, 400)) == 400
    _pid, _writer, part = ray.get(actor.about.remote())
    assert Path(part) == roots / "near" / "ant" / run.folder.name
    ray.kill(actor)
    run.finish()
    until(lambda: all(_is_shipped(folder) for folder in (part, str(run.folder))))
    book = rollbook.open(store).one("ant/shipped")
    assert rows_of(book, "near") == [float(i) for i in range(400)]
    assert {writer["host"] for writer in book.writers} >= {"near", os.uname().nodename}
    assert book.status == "finished"


def _is_shipped(folder: str) -> bool:
    said = backlog(folder) or {}
    return bool(said.get("done") and said.get("final"))


def test_workers_of_ray_train_write_one_run(nodes: dict[str, Any], roots: Path, tmp_path: Path) -> None:
    train = pytest.importorskip("ray.train")
    trainers = pytest.importorskip("ray.train.v2.api.data_parallel_trainer")
    run = rollbook.init("ant", "train", dir=roots / "home", sinks=[])

    def work(config: dict[str, Any]) -> None:
        rank = train.get_context().get_world_rank()
        with config["told"].writer() as own:
            for i in range(50):
                own.log({f"rank{rank}/x": float(i)}, env_step=i)

    scaling = train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1, "near": 1})
    place = train.RunConfig(name="exp", storage_path=str(tmp_path / "ray"))
    trainers.DataParallelTrainer(
        work, train_loop_config={"told": address(run)}, scaling_config=scaling, run_config=place
    ).fit()
    run.finish()
    book = Book(run.folder)
    for rank in (0, 1):
        assert rows_of(book, f"rank{rank}") == [float(i) for i in range(50)]
    assert [writer["host"] for writer in book.writers].count("near") == 2


def trial(config: dict[str, Any]) -> None:
    run = rollbook.init("ant", f"trial{config['x']}", dir=config["root"], sinks=[])
    for i in range(20):
        run.log({"score": float(config["x"] * i)}, env_step=i)
    run.finish()


def test_trials_of_tune_on_another_node_are_runs_of_that_host(
    nodes: dict[str, Any], roots: Path, tmp_path: Path
) -> None:
    from ray import tune

    tuner = tune.Tuner(
        tune.with_resources(trial, {"CPU": 1, "near": 1}),
        param_space={"x": tune.grid_search([1, 2, 3]), "root": str(roots / "trials")},
        run_config=tune.RunConfig(name="exp", storage_path=str(tmp_path / "ray"), verbose=0),
    )
    assert not [found.error for found in tuner.fit() if found.error is not None]
    books = list(rollbook.open(roots / "trials"))
    assert sorted(book.series("score", x="env_step").mean[-1] for book in books) == [19.0, 38.0, 57.0]
    assert {book.status for book in books} == {"finished"}
    assert {writer["host"] for book in books for writer in book.writers if writer["main"]} == {"near"}


def test_environment_runners_of_rllib_on_another_node_record_their_episodes(nodes: dict[str, Any], roots: Path) -> None:
    ppo = pytest.importorskip("ray.rllib.algorithms.ppo")
    from rollbook.adapters import rllib

    algorithm = (
        ppo.PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=2, rollout_fragment_length=64, custom_resources_per_env_runner={"near": 1})
        .training(train_batch_size=128, minibatch_size=64, num_epochs=1)
        .rl_module(model_config={"fcnet_hiddens": [8]})
        .callbacks(rllib.callbacks(roots / "rllib", project="pole"))
        .build_algo()
    )
    results = [algorithm.train() for _ in range(3)]
    algorithm.stop()
    (book,) = rollbook.open(roots / "rllib")
    done = [row for row in book.episodes().to_pylist() if row["complete"]]
    assert len(done) == sum(result["env_runners"]["num_episodes"] for result in results)
    assert {writer["host"] for writer in book.writers} == {os.uname().nodename, "near"}
