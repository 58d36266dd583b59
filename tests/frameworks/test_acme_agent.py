"""An agent of dm-acme: behaviour cloning on JAX, trained by its learner and played by its actor in its loop.

Those with a replay buffer need dm-launchpad, which has no wheel for Python 3.11, and dm-reverb with its TensorFlow.
"""

from __future__ import annotations

import csv
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("acmejax",)
pytestmark = pytest.mark.frameworks

jax = pytest.importorskip("jax")
dm_env = pytest.importorskip("dm_env")
hk = pytest.importorskip("haiku")
optax = pytest.importorskip("optax")
# Acme 0.4.0 is older than this JAX: it has these names in the types of arguments, and asks launchpad for stops alone.
jax.xla = types.SimpleNamespace(Device=object, DeviceArray=jax.Array)
jax.numpy.DeviceArray = jax.Array
launchpad: Any = types.ModuleType("launchpad")
launchpad.register_stop_handler = launchpad.unregister_stop_handler = lambda handler: None
sys.modules.setdefault("launchpad", launchpad)
acme = pytest.importorskip("acme")

from acme import specs  # noqa: E402
from acme.agents.jax import actor_core, actors, bc  # noqa: E402
from acme.jax import networks, utils, variable_utils  # noqa: E402
from acme.types import Transition  # noqa: E402
from acme.utils import counting  # noqa: E402
from acme.utils import loggers as native  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import acme as ours  # noqa: E402


class Corridor(dm_env.Environment):  # type: ignore[misc, name-defined]
    """Ten fields; right leads to the goal, left back; after 30 steps it is cut off."""

    def reset(self) -> Any:
        self._at, self._steps = 3, 0
        return dm_env.restart(self._seen())

    def step(self, action: int) -> Any:
        self._steps += 1
        self._at = max(0, self._at + (1 if action else -1))
        if self._at == 9:
            return dm_env.termination(np.float32(1.0), self._seen())
        made = dm_env.truncation if self._steps == 30 else dm_env.transition
        return made(np.float32(-0.01), self._seen())

    def _seen(self) -> Any:
        return np.eye(10, dtype=np.float32)[self._at]

    def observation_spec(self) -> Any:
        return specs.Array((10,), np.float32)

    def action_spec(self) -> Any:
        return specs.DiscreteArray(2)

    def reward_spec(self) -> Any:
        return specs.Array((), np.float32)

    def discount_spec(self) -> Any:
        return specs.BoundedArray((), np.float32, 0.0, 1.0)


def expert() -> Iterator[Any]:
    """Batches of somebody who always walks to the right."""
    rng = np.random.default_rng(0)
    while True:
        at = rng.integers(0, 9, 16)
        eye, ones = np.eye(10, dtype=np.float32), np.ones(16, np.float32)
        yield Transition(eye[at], np.ones(16, np.int32), ones, ones, eye[at + 1])


@pytest.mark.core
def test_what_an_agent_of_acme_reports_is_the_same_in_its_own_files_and_in_the_book(own_place: Path) -> None:
    def policy(obs: Any, is_training: bool = False, key: Any = None) -> Any:
        return hk.nets.MLP([16, 2])(obs)

    environment = Corridor()
    transformed = hk.without_apply_rng(hk.transform(policy))
    blank = utils.add_batch_dim(utils.zeros_like(specs.make_environment_spec(environment).observations))
    network = networks.FeedForwardNetwork(lambda key: transformed.init(key, blank), transformed.apply)
    run = rollbook.init("corridor", "bc", dir=own_place / "runs", sinks=(), keeper="inline")
    memory = {label: native.InMemoryLogger() for label in ("learner", "evaluator")}
    files = {label: native.CSVLogger(str(own_place), label, add_uid=False) for label in memory}

    def logger(label: str) -> Any:
        return native.Dispatcher(
            [memory[label], files[label], ours.RollbookLogger(run, label)], serialize_fn=utils.fetch_devicearray
        )

    def log_prob(logits: Any, actions: Any) -> Any:
        return jax.numpy.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(actions, 2), axis=-1)

    counter = counting.Counter()
    learner = bc.BCLearner(
        network=network,
        random_key=jax.random.PRNGKey(0),
        loss_fn=bc.logp(logp_fn=log_prob),
        optimizer=optax.adam(0.01),
        demonstrations=expert(),
        num_sgd_steps_per_step=1,
        logger=logger("learner"),
        counter=counting.Counter(counter, "learner", time_delta=0.0),
    )

    def greedy(params: Any, _key: Any, obs: Any) -> Any:
        return jax.numpy.argmax(network.apply(params, obs), axis=-1)

    actor = actors.GenericActor(
        actor_core.batched_feed_forward_to_actor_core(greedy),
        jax.random.PRNGKey(1),
        variable_utils.VariableClient(learner, "policy"),
        per_episode_update=True,
    )
    loop = acme.EnvironmentLoop(
        environment,
        actor,
        counter=counting.Counter(counter, "evaluator", time_delta=0.0),
        logger=logger("evaluator"),
    )
    for _ in range(4):
        for _ in range(10):
            learner.step()
        loop.run(num_episodes=2)
    for file in files.values():
        file.close()
    run.finish()

    numbers = 0
    for label, records in memory.items():
        rows = list(csv.DictReader(Path(files[label].file_path).read_text().splitlines()))
        for key in records.data[0]:
            told = [np.asarray(record[key]).item() for record in records.data]
            assert run.book.metrics([f"{label}/{key}"])[f"{label}/{key}"].to_pylist() == told, (label, key)
            assert [float(row[key]) for row in rows] == pytest.approx(told), (label, key)
            numbers += len(told)
    assert numbers > 200
    assert len(memory["learner"].data) == 40
    assert run.book.series("test/return").mean[-1] == pytest.approx(1.0 - 5 * 0.01), "it walks as the expert does"
    assert run.bill()["drops"] == {}
