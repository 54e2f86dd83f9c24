"""`python -m sandbox.box FOLDER`: one errand on this machine."""

import asyncio
import sys
from pathlib import Path

from sandbox.box.work import run_errand


def main() -> None:
    raise SystemExit(asyncio.run(run_errand(Path(sys.argv[1]).absolute())))


if __name__ == "__main__":
    main()
