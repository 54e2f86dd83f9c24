"""Runs a command with a Docker engine, as `blastdoor up` does; a private one lies in this checkout.

usage: with-engine COMMAND...    exit code: the command's; 3 without an engine
       with-engine --clean       removes the private engine and its data

It runs before anything is installed, with the machine's own Python.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from orchestrator.machine.engine import run_with_engine  # noqa: E402  the path above comes first
from orchestrator.machine.private_engine import PrivateEngine  # noqa: E402  the path above comes first
from orchestrator.machine.programs import Unprepared  # noqa: E402  the path above comes first

NO_ENGINE = 3


def main(arguments: list[str]) -> int:
    private = PrivateEngine(REPOSITORY / ".engine")
    try:
        if arguments == ["--clean"]:
            private.clean()
            return 0
        if not arguments or arguments[0].startswith("-"):
            print(__doc__, file=sys.stderr)
            return 2
        return run_with_engine(private, arguments)
    except Unprepared as problem:
        print(f"with-engine: {problem}", file=sys.stderr)
        return NO_ENGINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
