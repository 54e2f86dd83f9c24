"""Runs pip, and lets it start no program: whatever would build a package ends here, before its code runs.

`--only-binary` is not enough: a wheel's metadata may name a dependency by address, and pip would fetch and build it.
"""

import os
import runpy
import sys

STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty")


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in STARTS:
        program = os.path.basename(str(arguments[0])) if arguments else ""  # noqa: PTH119 the guard imports little
        # The one program that pip's own configuration may need: it looks up a password for an index.
        if program != "keyring":
            raise PermissionError("only wheels are fetched; building a package would run its code on this machine")


if __name__ == "__main__":
    sys.addaudithook(refuse)
    sys.argv[0] = "pip"
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
