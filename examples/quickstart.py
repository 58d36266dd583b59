"""The quick start of the README: log, time, save checkpoints, read back. Run: python examples/quickstart.py"""

import random

import rollbook

with rollbook.init("quickstart", "walk", seed=3, config={"lr": 3e-4}, total={"env_step": 2000}) as run:
    train, update = run.scope("train"), run.scope("update")
    for env_step in range(0, 2000, 20):
        with run.timer("collect"):
            reward = env_step / 100 + random.random()
        train.log({"return": reward}, env_step=env_step)
        update.log({"loss/policy": 1 / (1 + env_step), "entropy": 0.7}, gradient_step=env_step // 20)
        if env_step % 500 == 0:
            run.save_checkpoint({"weights": [0.1, 0.2], "env_step": env_step}, score=reward)
    run.summary["best"] = reward

book = rollbook.open("runs").one("quickstart/walk", newest=True)
print(book.status, book.keys())
print(book.metrics(["train/return"], x="env_step").num_rows, "rows")
print(book.sql("select name, count(*) as n, sum(seconds) as s from timings group by name"))
