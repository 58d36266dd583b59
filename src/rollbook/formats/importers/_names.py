"""Texts of other tools as names of runs and projects."""

from __future__ import annotations

import functools
import hashlib

from rollbook.run.arguments import check_name
from rollbook.system.texts import printable

_LONGEST = 110
"""Bytes of a name: folders get the id behind it."""


@functools.lru_cache(maxsize=100_000)
def as_name(text: str) -> str:
    """`text` as the name of a run or project: characters that are not allowed in folder names become "-".

    Of a long text, the beginning and the end are kept, with a mark between them, so that different texts stay
    different.
    """
    clean = "".join("-" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in printable(text)).strip(" .-")
    encoded = clean.encode()
    if len(encoded) > _LONGEST:
        mark = hashlib.blake2b(encoded, digest_size=3).hexdigest()
        half = (_LONGEST - len(mark) - 2) // 2
        first, last = encoded[:half].decode(errors="ignore"), encoded[-half:].decode(errors="ignore")
        clean = f"{first}~{mark}~{last}"
    return check_name("name", clean or "imported")
