"""The parts of `wandb.util` that programs use."""

from __future__ import annotations

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
