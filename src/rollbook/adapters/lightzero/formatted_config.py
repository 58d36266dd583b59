"""formatted_total_config.py: the compiled configuration as the two parts that LightZero's entry functions take.

from formatted_total_config import main_config, create_config
train_muzero([main_config, create_config], seed=0, max_env_step=int(1e5))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollbook.run.origin.config import literal, pretty

__all__ = ["formatted"]

_HEAD = """# The compiled configuration of this run, in the two parts that LightZero and DI-engine are started with:
#     from formatted_total_config import main_config, create_config
# Written by rollbook.
from easydict import EasyDict
"""


def formatted(compiled: Mapping[str, Any], create: Mapping[str, Any], exp_name: str | None) -> str:
    """Python source that sets `main_config` and `create_config`.

    Args:
      compiled: what `compile_config` returned. The types of its parts stand in `create`, as in the files of DI-engine.
      create: the create_config that the training was started with.
      exp_name: the name of the experiment as it was given; None: the one in `compiled`.
    """
    main = {name: value for name, value in compiled.items() if name != "seed"}
    if exp_name is not None:
        main["exp_name"] = str(exp_name)
    env = {name: value for name, value in main.get("env", {}).items() if name not in ("type", "import_names")}
    policy = {name: value for name, value in main.get("policy", {}).items() if name not in ("type", "import_names")}
    main.update(env=env, policy=policy)
    parts = [_HEAD]
    for name, part in (("main_config", main), ("create_config", create)):
        text = pretty(literal(part)[0], used=len(f"{name} = EasyDict("))
        parts.append(f"\n{name} = EasyDict({text})\n")
    return "".join(parts)
