"""Short names for numpy's array types in annotations."""

from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
