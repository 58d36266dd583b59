"""A network of Keras learns a sum, recorded by a callback.

pip install 'rollbook[keras]' jax
KERAS_BACKEND=jax python examples/keras_fit.py
"""

from __future__ import annotations

import argparse

import keras
import numpy as np

import rollbook
from rollbook.adapters.keras import RollbookCallback


def main() -> None:
    parser = argparse.ArgumentParser(description="Keras learns a sum")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)], name="sum")
    model.compile(keras.optimizers.Adam(0.01), "mse")
    x = np.random.default_rng(args.seed).random((512, 3), dtype=np.float32)
    callback = RollbookCallback(project="sums", seed=args.seed)
    model.fit(x, x.sum(1), epochs=args.epochs, validation_split=0.25, callbacks=[callback], verbose=0)
    rollbook.finish()

    book = rollbook.open("runs").one("sums/sum", seed=args.seed)
    loss = book.series("val_loss", x="epoch")
    print(f"validation loss: {loss.mean[0]:.4f} after the first epoch, {loss.mean[-1]:.4f} after the last")


if __name__ == "__main__":
    main()
