"""`python -m rollbook.keeper RUN`, and the file that `launch` starts in an interpreter without `site`."""

from __future__ import annotations

import os
import sys

if __package__ in (None, ""):  # started as a file: the package is two folders up
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from rollbook.keeper.process import main

if __name__ == "__main__":
    main()
