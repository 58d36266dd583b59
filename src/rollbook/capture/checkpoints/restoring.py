"""Going back to a checkpoint: which one, its position in the run, and its content."""

from __future__ import annotations

from pathlib import Path

from rollbook.capture.checkpoints import random_states
from rollbook.errors import Damaged
from rollbook.system.files import exists
from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Restored:
    """A checkpoint that was restored. Made by `run.restore`.

    Attributes:
      id: the id of the checkpoint.
      path: its file or folder.
      clocks: the clocks at the time of the save; they are the run's current clocks again.
      score: as given at the save, None without one.
      state: the saved state, loaded at first access. For a file that rollbook did not write (write=, path=) this raises
        BadInput: load `path` with the tool that wrote it.
    """

    def __init__(self, row: Mapping[str, Any], path: Path, clocks: dict[str, int], weights_only: bool = True) -> None:
        self.id = str(row["checkpoint_id"])
        self.path = path
        self.clocks = clocks
        self.score: float | None = row.get("score")
        self.state: Any = None
        self._kind = str(row.get("format") or "")
        self._weights_only = weights_only
        self._random = row.get("state")

    def load(self) -> None:
        """Read the file into `state` if rollbook or torch wrote it; check what can be checked if another program did.

        Raises:
          Damaged: it is not whole. OSError: it cannot be read. Any exception of `torch.load`.
        """
        from rollbook.capture.checkpoints.container import is_container
        from rollbook.capture.checkpoints.saving import load
        from rollbook.schema.checkpoint_files import damage_of

        reads_on = self._kind == "ckpt" and (is_container(self.path) or not exists(self.path))  # and checks as it reads
        if not reads_on and (damage := damage_of(self.path, self._kind)):
            raise Damaged(f"{self.path} is damaged: {damage}")
        if self._kind in ("ckpt", "torch"):
            self.state = load(self.path, weights_only=self._weights_only)

    def set_random_states(self, generators: Mapping[str, object] | None = None) -> list[str]:
        """Restore the random number generators; returns what could not be restored, one sentence each.

        Args:
          generators: the objects whose states were stored under these names.
        """
        try:
            return random_states.restore(random_states.loads(self._random), generators)
        except ours(ValueError) as err:
            return [f"the random states of checkpoint {self.id} cannot be read: {err}"]

    def __repr__(self) -> str:
        return f"<Restored {self.id!r} at {self.clocks}>"
