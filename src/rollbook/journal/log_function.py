"""The function that a training loop calls: `log` of one channel.

It is a single closure. It takes a lane from a free list, finds the stream by the keys of the call, and packs clocks,
time, values and the commit word directly into a mapped file. Unusual cases (a new key set, another type, a tensor, a
full segment, no lane) go to `unusual_calls.UnusualCalls`.
"""

from __future__ import annotations

from rollbook.schema.clocks import STANDARD, UNKNOWN, now
from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.journal.channel import Channel
    from rollbook.journal.lane import Lane
    from rollbook.journal.unusual_calls import UnusualCalls

_NOTHING: Any = None


def make_log(free: list[Lane], clocks: tuple[str, ...], channel: Channel, unusual: UnusualCalls) -> Callable[..., None]:
    """The function log(values, *, env_step=…, …) -> None of `channel`.

    It costs about 1 µs for one key and 1.7 µs for twenty, adds no wait and does not raise (see `Bill.strict`), except
    TypeError for a call that does not fit its signature. An exception from outside (Ctrl-C, a time limit) passes
    through; the row is then either complete in the files or absent.
    """
    pop, push, number = free.pop, free.append, channel.id
    current = channel.current
    further = clocks[len(STANDARD) :]
    first_further = len(STANDARD)
    nothing: list[int] = []
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
            if tuple(map(type, cells)) != stream.types or more:
                raise LookupError  # another type than before, or a wrong call: the slow path handles it
            # The clocks, each spelled out: a loop would cost more than all of them. An int stays the current reading.
            if env_step is unknown:
                clock_0 = current[0]
            elif type(env_step) is int:
                clock_0 = current[0] = env_step
            else:
                raise LookupError
            if gradient_step is unknown:
                clock_1 = current[1]
            elif type(gradient_step) is int:
                clock_1 = current[1] = gradient_step
            else:
                raise LookupError
            if epoch is unknown:
                clock_2 = current[2]
            elif type(epoch) is int:
                clock_2 = current[2] = epoch
            else:
                raise LookupError
            if episode is unknown:
                clock_3 = current[3]
            elif type(episode) is int:
                clock_3 = current[3] = episode
            else:
                raise LookupError
            if policy_version is unknown:
                clock_4 = current[4]
            elif type(policy_version) is int:
                clock_4 = current[4] = policy_version
            else:
                raise LookupError
            if step is unknown:
                clock_5 = current[5]
            elif type(step) is int:
                clock_5 = current[5] = step
            else:
                raise LookupError
            if further:
                row = unusual.set_declared(declared) if declared else current
                if row is None:
                    raise LookupError
                rest = row[first_further:]
            elif declared:
                raise LookupError
            else:
                rest = nothing
            # Take the next row of the segment; a full one is replaced on the slow path.
            offset = stream.offset
            if offset > stream.last:
                raise LookupError
            stream.offset = offset + stream.width
            seq = lane.seq = lane.seq + 1
            # The number of the row comes last: it is the word that commits it.
            stream.pack(
                stream.buffer, offset, clock_0, clock_1, clock_2, clock_3, clock_4, clock_5, *rest, clock(), *cells, seq
            )
            return
        except ours(Exception):
            if seq and stream.committed(offset, seq):  # interrupted after the row was complete
                return
        finally:
            if lane is not None:
                push(lane)
        unusual(values, (env_step, gradient_step, epoch, episode, policy_version, step), declared, more)

    return log
