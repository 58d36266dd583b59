"""Short trainings that log to wandb as their library does it, for `test_wandb_programs.py`.

python wandb_programs.py NAME
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
sys.path.append(str(HERE.parent / "support"))


def module(path: Path) -> Any:
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def skrl() -> None:
    """Its agents open the run themselves, and hand their SummaryWriter's numbers over by sync_tensorboard."""
    program = module(EXAMPLES / "skrl_dqn.py")

    def with_wandb(agent: Any, **_: Any) -> None:
        agent.cfg.experiment.wandb, agent.cfg.experiment.wandb_kwargs = True, {"project": "carts"}

    program.attach = with_wandb
    program.trainer(400, 3).train()


def rl_games() -> None:
    """The lines of its runner.py with --track."""
    import wandb
    from rl_games.common.algo_observer import DefaultAlgoObserver

    config = {"params": {"seed": 3}}
    wandb.init(project="rl_games", sync_tensorboard=True, config=config, monitor_gym=True, save_code=True)
    program = module(EXAMPLES / "rl_games_ppo.py")
    program.Carts.reset = lambda self: self.env.reset(seed=3)[0].astype("float32")  # the example leaves it to chance
    program.train(4, 3, DefaultAlgoObserver())
    wandb.finish()


def pufferlib() -> None:
    """Its WandbLogger. It logs by the clock, which is one here that a second goes by at each look."""
    import gymnasium
    import pufferlib.emulation
    import pufferlib.models
    import pufferlib.vector
    import torch
    from pufferlib import pufferl
    from pufferlib.pufferlib import EpisodeStats

    import carts_of_pufferlib as real

    if not getattr(pufferl, "_C_AVAILABLE", True):
        pufferl.compute_puff_advantage = real.advantages_of
    seconds = itertools.count(1_700_000_000)
    pufferl.time = type("Clock", (), {"time": staticmethod(lambda: next(seconds))})

    def cart(buf: Any = None, seed: int = 0) -> Any:
        env = EpisodeStats(gymnasium.make("CartPole-v1"))
        env.reset(seed=seed)
        return pufferlib.emulation.GymnasiumPufferEnv(env=env, buf=buf)

    torch.manual_seed(3)
    vecenv = pufferlib.vector.make(cart, num_envs=4, backend=pufferlib.vector.Serial, seed=3)
    policy = pufferlib.models.Default(vecenv.driver_env, hidden_size=16)
    args: dict[str, Any] = {
        "env_name": "cartpole",
        "neptune": False,
        "wandb": True,
        "wandb_project": "carts",
        "wandb_group": "debug",
        "tag": "short",
        "train": {**real.TRAIN, "data_dir": "experiments"},
    }
    pufferl.train("cartpole", args, vecenv, policy)


def trl() -> None:
    """GRPO with report_to="wandb": the callback of transformers, and TRL's table of completions."""
    import torch
    from transformers import set_seed
    from trl import GRPOConfig, GRPOTrainer

    from datasets import Dataset

    program = module(EXAMPLES / "trl_grpo.py")
    set_seed(3)
    config = GRPOConfig(
        output_dir="trl_out", max_steps=4, per_device_train_batch_size=8, num_generations=4, max_completion_length=8,
        logging_steps=1, save_strategy="no", report_to="wandb", run_name="grpo", use_cpu=not torch.cuda.is_available(),
        log_completions=True, seed=3,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=program.make_model(),
        args=config,
        processing_class=program.make_tokenizer(),
        train_dataset=Dataset.from_dict({"prompt": [f"{a} and {b}" for a in "abcd" for b in "abcd"]}),
        reward_funcs=[program.says_cat, program.is_short],
    )
    trainer.train()


def lightning() -> None:
    """Lightning's WandbLogger, which sheeprl names in its configuration, too."""
    import lightning as pl
    import torch
    from lightning.pytorch.loggers import WandbLogger
    from torch.utils.data import DataLoader, TensorDataset

    program = module(EXAMPLES / "lightning_fit.py")
    pl.seed_everything(3)
    x = torch.randn(64, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=WandbLogger(project="line", name="sgd", log_model=True),
        max_epochs=3,
        log_every_n_steps=1,
        enable_progress_bar=False,
    )
    trainer.fit(program.Line(), DataLoader(data, batch_size=16, shuffle=True), DataLoader(data, batch_size=64))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
