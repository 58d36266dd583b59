"""A real agent learns a real environment while rollbook records it: `rollbook demo`."""

import os

# Nets this small gain nothing from threads in linear algebra. On a busy machine these threads wait for each other, and
# updates can become a hundred times slower. Must be set before numpy is loaded; an existing setting is kept.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
