"""The function that a training loop calls: `log` of one channel.

It is a single closure. It takes a lane from a free list, finds the stream by the keys of the call, and packs clocks,
time, values and the commit word directly into a mapped file. Unusual cases (a new key set, another type, a tensor, a
full segment, no lane) go to `unusual_calls.UnusualCalls`.
"""

from __future__ import annotations

from rollbook.schema.clocks import UNKNOWN, now
from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.journal.channel import Channel
    from rollbook.journal.lane import Lane
    from rollbook.journal.unusual_calls import UnusualCalls

_NOTHING: Any = None


def make_log(free: list[Lane], channel: Channel, unusual: UnusualCalls) -> Callable[..., None]:
    """The function log(values, *, env_step=…, …) -> None of `channel`.

    It costs about 1 µs for one key and 1.7 µs for twenty, adds no wait and does not raise (see `Bill.strict`), except
    TypeError for a call that does not fit its signature. An exception from outside (Ctrl-C, a time limit) passes
    through; the row is then either complete in the files or absent.
    """
    pop, push, number = free.pop, free.append, channel.id
    current = channel.current
    clock, unknown = now, UNKNOWN

    def log(
        values: Mapping[str, object] = _NOTHING,
        *more: object,
        env_step: int = unknown,
        gradient_step: int = unknown,
        epoch: int = unknown,
        episode: int = unknown,
        policy_version: int = unknown,
        step: int = unknown,
        **declared: int,
    ) -> None:
        """Append one row: values by key (nested dicts are joined with "/"), and the clocks of the row.

        Clocks that are not given keep the run's current reading. The row is safe when this returns, after about 2 µs.
        Nothing raises unless the run is strict.
        """
        lane, seq = None, 0
        try:
            lane = pop()  # this thread's alone until it is pushed back
            stream = lane.scopes[number][tuple(values)]
            cells = values.values()
            if [*map(type, cells)] != stream.types or more:
                raise LookupError  # another type than before, or a wrong call: the slow path handles it
            # A copy of the clocks: another thread may set them. Each is spelled out, since a loop costs more than all.
            row = [*current]
            if env_step is not unknown:
                if type(env_step) is not int:
                    raise LookupError
                row[0] = current[0] = env_step
            if gradient_step is not unknown:
                if type(gradient_step) is not int:
                    raise LookupError
                row[1] = current[1] = gradient_step
            if epoch is not unknown:
                if type(epoch) is not int:
                    raise LookupError
                row[2] = current[2] = epoch
            if episode is not unknown:
                if type(episode) is not int:
                    raise LookupError
                row[3] = current[3] = episode
            if policy_version is not unknown:
                if type(policy_version) is not int:
                    raise LookupError
                row[4] = current[4] = policy_version
            if step is not unknown:
                if type(step) is not int:
                    raise LookupError
                row[5] = current[5] = step
            if declared and not unusual.set_declared(declared, row):
                raise LookupError
            # Take the next row of the segment; a full one is replaced on the slow path.
            offset = stream.offset
            if offset > stream.last:
                raise LookupError
            stream.offset = offset + stream.width
            seq = lane.seq = lane.seq + 1
            # The number of the row comes last: it is the word that commits it.
            stream.pack(stream.buffer, offset, *row, clock(), *cells, seq)
            return
        except ours(Exception):
            if seq and stream.committed(offset, seq):  # interrupted after the row was complete
                return
        finally:
            if lane is not None:
                push(lane)
        unusual(values, (env_step, gradient_step, epoch, episode, policy_version, step), declared, more)

    return log
