"""A warm process with nothing open, from which children are forked: Python starts once, not a thousand times.

python nursery.py TARGET    where TARGET is MODULE:FUNCTION; each line on stdin is the JSON of its arguments, and the
answer to it, on stdout, is how the child ended: 0, or the negative number of a signal.
"""

import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPOSITORY = Path(__file__).resolve().parents[2]


class Nursery:
    """One child at a time."""

    def __init__(self, target: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        )

    def child(self, **arguments: Any) -> int:
        """How it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def main() -> None:
    module, _, function = sys.argv[1].partition(":")
    target = getattr(importlib.import_module(module), function)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_lived(target, json.loads(line)))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _lived(target: Any, arguments: dict[str, Any]) -> int:
    try:
        target(**arguments)
    except BaseException:  # noqa: BLE001  the test sees the code, a person the trace
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
