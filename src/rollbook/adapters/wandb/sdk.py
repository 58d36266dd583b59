"""`wandb.sdk`, as far as programs look into it: `wandb.sdk.wandb_run.Run`, `wandb.sdk.lib.config_util.ConfigError`."""

from __future__ import annotations

from types import SimpleNamespace

from rollbook.adapters.wandb._run import Run, Settings

__all__ = ["lib", "wandb_run", "wandb_settings"]


class ConfigError(Exception):
    """What wandb raises for a configuration that changes; never raised here."""


lib = SimpleNamespace(config_util=SimpleNamespace(ConfigError=ConfigError))
wandb_run = SimpleNamespace(Run=Run)
wandb_settings = SimpleNamespace(Settings=Settings)
