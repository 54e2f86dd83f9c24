"""Ends an owner's chambers when the owner is gone.

PID 1 of a chamber ends itself when its stdin closes, but a hostile candidate can keep that pipe open from inside.
"""

import time
from pathlib import Path

from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import sweep as sweep_owner
from sandbox.errors import Unavailable

PATIENCE_S = 120.0


def sweep(owner: str, folder: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            sweep_owner(Path(folder), owner, Cgroups.of_this_machine())
            break
        except Unavailable:
            if time.monotonic() > until:
                raise
            time.sleep(1.0)
    (Path(folder) / "owners" / owner).unlink(missing_ok=True)
