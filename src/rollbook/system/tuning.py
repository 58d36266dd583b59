"""All sizes from which rollbook works in another way, and how long it waits.

    TUNING.finish_seconds
    with TUNING.changed(finish_seconds=1.0): ...      # a test with a small run, or a benchmark

They hold for the whole process. No result depends on them but for time, memory and the layout of sealed parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class _Tuning:
    """Sizes in rows or bytes, waits in seconds."""

    def __init__(self) -> None:
        # Written: the smallest unit that a reader decodes.
        self.group_rows = 128 * 1024
        self.episode_group_rows = 32 * 1024  # `steps` are read one episode at a time
        self.episode_group_bytes = 4 * 1024 * 1024
        self.console_bytes = 4 * 1024 * 1024  # of what a program prints; of more the beginning and the end are kept
        self.seal_bytes = 4 * 1024 * 1024  # bytes of the journal to seal at once
        self.batch_rows = 4096  # foreign rows of one frame
        self.block_rows = 65_536  # foreign rows of a batch that comes in blocks

        # Read: below them a simpler way is faster.
        self.scan_rows = 50_000  # smaller tables are read by rollbook, ordered by time; larger ones by DuckDB
        self.scan_bytes = 16 << 20
        self.near_rows = 20_000  # smaller tables are read whole to find the rows near a value
        self.near_bytes = 4 << 20
        self.few_lines = 1 << 12
        self.kept_frame_bytes = 16 * 1024 * 1024  # frames whose rows stay in memory between snapshots
        self.kept_live_bytes = 32 * 1024 * 1024  # the same of all open runs, with segments that wait for sealing
        self.curve_bytes = 448 * 1024 * 1024  # DuckDB's memory for curves of rollouts; beyond it, it uses files
        self.rows_ahead = 4096  # of a data set that is read in order
        self.cached_runs = 200  # a folder with this many runs gets a cache
        self.threaded_runs = 16  # this many runs are read by threads
        self.most_threads = 4
        self.listed_names = 1000  # names in one answer of an object store to a listing
        self.fetched_bytes = 4 * 1024**3  # a larger run is left to `rollbook pull`: `init` does not load for hours

        self.stored_values = 1_000_000  # of a key that a training stores and never logs; older ones are in the book

        # Waits at the end of a run.
        self.finish_seconds = 10.0  # finish() waits for the keeper to seal and to drain the sinks
        self.drain_seconds = 10.0  # the end waits for sinks in the training process
        self.drain_here_seconds = 10.0  # `run_to_end` offers rows to a failing sink; a later keeper goes on
        self.close_seconds = 5.0  # the end waits for sinks that close
        self.alert_end_seconds = 10.0  # the end waits for a call about an alert
        self.rules_end_seconds = 5.0  # the end waits for the rules' last look; later findings are forwarded then
        self.rules_seconds = 0.5  # of it for a rule of others that does not come back
        self.recall_end_seconds = 0.5  # the end waits for what the rules remember of a run that went back

        # Waits at the start of a run.
        self.rank_seconds = 5.0  # a rank waits for rank 0 to create their run; after that, rank 0 joins it
        self.distant_rank_seconds = 30.0  # the same if the job has several hosts

        # Waits during a run.
        self.seal_rest_seconds = 10.0  # seal_bytes wait for more: a child's start costs what sealing 16 MiB does
        self.first_cost_seconds = 1.0  # until a run first logs rollbook's own cost
        self.sync_looks = 10  # a round checks so often for a sync of the keeper that is late
        self.look_seconds = 10.0  # a rule that takes longer for one look is not asked again
        self.recall_seconds = 120.0  # the rules wait for what they remember of a run that went back
        self.recall_rows = 2_000_000  # of a longer history nothing is recalled: that would take gigabytes
        self.look_rest = 9  # rules rest this many times as long as they worked: a tenth of a core
        self.seal_delay_seconds = 30.0  # sealing waits for the health rules; then it seals rows they have not seen
        self.fault_seconds = 1.0  # a keeper of many runs pauses after an error
        self.step_seconds = 1.0  # a step that takes longer is left to its thread; another one steps the other runs
        self.linger_seconds = 3.0  # a keeper without runs waits for the next one: seeds of a sweep follow each other
        self.keeper_look_seconds = 2.0  # a run looks after its keeper this often
        self.screen_wait_seconds = 0.2
        self.screen_rest_seconds = 0.1  # after frequent prints, the block is redrawn at most this often

        # Waits for a remote, before a run begins.
        self.remote_seconds = 20.0
        self.remote_patience_seconds = 3.0  # retries while there is no answer
        self.bring_seconds = 900.0  # to download a run that is resumed

    @contextmanager
    def changed(self, **values: float) -> Iterator[None]:
        """Other values in a `with` block.

        Args:
          **values: by name.

        Raises:
          AttributeError: there is no such name.
        """
        before = {name: getattr(self, name) for name in values}
        vars(self).update(values)
        try:
            yield
        finally:
            vars(self).update(before)


TUNING = _Tuning()
"""The values of this process."""
