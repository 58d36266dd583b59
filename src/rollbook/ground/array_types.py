"""Short names for numpy's array types in annotations."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "NDArray"]

NDArray = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
