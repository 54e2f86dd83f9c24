"""The event loop of a command, which Ctrl-C ends though a thread still waits for an engine that does not answer.

A thread cannot be told to end. asyncio's own `run` waits for all threads before it lets an error through, and Python
does so again when it exits; `cli.main` therefore leaves without that wait when somebody interrupted.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class _Threads(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  asyncio gives it
        """Waits for none: what a command needs of a thread, it has waited for itself."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`. Ctrl-C cancels the work, lets it close what it opened, and raises KeyboardInterrupt."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(_Threads())
        return runner.run(work)
