"""BatchState: shared by the callbacks of one batch; `state.rewards` and `state["rewards"]` are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollbook.adapters.mrl.tensors import to_device, torch_or_none


class SettrDict(dict[str, Any]):
    """A dict whose items are also attributes; each can be set or removed as either.

    A name that is a method of dict (`keys`, `items`) is an item only. A missing name is a KeyError as an item and an
    AttributeError as an attribute.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the batch has no {name!r}; it has {', '.join(map(str, self))}") from None

    def __setattr__(self, name: str, item: object) -> None:
        self[name] = item

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"the batch has no {name!r} to delete") from None

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *map(str, self)]

    def update_from_dict(self, update_dict: Mapping[str, object]) -> None:
        """Set several items.

        Args:
          update_dict: name -> value.
        """
        self.update(update_dict)


class BatchState(SettrDict):
    """One batch: samples and their sources, rewards, loss; callbacks may add more.

    `rewards` and `loss` begin as 0-d float32 tensors (of numpy if torch is not installed); `loss` can be added to and
    differentiated.
    """

    def __init__(self) -> None:
        super().__init__()
        torch = torch_or_none()
        self.update(samples=[], sources=[])
        if torch is not None:
            self.rewards = to_device(torch.tensor(0.0))
            self.loss = to_device(torch.tensor(0.0, requires_grad=True).clone())
        else:
            import numpy as np

            self.rewards, self.loss = np.zeros((), np.float32), np.zeros((), np.float32)
        self.update(latent_data={})
