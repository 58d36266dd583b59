"""What the parts of a writer know about their writer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol

    from rollbook.journal.channel import Channel, Shape
    from rollbook.journal.lane import Lane, Receipt
    from rollbook.journal.stream import Stream
    from rollbook.system.bill import Bill

    class OpenWriter(Protocol):
        """An open writer; see `Writer`."""

        bill: Bill
        clocks: tuple[str, ...]
        free: list[Lane]
        slow_path_rows: int
        native_keys: bool
        slow_path_ns: int
        device_values: Any

        def take(self) -> Lane | None: ...
        def append(self, lane: Lane, data: bytes, time_ns: int, receipt: Receipt | None = ...) -> tuple[Lane, int]: ...
        def frame(
            self, payload: Mapping[str, object], time_ns: int | None = ..., receipt: Receipt | None = ...
        ) -> int: ...
        def frame_once(self, receipt: Receipt, payload: Mapping[str, object], time_ns: int | None = ...) -> bool: ...
        def earns_stream(self, shape: Shape) -> bool: ...
        def new_stream(self, lane: Lane, channel: Channel, shape: Shape) -> Stream: ...
        def may_keep_mapped(self) -> bool: ...
        def no_descriptor(self, err: OSError) -> None: ...
        def changed_to_fit(self, problems: Iterable[str]) -> None: ...
        def failed(self, where: str, err: BaseException) -> None: ...
