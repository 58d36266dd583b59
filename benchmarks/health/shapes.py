"""False alarms of each rule over healthy trainings of many shapes.

python -m benchmarks.health.shapes                the table rule x shape, 50 trainings a shape
python -m benchmarks.health.shapes --seeds 200    more of them
python -m benchmarks.health.shapes --write docs   into the page of health rules

The trainings are simulated: what is logged, row by row, as it looks where a value cannot do otherwise. Returns of two
values, tasks that are solved, one epoch, one minibatch, rare rewards, tiny runs, language models without a known
length, quantities that are constant by construction. Each rule is asked alone, without earlier runs.
"""

from __future__ import annotations

import argparse
import math
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from rollbook import health
from rollbook.protocols import Row, RunInfo
from rollbook.runs.checking import AFTERWARDS, alerts_of
from rollbook.schema.columns import RowsPiece

__all__ = ["LIMIT", "SHAPES", "Shape", "false_alarms", "table"]

LIMIT = 0.02
"""False alarms a run; a rule with more is not among the default ones."""

_MARK = "<!-- made by python -m benchmarks.health.shapes -->\n"

Values = dict[str, float]


class Shape(NamedTuple):
    """One kind of healthy training.

    Attributes:
      words: what is special about it.
      rows: chance -> what each row logs.
      every: environment steps a row.
      total: the length of the run is known.
      config: its settings.
    """

    words: str
    rows: Callable[[Random], Iterator[Values]]
    every: int = 100
    total: bool = True
    config: Mapping[str, Any] = MappingProxyType({})


def _learned(i: int, n: int) -> float:
    """How much of a task is learned after i of n rows, from 0 to 1."""
    return 1 / (1 + math.exp(-12 * (i / n - 0.35)))


def _update(chance: Random, come: float, entropy: float = 0.69, **more: float) -> Values:
    """What PPO logs of an update of a healthy run."""
    return {
        "losses/approx_kl": abs(chance.gauss(0.008, 0.003)) + 1e-5,
        "losses/clipfrac": abs(chance.gauss(0.1, 0.03)),
        "losses/entropy": entropy * (1 - 0.7 * come) * chance.uniform(0.95, 1.05),
        "losses/explained_variance": min(0.99, come + chance.gauss(0, 0.1)),
        "losses/value_loss": chance.lognormvariate(2 - come, 0.4),
        "losses/policy_loss": chance.gauss(-0.01, 0.01),
        "charts/learning_rate": 2.5e-4,
        **more,
    }


def _dense(chance: Random, n: int = 600) -> Iterator[Values]:
    for i in range(n):
        come = _learned(i, n)
        yield {"charts/episodic_return": chance.gauss(20 + 400 * come, 10 + 60 * come), **_update(chance, come)}


def _two_valued(chance: Random, luck: float = 0.1, n: int = 600) -> Iterator[Values]:
    for i in range(n):
        come = _learned(i, n)
        won = float(chance.random() < luck + (0.99 - luck) * come)
        yield {"charts/episodic_return": won, **_update(chance, come)}


def _solved(chance: Random, n: int = 800) -> Iterator[Values]:
    """At the ceiling from the first third on; nothing is left to explain, and the entropy vanishes."""
    for i in range(n):
        come = _learned(i, n // 2)
        gained = 500.0 if come > 0.98 else min(500.0, chance.expovariate(1 / (20 + 450 * come)))
        told = _update(chance, come)
        if come > 0.98:
            told["losses/explained_variance"] = chance.gauss(-0.8, 0.6)
            told["losses/entropy"] = 0.01 * chance.random()
        yield {"charts/episodic_return": gained, **told}


def _one_epoch(chance: Random, n: int = 600) -> Iterator[Values]:
    """The divergence and the clipped share are measured before each step: with one epoch and one minibatch 0."""
    for i in range(n):
        come = _learned(i, n)
        told = _update(chance, come)
        told.update({"losses/approx_kl": 0.0, "losses/clipfrac": 0.0})
        yield {"charts/episodic_return": chance.gauss(20 + 150 * come, 15), **told}


def _rare(chance: Random, n: int = 900) -> Iterator[Values]:
    """Found by luck now and then, understood half-way."""
    for i in range(n):
        share = 0.03 + 0.9 * max(0.0, _learned(i, n) - 0.3)
        yield {"charts/episodic_return": float(chance.random() < share), **_update(chance, share)}


def _tiny(chance: Random) -> Iterator[Values]:
    yield from _dense(chance, 40)


def _continuous(chance: Random, n: int = 800) -> Iterator[Values]:
    """SAC: negative returns, a differential entropy below 0, a temperature that follows its target."""
    for i in range(n):
        come = _learned(i, n)
        yield {
            "charts/episodic_return": chance.gauss(-1400 + 1200 * come, 150),
            "losses/qf1_values": -90 + 70 * come + chance.gauss(0, 3),
            "losses/qf1_loss": chance.lognormvariate(1, 0.5),
            "losses/actor_loss": 90 - 70 * come,
            "losses/alpha": max(0.02, math.exp(-4 * i / n)),
            "losses/entropy": 1.2 - 2.2 * come,
        }


def _fixed_length(chance: Random, n: int = 600) -> Iterator[Values]:
    """A task of fixed length whose reward is a cost, with heavy tails that become lighter."""
    for i in range(n):
        come = _learned(i, n)
        cost = chance.lognormvariate(4 - 2 * come, 0.6)
        yield {"charts/episodic_return": -cost, "charts/episodic_length": 200.0, **_update(chance, come)}


def _dqn(chance: Random, n: int = 900) -> Iterator[Values]:
    for i in range(n):
        come = _learned(i, n)
        yield {
            "charts/episodic_return": chance.expovariate(1 / (20 + 200 * come)),
            "charts/episodic_length": 20 + 200 * come,
            "charts/epsilon": max(0.05, 1 - 4 * i / n),
            "losses/q_values": 1 + 60 * come + chance.gauss(0, 1),
            "losses/td_loss": chance.lognormvariate(0, 0.8),
        }


def _constant(chance: Random, n: int = 600) -> Iterator[Values]:
    """Much of what is logged is one number by construction."""
    for i in range(n):
        come = _learned(i, n)
        yield {
            "charts/episodic_return": chance.gauss(5 + 5 * come, 2),
            "charts/episodic_length": 50.0,
            "train/clip_range": 0.2,
            "train/ent_coef": 0.0,
            "train/learning_rate": 3e-4,
            "charts/epsilon": 0.05,
            "train/std": 1.0,
            "train/value_loss": chance.lognormvariate(0, 0.3),
            "train/clip_fraction": 0.0,
        }


def _means(chance: Random, n: int = 150) -> Iterator[Values]:
    """Stable-Baselines3: a mean over the last hundred episodes once a rollout."""
    mean = 22.0
    for i in range(n):
        come = _learned(i, n)
        mean += 0.3 * (22 + 400 * come + chance.gauss(0, 15) - mean)
        told = {
            "train/approx_kl": abs(chance.gauss(0.008, 0.003)),
            "train/clip_fraction": 0.08,
            "train/entropy_loss": -0.69 * (1 - 0.6 * come),
            "train/explained_variance": min(0.99, come + chance.gauss(0, 0.1)),
            "train/value_loss": chance.lognormvariate(2, 0.4),
            "train/loss": chance.gauss(1, 0.4),
        }
        yield {"rollout/ep_rew_mean": mean, "rollout/ep_len_mean": mean, **told}


def _late(chance: Random, n: int = 1500) -> Iterator[Values]:
    """A hard task without a known length: nothing but small gains for a thousand episodes."""
    for i in range(n):
        come = 0.04 * i / n + 0.96 * max(0.0, (i - 900) / 600) ** 2
        yield {"charts/episodic_return": chance.gauss(100 + 400 * come, 30), **_update(chance, come)}


def _good_from_the_start(chance: Random, n: int = 1000) -> Iterator[Values]:
    for i in range(n):
        yield {"charts/episodic_return": float(chance.random() < 0.9 + 0.07 * _learned(i, n))}


def _grpo(chance: Random, prefix: str, n: int = 300, end: float = 0.75, times: float = 6.0) -> Iterator[Values]:
    """A reasoning model: longer answers, most of the entropy spent, a divergence that grows, rates that rise from 0."""
    for i in range(n):
        come = _learned(i, n)
        told = {
            "reward": 0.2 + (end - 0.2) * come + chance.gauss(0, 0.05),
            "reward_std": 0.4 - 0.2 * come,
            "kl": 0.0 if i < 3 else 0.3 * come * chance.lognormvariate(0, 0.5) + 1e-5,
            "entropy": 1.1 * math.exp(-2.5 * come),
            "completions/mean_length": 200 * (1 + (times - 1) * come) * chance.uniform(0.9, 1.1),
            "completions/clipped_ratio": min(1.0, 0.02 + 0.25 * come),
            "frac_reward_zero_std": 0.2 + 0.4 * come,
            "grad_norm": chance.lognormvariate(-1, 0.4),
            "learning_rate": 1e-6 * min(1.0, i / 10),
            "loss": chance.gauss(0, 0.01),
            "clip_ratio/region_mean": abs(chance.gauss(0.001, 0.001)),
        }
        yield {prefix + key: value for key, value in told.items()}


def _grpo_solved(chance: Random, n: int = 300) -> Iterator[Values]:
    """All answers are right in the end: no entropy, no spread, no gradient."""
    for i in range(n):
        come = _learned(i, n // 2)
        noise = 0.05 * (1 - come)
        yield {
            "reward": min(1.0, 0.1 + 0.9 * come + chance.gauss(0, noise)),
            "kl": 2.0 * come + 1e-4,
            "entropy": 2.0 * (1 - come) + 1e-3,
            "frac_reward_zero_std": min(1.0, 0.1 + 0.9 * come),
            "completions/mean_length": 16.0,
            "completions/clipped_ratio": 1.0,
            "grad_norm": (1 - come) * chance.random() + 1e-6,
        }


def _rlhf(chance: Random, n: int = 300) -> Iterator[Values]:
    """A fine-tuned model and a reward model: small gains, a divergence that is summed over the answer."""
    for i in range(n):
        yield {
            "train/objective/scores": 1.0 + 1.2 * _learned(i, n) + chance.gauss(0, 0.3),
            "train/objective/kl": 20 * _learned(i, n) + abs(chance.gauss(0, 0.5)),
            "train/policy/entropy_avg": 1.5 - 0.6 * _learned(i, n),
            "train/policy/approxkl_avg": abs(chance.gauss(0.01, 0.004)),
            "train/policy/clipfrac_avg": 0.08,
            "train/loss/value_avg": chance.lognormvariate(-1, 0.3),
            "train/lr": 3e-6 * (1 - i / n),
        }


def _grpo_noisy(chance: Random, n: int = 300) -> Iterator[Values]:
    """Few answers a batch: the reward of a batch says little, and rises slowly."""
    for i in range(n):
        yield {
            "reward": 0.3 + 0.25 * _learned(i, n) + chance.gauss(0, 0.15),
            "entropy": 1.0 - 0.4 * _learned(i, n),
            "grad_norm": chance.lognormvariate(-1, 0.4),
        }


def _curriculum(chance: Random, n: int = 1200) -> Iterator[Values]:
    """Isaac Lab: the terrain becomes harder each time that it is mastered, and the reward begins anew."""
    for i in range(n):
        come = _learned(i % 400, 400)
        told = {"Loss/value_function": chance.lognormvariate(-2, 0.3), "Loss/entropy": 10 - 4 * i / n}
        yield {"Train/mean_reward": 20 * come + chance.gauss(0, 0.5), "Curriculum/terrain_levels": 1 + i // 400, **told}


def _self_play(chance: Random, n: int = 600) -> Iterator[Values]:
    """Against itself: half of the games are won, whatever is learned; the rating tells it."""
    for i in range(n):
        come = _learned(i, n)
        yield {
            "charts/episodic_return": chance.choice((-1.0, 1.0)),
            "train/elo": 1000 + 800 * come + chance.gauss(0, 10),
            **_update(chance, come),
        }


def _preferences(chance: Random, n: int = 300) -> Iterator[Values]:
    """DPO: the loss falls from ln 2."""
    for i in range(n):
        come = _learned(i, n)
        yield {
            "loss": max(0.05, 0.69 - 0.3 * come + chance.gauss(0, 0.05)),
            "rewards/margins": 2 * come + chance.gauss(0, 0.3),
            "rewards/accuracies": min(1.0, 0.5 + 0.35 * come + chance.gauss(0, 0.05)),
            "grad_norm": chance.lognormvariate(1, 0.4),
            "learning_rate": 5e-7 * (1 - i / n),
        }


def _fine_tuned(chance: Random, n: int = 300) -> Iterator[Values]:
    """SFT in three epochs: a step of the loss at each, single bad batches."""
    for i in range(n):
        bad = 2.0 if chance.random() < 0.02 else 0.0
        yield {
            "loss": max(0.05, 2.0 * math.exp(-i / 60) + 0.9 - 0.2 * (3 * i // n) + bad + chance.gauss(0, 0.08)),
            "grad_norm": chance.lognormvariate(0, 0.5),
            "learning_rate": 2e-5 * min(1.0, i / 10) * (1 - i / n),
            "mean_token_accuracy": 0.5 + 0.2 * _learned(i, n),
        }


_PPO = {"learning_rate": 2.5e-4, "gamma": 0.99, "n_steps": 128, "num_envs": 4, "n_epochs": 4}
_GRPO = {"beta": 0.04, "learning_rate": 1e-6, "max_completion_length": 2048}

SHAPES: dict[str, Shape] = {
    "dense": Shape("PPO, dense rewards", _dense, config=_PPO),
    "two values": Shape("returns of 0 and 1, a tenth of them by luck", _two_valued, config=_PPO),
    "solved": Shape("at the ceiling for most of the run", _solved, config=_PPO),
    "one epoch": Shape("A2C: one epoch, one minibatch", _one_epoch, config={"learning_rate": 7e-4}),
    "rare": Shape("rare rewards that are found half-way", _rare, config=_PPO),
    "tiny": Shape("forty episodes", _tiny),
    "continuous": Shape("SAC: costs, differential entropy", _continuous, config={"gamma": 0.99}),
    "costs": Shape("fixed length, costs with heavy tails", _fixed_length, config=_PPO),
    "dqn": Shape("DQN: epsilon falls, returns spread widely", _dqn, config={"learning_rate": 1e-3}),
    "constant": Shape("most values are constant by construction", _constant),
    "means": Shape("SB3: means over a hundred episodes, no length", _means, every=2048, total=False),
    "late": Shape("small gains for long, no length", _late, total=False, config=_PPO),
    "good": Shape("90 % won from the first round on", _good_from_the_start),
    "grpo": Shape("GRPO: a reasoning model, no length", lambda chance: _grpo(chance, ""), 1, False, _GRPO),
    "grpo w&b": Shape("the same as W&B has it (train/…)", lambda chance: _grpo(chance, "train/"), 1, True, _GRPO),
    "grpo slow": Shape("GRPO: a tenth of the gain", lambda chance: _grpo(chance, "", 300, 0.3, 1.2), 1, False, _GRPO),
    "grpo solved": Shape("GRPO: every answer right, all of one length", _grpo_solved, 1, False, _GRPO),
    "grpo noisy": Shape("GRPO: few answers a batch, no length", _grpo_noisy, 1, False, _GRPO),
    "curriculum": Shape("a curriculum that logs its stage", _curriculum, every=98_304, config=_PPO),
    "self-play": Shape("self-play: half of the games are won, the rating rises", _self_play, config=_PPO),
    "dpo": Shape("DPO", _preferences, 1),
    "sft": Shape("SFT: three epochs, single bad batches", _fine_tuned, 1),
    "rlhf": Shape("PPO on a reward model", _rlhf, 1, True, {"kl_coef": 0.05}),
}


def false_alarms(shape: str, seed: int, rules: tuple[str, ...] = AFTERWARDS) -> dict[str, str]:
    """What the rules say of one healthy training, notes aside: rule -> its message.

    Args:
      shape: of `SHAPES`.
      seed: of the training.
      rules: which are asked.
    """
    kind = SHAPES[shape]
    clocks = ("gradient_step",) if kind.every == 1 else ("env_step", "gradient_step")
    rows = [
        Row(1.7e9 + i, dict.fromkeys(clocks, (i + 1) * kind.every), values, seq=i + 1)
        for i, values in enumerate(kind.rows(Random(f"{shape} {seed}")))
    ]
    total = {clocks[0]: len(rows) * kind.every} if kind.total else {}
    info = RunInfo(Path("runs"), "shapes", shape, f"{shape}-{seed}", clocks=clocks, config=kind.config, total=total)
    found = alerts_of([health.make(rule) for rule in rules], info, [RowsPiece("metrics", rows)])
    return {alert.rule: alert.message for alert in found if alert.level != "note"}


def table(seeds: int, verbose: bool = False) -> str:
    """The table in Markdown, of so many trainings a shape."""
    of: dict[str, Counter[str]] = {}
    for shape in SHAPES:
        of[shape] = Counter()
        for seed in range(seeds):
            said = false_alarms(shape, seed)
            of[shape].update(list(said))
            if verbose and said:
                print(shape, seed, said)
    spoke = [rule for rule in AFTERWARDS if any(count[rule] for count in of.values())]
    runs, rules = seeds * len(SHAPES), [f"`{rule}`" for rule in spoke]
    rates = [sum(count[rule] for count in of.values()) / runs for rule in spoke]
    rows = [(SHAPES[shape].words, [str(count[rule] or "") for rule in spoke]) for shape, count in of.items()]
    rows.append(("false alarms a run", [f"{rate:.4f}" for rate in rates]))
    lines = [
        _row("healthy training", "trainings", *rules),
        _row(*["---"] * (2 + len(spoke))),
        *(_row(words, str(runs if words == rows[-1][0] else seeds), *cells) for words, cells in rows),
        "",
        f"{runs:,} trainings at commit {_commit()}. The other {len(AFTERWARDS) - len(spoke)} of {len(AFTERWARDS)} "
        f"rules said nothing but notes: at most {3 / runs:.4f} false alarms a run each (95 %).",
    ]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.health.shapes",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--write", type=Path, metavar="DOCS")
    parser.add_argument("--verbose", action="store_true", help="print each false alarm")
    given = parser.parse_args()
    made = table(given.seeds, given.verbose)
    print(made)
    if given.write:
        page = given.write / "health.md"
        before, mark, rest = page.read_text(encoding="utf-8").partition(_MARK)
        if not mark:
            raise SystemExit(f"{page} has no line {_MARK.strip()}: add it, and <!-- end --> behind it")
        page.write_text(f"{before}{mark}{made}<!-- end -->{rest.partition('<!-- end -->')[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
