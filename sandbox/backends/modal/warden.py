"""Ends an owner's sandboxes when the owner is gone. Its stdin is a pipe that the owner holds: end of file is the sign.

Modal keeps a command's stdin open when its client is gone, so nothing inside notices. An owner that was killed may
have had a create under way, which Modal finishes all the same: so the sweep is repeated until none can come any more.
"""

import asyncio
import sys
import time

from sandbox.backends.modal.marks import end_owned
from sandbox.errors import Refused, SandboxError

# Said by an owner to whom Modal has confirmed the end of everything: then nothing is left to do.
DONE = b"done\n"
IN_FLIGHT_S = 60.0
PATIENCE_S = 300.0
PAUSE_S = 2.0


async def end_all(owner: str, app: str, environment: str | None, watch_s: float = 0.0) -> None:
    """Sweep once, and again for so long as a create may be under way; a provider that is away is waited for."""
    # The package is loaded only now: a warden that is never needed stays small.
    from sandbox.backends.modal.engine import ModalEngine

    begun = time.monotonic()
    swept = False
    while not swept or time.monotonic() - begun < watch_s:
        try:
            engine = await ModalEngine.connect(app, environment)
            try:
                while True:
                    await end_owned(engine, owner)
                    swept = True
                    if time.monotonic() - begun >= watch_s:
                        return
                    await asyncio.sleep(PAUSE_S)
            finally:
                await engine.close()
        except Refused:
            raise
        except SandboxError:
            if time.monotonic() - begun > PATIENCE_S:
                raise
            swept = False
            await asyncio.sleep(PAUSE_S)


def main() -> None:
    owner, app, environment = sys.argv[1:4]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    last = b""
    while piece := sys.stdin.buffer.read(1):
        last = (last + piece)[-len(DONE) :]
    if last != DONE:
        asyncio.run(end_all(owner, app, environment or None, IN_FLIGHT_S))


if __name__ == "__main__":
    main()
