"""The parts of `wandb.util` that programs use."""

from __future__ import annotations

import os

from rollbook.adapters.wandb._current import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VALUE_BYTES_LIMIT = 100_000
"""Programs set this so that wandb accepts longer texts; without effect here."""


def generate_id(length: int = 8) -> str:
    """A random id of lower-case letters and digits, valid for `init(id=…)`."""
    import random
    import string

    letters = string.ascii_lowercase + string.digits
    source = random.SystemRandom()  # does not touch the program's seeded generator
    return "".join(source.choice(letters) for _ in range(length))


def make_artifact_name_safe(name: str) -> str:
    """`name` with "_" instead of characters that artifact names may not have."""
    import re

    return re.sub(r"[^a-zA-Z0-9_\-.]", "_", name)[:128]


def load_yaml(file: Any) -> Any:
    """The content of an open YAML file as plain data; tags of Python are refused."""
    from rollbook.system.optional import need

    return need("yaml", extra="full", why="a file of settings").safe_load(file)


def settings_in(path: str) -> dict[str, Any]:
    """The settings of a YAML file, as `wandb.init(config="file.yaml")` reads them.

    wandb takes `name: {value: …, desc: …}` alone. Here `name: value` is a setting, too.

    Raises:
      ConfigError: there is no such file, or it is no mapping in YAML.
    """
    from rollbook.errors import MissingExtra

    if not os.path.exists(path):
        raise ConfigError(f"config file {path} doesn't exist")
    try:
        with open(path, encoding="utf-8") as file:
            held = load_yaml(file)
    except MissingExtra:
        raise
    except Exception as err:
        raise ConfigError(f"config file {path} could not be read: {err}") from None
    if not isinstance(held, dict):
        raise ConfigError(f"config file {path} has no settings: it needs lines such as `lr: {{value: 0.001}}`")
    if held.pop("wandb_version", 1) != 1:
        raise ConfigError(f"config file {path} has an unknown wandb_version")
    return {
        str(name): entry["value"] if isinstance(entry, dict) and "value" in entry and not set(entry) - _ENTRY else entry
        for name, entry in held.items()
    }


_ENTRY = {"value", "desc"}
