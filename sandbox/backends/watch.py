"""A warden's process: `python watch.py MODULE WORDS...` waits beside an owner, then calls MODULE's `sweep(WORDS...)`.

Its stdin is a pipe that the owner holds: end of file is the sign that the owner is gone. Until then nothing but the
standard library is loaded, so it is there at once and stays small; most owners end everything themselves.
"""

import importlib
import sys
from pathlib import Path

# An owner's last word when it has seen everything end: then nothing is left to sweep.
DONE = b"done\n"


def main() -> None:
    module, *words = sys.argv[1:]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    last = b""
    while piece := sys.stdin.buffer.read(1):
        last = (last + piece)[-len(DONE) :]
    if last == DONE:
        return
    # Last of all, for an owner whose package is not installed but lies in its working folder.
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    importlib.import_module(module).sweep(*words)


if __name__ == "__main__":
    main()
