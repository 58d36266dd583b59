"""A real agent that learns a real environment while rollbook records it: `rollbook demo`."""

import os

# Nets this small gain nothing from several threads of linear algebra, and on a busy machine these wait for each other:
# updates a hundred times slower were seen. Has to be said before numpy is loaded; who has said otherwise is heard.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
