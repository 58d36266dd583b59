"""An item of a batch: its fingerprint, its text for the table, and the file of a long one."""

from __future__ import annotations

import json
import os

from rollbook.capture.storable import UNSTORABLE, plain
from rollbook.system.bill import counted
from rollbook.system.files import exists, make_folders, replacing
from rollbook.values.content import Contentless, canonical, fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.protocols import Recorder


class Items:
    """Reads the items of batches; see `SampleLog` for the limits."""

    beginning = 1000
    """Characters of a long item that stay in the table."""

    def __init__(self, run: Recorder, inline_bytes: int, apart_bytes: int, verb: str = "log_samples()") -> None:
        self._run, self._verb, self.inline_bytes, self.apart_bytes = run, verb, inline_bytes, apart_bytes

    def read(self, items: list[Any]) -> tuple[list[int | None], list[Any], list[int], dict[str, list[Any]]]:
        """(fingerprints, texts for the table, their sizes, further columns if some item is not a short text)."""
        prints: list[int | None] = []
        texts: list[Any] = []
        sizes: list[int] = []
        odd: dict[int, dict[str, Any]] = {}
        for index, item in enumerate(items):
            if type(item) is str:
                try:
                    data = item.encode()
                    if len(data) <= self.inline_bytes:
                        prints.append(fingerprint(data))
                        texts.append(item)
                        sizes.append(len(data))
                        continue
                except UnicodeEncodeError:
                    pass
            key, text, more = self._odd_item(item)
            prints.append(key)
            texts.append(text)
            sizes.append(4 * len(text or "") + len(more.get("item_raw") or b""))
            if more:
                odd[index] = more
        special: dict[str, list[Any]] = {}
        for index, more in odd.items():
            for name, value in more.items():
                special.setdefault(name, [None] * len(items))[index] = value
        return prints, texts, sizes, special

    def _odd_item(self, item: object) -> tuple[int | None, str | None, dict[str, Any]]:
        more: dict[str, object] = {}
        if isinstance(item, str):
            item = str.__str__(item)
            data = item.encode("utf-8", "surrogatepass")
            key: int | None = fingerprint(data)
            text = item.encode("utf-8", "backslashreplace").decode() if _broken(item) else item
            if text != item:
                more["item_raw"] = data
            kind, suffix = "text", "txt"
        elif isinstance(item, (bytes, bytearray, memoryview)):
            data = bytes(item)
            key = fingerprint(data, b"bytes")
            text = data[: self.inline_bytes].decode("utf-8", "backslashreplace")
            more["item_raw"] = data
            kind, suffix = "bytes", "bin"
        else:
            key, text = self._structure(item)
            data = text.encode("utf-8", "backslashreplace")
            kind, suffix = "json", "json"
        if kind != "text":
            more["item_type"] = kind
        if len(data) > self.inline_bytes:
            more.pop("item_raw", None)
            more["item_size"] = len(data)
            more["item_path"] = self._apart(data, key, suffix)
            text = text[: self.beginning]
        return key, text, more

    def _structure(self, item: object) -> tuple[int | None, str]:
        key: int | None = None
        try:
            key = fingerprint(canonical(item), b"item")
        except (Contentless, RecursionError) as err:
            self._run.count(
                "sample_without_content",
                1,
                f"{self._verb}: {err}; such items always count as new. Log text, numbers or dicts",
            )
        content = plain(item)
        if content is UNSTORABLE:
            fields = getattr(type(item), "__dataclass_fields__", None)
            content = plain({name: getattr(item, name) for name in fields}) if fields is not None else UNSTORABLE
        if content is UNSTORABLE:
            return key, repr(item)[:10_000]
        return key, json.dumps(
            content.tolist() if hasattr(content, "tolist") else content, ensure_ascii=False, default=repr
        )

    def _apart(self, data: bytes, key: int | None, suffix: str) -> str | None:
        if len(data) > self.apart_bytes:
            self._run.count(
                "item_too_large",
                1,
                f"{self._verb}: an item of {len(data):,} bytes is more than the {self.apart_bytes:,} that are kept "
                "of one; its beginning and its size are in the table. Raise apart_bytes=",
            )
            return None
        name = f"{key:016x}" if key is not None else os.urandom(8).hex()
        relative = f"data/items/{name}.{suffix}"
        path = os.path.join(self._run.folder, "data", "items", f"{name}.{suffix}")
        with counted(
            self._run.count,
            "item_not_kept",
            f"{self._verb}: an item of {len(data):,} bytes could not be written",
            kinds=OSError,
        ):
            if not exists(path):
                make_folders(os.path.dirname(path), inside=self._run.folder)
                with replacing(path) as temporary, open(temporary, "wb") as file:
                    file.write(data)
            return relative
        return None


def _broken(text: str) -> bool:
    try:
        text.encode()
        return False
    except UnicodeEncodeError:
        return True
