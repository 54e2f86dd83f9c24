"""What it takes to unpack a request, by processor time of a process of ours.

A rehearsal is taken off a candidate's time, and while it runs the candidate is there: with burners beside it, it could
make the judge's chamber slow. How long our own process waits for a processor is not counted. But whoever computes on
the same core, or fills the same caches and memory, can still make what is counted longer; by how much is not bounded.
"""

import asyncio
import sys
from contextlib import suppress

from orchestrator.judge.helpers import GUEST
from sandbox.environment import child_environment

PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from blastdoor_kinds import decode_exact
request, taken = sys.stdin.buffer.read(), []
for _ in range(3):
    started = time.process_time()
    decode_exact(memoryview(request), lambda it: it)
    taken.append(time.process_time() - started)
print(min(taken))
"""
# A request that takes longer has nothing taken off for it.
MOST_S = 20.0


async def unpacking_s(values: memoryview) -> float:
    """The least of three times; 0 for what cannot be unpacked, or not in time."""
    command = (sys.executable, "-S", "-P", "-B", "-c", PROGRAM, str(GUEST))
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, env=child_environment(), stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True
    )
    try:
        async with asyncio.timeout(MOST_S):
            said, _ = await process.communicate(values)
    except TimeoutError:
        return 0.0
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return float(said) if process.returncode == 0 else 0.0
