"""A dict that reports changes: for a run's configuration and its summary."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

__all__ = ["Watched"]


class Watched(dict):  # type: ignore[type-arg]
    """A dict that reports changes."""

    def __init__(self, values: Mapping[str, object], changed: Callable[[str], None]) -> None:
        super().__init__(values)
        self._changed = changed

    def __setitem__(self, key: str, value: object) -> None:
        super().__setitem__(key, value)
        self._changed(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._changed(key)

    def update(self, *args: object, **kwargs: object) -> None:
        """As `dict.update`; reports each key."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: str, default: object = None) -> Any:
        """As `dict.setdefault`; reports a new key."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: object) -> Any:
        """As `dict.pop`."""
        value = super().pop(key, *default)
        self._changed(key)
        return value

    def popitem(self) -> tuple[str, Any]:
        """As `dict.popitem`."""
        key, value = super().popitem()
        self._changed(key)
        return key, value

    def clear(self) -> None:
        """As `dict.clear`; reports each key."""
        for key in list(self):
            del self[key]

    def __ior__(self, other: object) -> Self:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)
