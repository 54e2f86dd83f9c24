"""Figures, as ratios within one run: machines are noisy, ratios less so."""

import os
import sys
from pathlib import Path

# Before anything loads numpy: seeds run beside each other in processes, and each would start a thread for every core.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Servers, a cluster and a browser are started as the tests start them.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
