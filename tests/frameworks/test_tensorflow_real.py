"""Programs of TensorFlow that know nothing of rollbook, recorded by `rollbook run --tensorboard`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from waiting import PATIENCE

GROUPS = ("tensorflow",)

pytestmark = pytest.mark.core

AGENT = """
import tensorflow as tf
train, evaluation = (tf.summary.create_file_writer(f"logs/dqn/{part}") for part in ("train", "eval"))
train.set_as_default()
step = tf.Variable(0, dtype=tf.int64)

@tf.function
def learn():
    with tf.name_scope("Losses"):
        tf.summary.scalar("loss", 1.0 / tf.cast(step + 1, tf.float32), step=step)
    tf.summary.histogram("weights", tf.linspace(0.0, 1.0, 50), step=step)
    step.assign_add(1)

for n in range(40):
    learn()
    if n % 10 == 0:
        with evaluation.as_default():
            tf.summary.scalar("Metrics/AverageReturn", float(n), step=step)
tf.summary.text("gin", "a = 1", step=0)
tf.summary.image("frame", tf.zeros([1, 8, 8, 3]), step=0)
"""

DOPAMINE = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
writer = tf.summary.FileWriter("logs/rainbow")
for n in range(10):
    value = tf.Summary.Value(tag="Train/AverageReturns", simple_value=float(n))
    writer.add_summary(tf.Summary(value=[value]), n)
writer.flush()
"""

KERAS = """
import keras, numpy as np
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
for fit in range(2):
    callback = keras.callbacks.TensorBoard(f"logs/fit-{fit}")
    data = np.ones((8, 3)), np.ones((8, 1))
    model.fit(*data, epochs=3, verbose=0, callbacks=[callback], validation_data=data)
"""


def recorded(code: str, folder: Path) -> rollbook.RunSet:
    (folder / "train.py").write_text(code)
    environment = {**os.environ, "ROLLBOOK_DIR": str(folder / "runs"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "rollbook", "run", "--tensorboard", "train.py"]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=PATIENCE)
    return rollbook.open(folder / "runs")


def test_an_agent_that_writes_within_a_graph_is_one_run_with_every_value(tmp_path: Path) -> None:
    book = recorded(AGENT, tmp_path).one()
    losses = book.metrics(["Losses/loss"])
    assert losses["env_step"].to_pylist() == list(range(40))
    assert losses["Losses/loss"].to_pylist() == pytest.approx([1.0 / (n + 1) for n in range(40)], rel=1e-6)
    known = book.keys()
    (returns,) = (key for key in known if "AverageReturn" in key)
    assert book.metrics([returns])[returns].to_pylist() == [0.0, 10.0, 20.0, 30.0]
    assert len(book.table("histograms")) == 40
    assert [row["text"] for row in book.table("text").to_pylist()] == ["a = 1"]
    assert len(book.table("media")) == 1
    assert book.status == "finished"


def test_a_writer_of_the_first_version_is_recorded(tmp_path: Path) -> None:
    book = recorded(DOPAMINE, tmp_path).one()
    assert book.metrics(["Train/AverageReturns"])["Train/AverageReturns"].to_pylist() == [float(n) for n in range(10)]


def test_each_fit_of_keras_has_its_epochs(tmp_path: Path) -> None:
    runs = recorded(KERAS, tmp_path)
    assert sorted(book.name for book in runs) == ["fit-0", "fit-1"]
    for book in runs:
        known = book.keys()
        for key in ("train/epoch_loss", "validation/epoch_loss"):
            assert key in known
            assert book.metrics([key])["env_step"].to_pylist() == [0, 1, 2]
