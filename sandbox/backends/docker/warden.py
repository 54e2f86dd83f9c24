"""Ends an owner's chambers when the owner is gone. Its stdin is a pipe that the owner holds: end of file is the sign.

PID 1 of a chamber ends itself when its stdin closes, but a hostile candidate can keep that pipe open from inside.
"""

import asyncio
import sys

from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.errors import Unavailable

PATIENCE_S = 120


@retry(
    retry=retry_if_exception_type(Unavailable),
    stop=stop_after_delay(PATIENCE_S),
    wait=wait_fixed(1),
    reraise=True,
)
async def end_all(owner: str, host: str) -> None:
    """Remove every chamber and lease of an owner."""
    engine = Engine(host)
    try:
        for container in await engine.containers(f"{OWNER_LABEL}={owner}"):
            await engine.remove(container["Id"])
        for volume in await engine.volumes(f"{OWNER_LABEL}={owner}"):
            await engine.remove_volume(volume["Name"])
    finally:
        engine.close()


def main() -> None:
    owner, host = sys.argv[1:3]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while sys.stdin.buffer.read(1):
        pass
    asyncio.run(end_all(owner, host))


if __name__ == "__main__":
    main()
