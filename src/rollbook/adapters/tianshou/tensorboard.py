"""TensorboardLogger: Tianshou's class of this name, which also writes the book.

from rollbook.adapters.tianshou import TensorboardLogger      # was: from tianshou.utils import TensorboardLogger

logger = TensorboardLogger(SummaryWriter("logs"))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollbook.adapters.tianshou.book import RollbookLogger


class TensorboardLogger(RollbookLogger):
    """A `RollbookLogger` with Tianshou's arguments in Tianshou's order: the writer first, then the intervals.

    Args:
      writer: a SummaryWriter.
      training_interval, train_interval, test_interval, update_interval, info_interval, write_flush: as in Tianshou.
      save_interval: as in Tianshou: without it nothing is saved.
      run: a run. None uses the current run, or opens one.
      options: further arguments of `RollbookLogger`.
    """

    def __init__(
        self,
        writer: object,
        training_interval: int = 1000,
        test_interval: int = 1,
        update_interval: int = 1000,
        info_interval: int = 1,
        save_interval: int | None = None,
        write_flush: bool = True,
        *,
        train_interval: int | None = None,
        run: object = None,
        **options: Any,
    ) -> None:
        super().__init__(
            run,
            training_interval if train_interval is None else train_interval,
            test_interval,
            update_interval,
            info_interval,
            options.pop("exclude_arrays", True),
            save_interval,
            writer=writer,
            write_flush=write_flush,
            **options,
        )

    def prepare_dict_for_logging(
        self,
        input_dict: Mapping[str, object],
        parent_key: str = "",
        delimiter: str = "/",
        exclude_arrays: bool | None = None,
    ) -> dict[str, object]:
        """Flatten `input_dict`: numbers, and arrays unless excluded."""
        return super().prepare_dict_for_logging(input_dict, parent_key, delimiter, exclude_arrays)
