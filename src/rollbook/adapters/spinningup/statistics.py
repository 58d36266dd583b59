"""Mean, standard deviation, minimum and maximum over the samples of all ranks, in float64."""

from __future__ import annotations

import math
import os
import sys
from importlib import import_module

from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["as_samples", "mpi_statistics_scalar", "num_procs", "proc_id", "sample_statistics"]


def _mpi() -> Any:
    """MPI's world, if the program uses MPI; importing mpi4py only to check would start it."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None and any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")):
        try:
            mpi = import_module("mpi4py.MPI")
        except ImportError:
            return None
    return None if mpi is None else mpi.COMM_WORLD


def _torch_distributed() -> ModuleType | None:
    """torch.distributed, if a process group is active."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        up: ModuleType = distributed
        return up
    return None


def proc_id() -> int:
    """The rank of this process: from torch.distributed, else from MPI, else from the launcher, else 0."""
    distributed = _torch_distributed()
    if distributed is not None:
        return int(distributed.get_rank())
    world = _mpi()
    if world is not None:
        return int(world.Get_rank())
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else 0


def num_procs() -> int:
    """The number of processes in a reduction."""
    distributed = _torch_distributed()
    if distributed is not None:
        return int(distributed.get_world_size())
    world = _mpi()
    return 1 if world is None else int(world.Get_size())


def _reduce(values: list[float], operation: str) -> list[float]:
    """`values` summed ("sum") or maximised ("max") over ranks, element by element. Every rank must call it."""
    if num_procs() == 1:
        return values
    distributed = _torch_distributed()
    if distributed is not None:
        torch = sys.modules["torch"]
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        distributed.all_reduce(tensor, op=distributed.ReduceOp.SUM if operation == "sum" else distributed.ReduceOp.MAX)
        return [float(value) for value in tensor.tolist()]
    import numpy as np

    mpi = sys.modules["mpi4py.MPI"]
    mine = np.asarray(values, dtype=np.float64)
    total = np.zeros_like(mine)
    mpi.COMM_WORLD.Allreduce(mine, total, op=mpi.SUM if operation == "sum" else mpi.MAX)
    return [float(value) for value in total]


def as_samples(stored: Any) -> NDArray[np.float64]:
    """One flat float64 array of all stored values: numbers, arrays and tensors of any shape, also mixed."""
    import numpy as np

    if not isinstance(stored, (list, tuple)):
        stored = [stored]
    kinds = set(map(type, stored))
    if kinds <= {float, int, np.float64, np.float32}:
        return np.array(stored, dtype=np.float64)
    if kinds == {np.ndarray}:
        return np.concatenate([item.reshape(-1) for item in stored]).astype(np.float64, copy=False)
    parts = []
    for item in stored:
        if isinstance(item, (list, tuple)):
            parts.append(as_samples(item))
        else:
            parts.append(host_array(item).astype(np.float64, copy=False).reshape(-1))
    return np.concatenate(parts) if parts else np.zeros(0)


def sample_statistics(stored: object) -> tuple[float, float, float, float] | None:
    """(mean, population standard deviation, minimum, maximum) over all ranks; None if no rank has a sample.

    Collective: every rank calls it for the same keys in the same order, also a rank without values.
    NaN in a sample makes the mean and the standard deviation NaN.

    Args:
      stored: this rank's values: numbers, arrays and tensors of any shape.
    """
    samples = as_samples(stored)
    n, total = float(samples.size), float(samples.sum())
    low = float(samples.min()) if n else math.inf
    high = float(samples.max()) if n else -math.inf
    total, n = _reduce([total, n], "sum")
    high, low_mirrored = _reduce([high, -low], "max")
    mean = total / n if n else math.nan
    (squares,) = _reduce([float(((samples - mean) ** 2).sum())], "sum")
    if not n:
        return None
    return mean, math.sqrt(squares / n), -low_mirrored, high


def mpi_statistics_scalar(x: Sequence[float], with_min_and_max: bool = False) -> tuple[float, ...]:
    """(mean, std) or (mean, std, min, max) of scalars over all ranks; NaN if there are none.

    Spinning Up's algorithms import this name (PPO and VPG normalise advantages with it).

    Args:
      x: this rank's scalars.
      with_min_and_max: also return the extremes.
    """
    statistics = sample_statistics(x) or (math.nan, math.nan, math.inf, -math.inf)
    return statistics if with_min_and_max else statistics[:2]


def old_statistics(stored: Any) -> tuple[object, object, object, object]:
    """Spinning Up's own computation: float32 sums, divided by the length of the first axis. For `compat=True`.

    Raises:
      IndexError: nothing is stored.
      ValueError: arrays and scalars are mixed.
    """
    import numpy as np

    first = stored[0]
    values = np.concatenate(stored) if isinstance(first, np.ndarray) and first.ndim else stored
    array = np.array(values, dtype=np.float32)
    total, n = _reduce([float(array.sum()), float(len(array))], "sum")
    mean = np.float32(np.float32(total) / np.float32(n))
    (squares,) = _reduce([float(((array - mean) ** 2).sum())], "sum")
    std = np.sqrt(np.float32(squares) / np.float32(n))
    high, low_mirrored = _reduce([float(array.max()), -float(array.min())], "max")
    return mean, std, np.float32(-low_mirrored), np.float32(high)


def broadcast_text(text: str) -> str:
    """Rank 0's `text`, on every rank. Collective."""
    distributed = _torch_distributed()
    if distributed is not None:
        box = [text]
        device = None
        if distributed.get_backend() == "nccl":
            device = sys.modules["torch"].device("cuda")
        distributed.broadcast_object_list(box, src=0, device=device)
        return box[0]
    world = _mpi()
    return text if world is None else str(world.bcast(text, root=0))
