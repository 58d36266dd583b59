"""What wandb's own offline file holds, by wandb's own messages."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any


def history(path: Path, joint: str = "/") -> list[dict[str, Any]]:
    """The rows in an offline run's file: blocks of 32 KiB, records of (checksum, length, kind), messages in them."""
    from wandb.proto import wandb_internal_pb2

    data = path.read_bytes()
    at, message, found = 7, b"", []
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        message += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record.FromString(message)
            message = b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                found.append({joint.join(i.nested_key) or i.key: json.loads(i.value_json) for i in items})
    return found
