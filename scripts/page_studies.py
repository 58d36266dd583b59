#!/usr/bin/env python3
"""Records the studies that the pictures of README.md, docs/compare.md and docs/pages.md show: real trainings.

    python scripts/page_studies.py studies               # minutes on two cores: a folder of runs for each study
    python scripts/page_studies.py studies sweep killed  # some of them

Needs stable-baselines3 (cartpole), torch (rollouts) and pygame (seeds) in this Python. A study that is there already
is left as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rollbook

STEPS_KILLED = 30_000


def cartpole() -> None:
    """Five seeds each of PPO and DQN on CartPole-v1, evaluated every thousand steps; for README and docs/compare.md."""
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.monitor import Monitor

    from rollbook.adapters.sb3 import RollbookCallback

    dqn = {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    }
    for seed in range(5):
        for name, algorithm, settings in (("ppo", PPO, {"n_steps": 512}), ("dqn", DQN, dqn)):
            with rollbook.init("cartpole", name, seed=seed, config={"algo": name}, total={"env_step": 10_000}) as run:
                model: Any = algorithm("MlpPolicy", "CartPole-v1", seed=seed, **settings)
                test = EvalCallback(Monitor(gymnasium.make("CartPole-v1")), eval_freq=1000, verbose=0)
                model.learn(10_000, callback=[RollbookCallback(run, checkpoint_every=5000, keep=2), test])


def sweep() -> None:
    """PPO of `rollbook demo`: four learning rates and two numbers of passes, three seeds each."""
    from rollbook.demo.loop import CONFIG, train

    for learning_rate in (3e-4, 1e-3, 3e-3, 3e-2):
        for passes in (3, 10):
            for seed in range(3):
                config = {
                    **CONFIG,
                    "env_steps": 16_000,
                    "learning_rate": learning_rate,
                    "agent": {**CONFIG["agent"], "passes": passes},
                }
                with rollbook.init("cartpole", "ppo", seed=seed, config=config, total={"env_step": 16_000}) as run:
                    train(run)


class Sensor(gymnasium.Wrapper):  # type: ignore[misc, type-arg]
    """Gives no reading any more after some steps."""

    def __init__(self, env: Any, works_for: float) -> None:
        super().__init__(env)
        self.steps, self.works_for = 0, works_for

    def step(self, action: Any) -> Any:
        """Read, as long as it works."""
        self.steps += 1
        if self.steps > self.works_for:
            raise RuntimeError("the sensor of the pole gave no reading for 2 s")
        return self.env.step(action)


def seeds() -> None:
    """PPO of `rollbook demo` with ten passes over each batch and with two, five seeds each, filmed; the sensor of one
    fails after 9,000 steps."""
    for device in ("AUDIO", "VIDEO"):  # pygame looks for them, and complains on stderr
        os.environ.setdefault(f"SDL_{device}DRIVER", "dummy")
    from rollbook.capture.gym import record_envs
    from rollbook.demo import loop

    for passes in (2, 10):
        for seed in range(5):
            steps, broken = 12_000, (passes, seed) == (2, 3)
            config = {
                **loop.CONFIG,
                "env_steps": steps,
                "passes": passes,
                "agent": {**loop.CONFIG["agent"], "passes": passes},
            }
            with (
                contextlib.suppress(RuntimeError),
                rollbook.init("cartpole", "ppo", seed=seed, config=config, total={"env_step": steps}) as run,
            ):

                def one(works_for: float = 9000 / 8 if broken else float("inf")) -> Any:
                    return Sensor(gymnasium.make("CartPole-v1", render_mode="rgb_array"), works_for)

                makers = record_envs([one] * 8, run.scope("train"), video="every 10", steps="every 10")
                envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
                loop._environments = lambda _, envs=envs: envs
                loop.train(run)


WORDS = ["cat", "dog", "sun", "moon", "tree", "hill", "red", "blue"]
TOOLS = ["search", "calculator", "clock", "translate"]
ASKED = [
    ("How many minutes has a week?", "calculator", "10080"),
    ("What does 'Regen' mean?", "translate", "rain"),
    ("Who wrote Faust?", "search", "Goethe"),
    ("Is it past noon?", "clock", "no, 09:41"),
    ("What is 17 * 23?", "calculator", "391"),
    ("Which river flows through Kazan?", "search", "the Volga"),
]


def rollouts() -> None:
    """GRPO on a small language model that has no word for one of its prompts, and an agent that learns its tools."""
    import numpy as np

    for name, lr, seed in (("grpo-slow", 2e-3, 0), ("grpo", 1e-2, 1)):
        speak(name, lr, seed)
    agent()
    samples(np.random.default_rng(3))


def samples(rng: Any) -> None:
    """A batch of completions at each step, of which more and more are right."""
    import numpy as np

    with rollbook.init("words", "samples", seed=3, total={"gradient_step": 60}) as run:
        skill = np.zeros(len(WORDS))
        for step in range(60):
            asked = np.repeat(rng.choice(len(WORDS), 4, replace=False), 6)
            knows = rng.random(len(asked)) < 1 / (1 + np.exp(1 - skill[asked]))
            said = np.where(knows, asked, rng.integers(0, len(WORDS), len(asked)))
            texts = [f"{WORDS[word]} is the word" for word in said]
            right = (said == asked).astype(float)
            advantage = (right.reshape(4, 6) - right.reshape(4, 6).mean(1, keepdims=True)).ravel()
            run.log_samples(
                texts,
                group=[f"{step}-{word}" for word in asked],
                prompt=[f"say {WORDS[word]}" for word in asked],
                completion=texts,
                rewards={"right": list(right), "short": [0.1] * len(texts)},
                advantage=list(advantage),
                policy_version=step,
                gradient_step=step,
            )
            np.add.at(skill, asked, np.abs(advantage) / 2)
            run.log({"train/reward": float(right.mean())}, gradient_step=step)


def speak(name: str, lr: float, seed: int) -> None:
    """A recurrent net says three words to each prompt, and learns by group-relative policy gradients to say the one
    that it was asked for; its vocabulary lacks "whale"."""
    import torch

    torch.manual_seed(seed)
    prompts = [f"say {word}" for word in [*WORDS, "whale"]]
    vocabulary = [*WORDS, "<end>"]

    class Speaker(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.asked = torch.nn.Embedding(len(prompts), 32)
            self.word = torch.nn.Embedding(len(vocabulary) + 1, 32)
            self.cell = torch.nn.GRUCell(32, 32)
            self.out = torch.nn.Linear(32, len(vocabulary))

        def forward(self, prompt: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
            """Log-probabilities [n, turns, words] after each word of `said` [n, turns]."""
            hidden = self.asked(prompt)
            logits = []
            for column in said.T:
                hidden = self.cell(self.word(column), hidden)
                logits.append(self.out(hidden))
            return torch.stack(logits, 1).log_softmax(-1)

    model, length, size = Speaker(), 4, 8
    optimiser = torch.optim.Adam(model.parameters(), lr)
    config = {"lr": lr, "group": size, "vocabulary": len(vocabulary)}
    with rollbook.init("words", name, seed=seed, config=config, total={"gradient_step": 120}) as run:
        for update in range(120):
            chosen = torch.randperm(len(prompts))[:4].repeat_interleave(size)
            said = torch.full((len(chosen), 1), len(vocabulary))
            with torch.no_grad(), run.timer("generate"):
                for _ in range(length):
                    said = torch.cat([said, model(chosen, said)[:, -1].exp().multinomial(1)], 1)
                sampled = model(chosen, said[:, :-1]).gather(2, said[:, 1:, None])[..., 0]
            texts, tokens, logprobs, rewards, cut = [], [], [], [], []
            for row, (prompt, words) in enumerate(zip(chosen.tolist(), said[:, 1:].tolist(), strict=True)):
                end = words.index(len(WORDS)) + 1 if len(WORDS) in words else length
                spoken = [vocabulary[word] for word in words[:end]]
                asked = prompts[prompt].split()[1]
                texts.append(" ".join(word for word in spoken if word != "<end>"))
                tokens.append(words[:end])
                logprobs.append(sampled[row, :end].tolist())
                rewards.append(spoken.count(asked) / max(1, len(spoken) - ("<end>" in spoken)))
                cut.append("<end>" not in spoken)
            answers = [
                {"role": "assistant", "content": text, "tokens": token, "logprobs": logprob}
                for text, token, logprob in zip(texts, tokens, logprobs, strict=True)
            ]
            ids = run.rollouts.log_many(
                messages=[
                    [{"role": "user", "content": prompts[prompt]}, answer]
                    for prompt, answer in zip(chosen.tolist(), answers, strict=True)
                ],
                rewards={"right": rewards, "cut": [-0.1 * is_cut for is_cut in cut]},
                group=[f"{update}-{prompt}" for prompt in chosen.tolist()],
                status=["truncated" if is_cut else "completed" for is_cut in cut],
                stop_reason=["length" if is_cut else "eos" for is_cut in cut],
                policy_version=update,
                gradient_step=update,
            )
            total = (torch.tensor(rewards) - 0.1 * torch.tensor(cut)).reshape(4, size)
            spread = total.std(1)
            advantage = ((total - total.mean(1, keepdim=True)) / (spread[:, None] + 1e-6)).ravel()
            used = (spread > 1e-6).repeat_interleave(size)
            with run.timer("update"):
                now = model(chosen, said[:, :-1])
                taken = now.gather(2, said[:, 1:, None])[..., 0]
                mask = torch.zeros_like(taken)
                for row, token in enumerate(tokens):
                    mask[row, : len(token)] = 1
                loss = -(taken * mask * advantage[:, None] * used[:, None]).sum() / mask.sum()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            trained = [row for row in range(len(ids)) if used[row]]
            run.rollouts.trained(
                [ids[row] for row in trained],
                advantage=[float(advantage[row]) for row in trained],
                trainer_logprobs=[taken[row, : len(tokens[row])].detach().tolist() for row in trained],
                trained_version=update + 1,
                gradient_step=update,
            )
            wasted = [ids[row] for row in range(len(ids)) if not used[row]]
            run.rollouts.dropped(wasted, reason="zero_std", gradient_step=update)
            entropy = float(-(now.exp() * now).sum(-1).mean())
            run.log({"train/reward": float(total.mean()), "update/loss/policy": float(loss)}, gradient_step=update)
            run.log({"update/entropy": entropy}, gradient_step=update)


def agent() -> None:
    """Which tool answers which question, learnt by policy gradients; translate fails half the time."""
    import numpy as np

    rng = np.random.default_rng(2)
    logits = np.zeros((len(ASKED), len(TOOLS)))
    with rollbook.init("tools", "agent", seed=2, config={"group": 6, "lr": 1.0}, total={"gradient_step": 60}) as run:
        for update in range(60):
            for task in rng.choice(len(ASKED), 3, replace=False):
                question, right, answer = ASKED[task]
                chances = np.exp(logits[task]) / np.exp(logits[task]).sum()
                picks, ids, rewards = rng.choice(len(TOOLS), 6, p=chances), [], []
                for pick in picks:
                    tool = TOOLS[pick]
                    error = "TimeoutError: no answer in 10 s" if tool == "translate" and rng.random() < 0.5 else None
                    solved = tool == right and error is None
                    with run.rollouts.begin(
                        task=question,
                        group=f"{update}-{task}",
                        policy_version=update,
                        tools=[{"name": name} for name in TOOLS],
                    ) as rollout:
                        call = {"name": tool, "arguments": {"question": question}}
                        rollout.turn("assistant", f"I ask {tool}.", calls=[call], tokens=7, seconds=0.4)
                        found = answer if solved else None if error else "nothing found"
                        rollout.turn("tool", found, name=tool, seconds=0.2, error=error)
                        last = f"The answer: {answer}." if solved else "I do not know."
                        rollout.turn("assistant", last, tokens=5, seconds=0.3)
                        rollout.reward(answer=float(solved), tool=-0.2 * (error is not None))
                        rollout.stop("eos")
                    ids.append(rollout.id)
                    rewards.append(float(solved) - 0.2 * (error is not None))
                score = np.array(rewards)
                if score.std() < 1e-9:
                    run.rollouts.dropped(ids, reason="zero_std", gradient_step=update)
                    continue
                advantage = (score - score.mean()) / score.std()
                for pick, weight in zip(picks, advantage, strict=True):
                    logits[task] += weight * ((np.arange(len(TOOLS)) == pick) - chances) / 6
                run.rollouts.trained(ids, advantage=advantage, trained_version=update + 1, gradient_step=update)


def killed() -> None:
    """PPO of `rollbook demo`: killed twice and resumed, ended by an exception, and killed for good."""
    for seed, ends in ((1, ("0.4", "0.75", "end")), (2, ("0.5 raise", "end")), (3, ("0.6 raise",)), (4, ("0.3",))):
        for end in ends:
            subprocess.run([sys.executable, __file__, "--life", f"{seed} {end}", "."], check=False)


def life(seed: int, end: str, how: str = "kill") -> None:
    """One attempt, up to that share of the steps."""
    from rollbook.demo import loop

    config = {**loop.CONFIG, "env_steps": STEPS_KILLED}
    run = rollbook.init(
        "cartpole", "ppo", seed=seed, config=config, total={"env_step": STEPS_KILLED}, resume="allow", keeper="inline"
    )

    def reached() -> bool:
        return run.clocks_now().get("env_step", 0) >= float(end) * STEPS_KILLED

    def watch() -> None:
        while not reached():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    if end != "end" and how == "kill":
        threading.Thread(target=watch, daemon=True).start()
    if how == "raise":
        make = loop._environments

        def fragile(config: dict[str, object]) -> Any:
            envs: Any = make(config)
            step = envs.step

            def checked(actions: Any) -> Any:
                if reached():
                    raise RuntimeError("the simulator did not answer within 10 s")
                return step(actions)

            envs.step = checked
            return envs

        loop._environments = fragile
    with run:
        loop.train(run)


STUDIES: dict[str, Callable[[], None]] = {
    "cartpole": cartpole,
    "sweep": sweep,
    "seeds": seeds,
    "rollouts": rollouts,
    "killed": killed,
}


def main() -> None:
    """Record STUDIES/NAME/runs of each study."""
    parser = argparse.ArgumentParser(description="Record the studies of the pictures")
    parser.add_argument("studies", type=Path, help="where a folder for each study goes")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(STUDIES)}")
    parser.add_argument("--life", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.life:
        seed, *rest = given.life.split()
        life(int(seed), *rest)
        return
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)
    studies = given.studies.resolve()
    for name in given.names or STUDIES:
        folder = studies / name
        if folder.exists():
            print(f"{name}: is there", flush=True)
            continue
        folder.mkdir(parents=True)
        os.chdir(folder)
        STUDIES[name]()
        print(f"{name}: {len(rollbook.open('runs'))} runs", flush=True)


if __name__ == "__main__":
    main()
