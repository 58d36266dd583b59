"""A keeper of the tests: the real one, but its sealing children are forked as all are here; see sealing_forks.

$SEAL_BYTES: how much it seals at once, where a test need not write megabytes for that.
"""

import os
import sys

support = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:1] = [support, os.path.join(os.path.dirname(os.path.dirname(support)), "src")]

from rollbook.keeper import child  # noqa: E402
from rollbook.keeper.process import main  # noqa: E402
from rollbook.system.tuning import TUNING  # noqa: E402
from sealing_forks import forking  # noqa: E402

child.start_child = forking(child.start_child)
if "SEAL_BYTES" in os.environ:
    TUNING.seal_bytes, TUNING.seal_rest_seconds = int(os.environ["SEAL_BYTES"]), 0.0
main()
