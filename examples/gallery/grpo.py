"""What a GRPO training learned from.

A policy over answers learns sums by group-relative policy gradients: eight completions a prompt, two rewards, groups
without a difference dropped. Each completion is a rollout with its fate: used with an advantage, or dropped and why.
The page shows a prompt over the training, its group side by side, and which groups taught nothing.
"""

import os

import numpy as np

import rollbook

UPDATES = int(os.environ.get("GALLERY_STEPS", "60000")) // 1000
TASKS = [(a, b) for a in range(4) for b in range(4)]
ANSWERS = [str(n) for n in range(8)] + ["I do not know"]
rng = np.random.default_rng(0)
logits_TA = np.zeros((len(TASKS), len(ANSWERS)))

with rollbook.init("sums", "grpo", seed=0, config={"group": 8, "lr": 0.5}, total={"gradient_step": UPDATES}) as run:
    for update in range(UPDATES):
        rewards, ids, wasted = [], [], 0
        for task in rng.choice(len(TASKS), 6, replace=False):
            a, b = TASKS[task]
            probabilities = np.exp(logits_TA[task] - logits_TA[task].max())
            probabilities /= probabilities.sum()
            chosen = rng.choice(len(ANSWERS), 8, p=probabilities)
            right = [float(ANSWERS[c] == str(a + b)) for c in chosen]
            short = [0.1 * (len(ANSWERS[c]) == 1) for c in chosen]
            group = run.rollouts.log_many(
                prompts=[f"What is {a} + {b}?"] * 8,
                completions=[ANSWERS[c] for c in chosen],
                rewards={"right": right, "short": short},
                group=[f"{update}-{task}"] * 8,
                policy_version=update,
                gradient_step=update,
            )
            total = np.array(right) + short
            rewards += list(total)
            if total.std() < 1e-9:
                wasted += 1
                run.rollouts.dropped(group, reason="no difference in the group", gradient_step=update)
                continue
            advantage = (total - total.mean()) / total.std()
            for c, weight in zip(chosen, advantage, strict=True):
                gradient = -probabilities
                gradient[c] += 1
                logits_TA[task] += 0.5 * weight * gradient / 8
            run.rollouts.trained(group, advantage=advantage, trained_version=update + 1, gradient_step=update)
        run.log({"train/reward": float(np.mean(rewards)), "update/groups_wasted": wasted}, gradient_step=update)
