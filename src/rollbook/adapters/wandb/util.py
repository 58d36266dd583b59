"""`wandb.util`, as far as programs use it."""

from __future__ import annotations

__all__ = ["VALUE_BYTES_LIMIT", "generate_id", "make_artifact_name_safe"]

VALUE_BYTES_LIMIT = 100_000
"""What programs raise so that wandb takes longer texts; without effect here."""


def generate_id(length: int = 8) -> str:
    """A random id of small letters and digits, good as `init(id=…)`."""
    import random
    import string

    letters = string.ascii_lowercase + string.digits
    source = random.SystemRandom()  # a program's own seed is neither used nor moved on
    return "".join(source.choice(letters) for _ in range(length))


def make_artifact_name_safe(name: str) -> str:
    """`name` with characters that no artifact may have as "_"."""
    import re

    return re.sub(r"[^a-zA-Z0-9_\-.]", "_", name)[:128]
