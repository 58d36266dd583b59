"""An Optuna study, recorded by a callback: a row for each trial, the best one in the summary.

pip install 'rollbook[optuna]'
python examples/optuna_study.py
"""

from __future__ import annotations

import argparse

import optuna

import rollbook
from rollbook.adapters.optuna import RollbookCallback


def objective(trial: optuna.Trial) -> float:
    """A valley with its lowest point, 0, at lr = 1e-3 and width = 64."""
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    width = trial.suggest_int("width", 8, 256, log=True)
    return (lr / 1e-3 - 1) ** 2 / (1 + lr / 1e-3) + (width / 64 - 1) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description="A study of two parameters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=40)
    args = parser.parse_args()

    callback = RollbookCallback(project="valley", name="tpe", seed=args.seed)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=args.seed))
    study.optimize(objective, n_trials=args.trials, callbacks=[callback])
    callback.close()

    book = rollbook.open("runs").one("valley/tpe", seed=args.seed, id=callback.run.id)
    values = book.series("value", x="step")
    print(f"{len(values)} trials, the best {book.summary['best_value']:.3g} by {book.summary['best_params']}")


if __name__ == "__main__":
    main()
