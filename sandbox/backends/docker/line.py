"""One connection to the engine that is kept, for asking whether it answers.

Its end tells that the line to the engine broke, even if every later call gets through: the streams of all chambers
went the same way, and a chamber ends when its stdin does. A proxy that closes each connection after its answer says so:
there the end tells nothing, and the next question takes a new connection.
"""

import asyncio
from urllib.parse import urlsplit

from sandbox.errors import Unavailable

_PING = b"HEAD /_ping HTTP/1.1\r\nHost: engine\r\n\r\n"
_PORT = 2375


class Line:
    def __init__(self, host: str) -> None:
        self._host = urlsplit(host)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> None:
        """Raises Unavailable when the engine does not answer, and when it has hung up since it was asked last."""
        try:
            reader, writer = self._streams = self._streams or await self._connect()
            writer.write(_PING)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")  # any answer is one: what it says does not matter
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            self.close()
            raise Unavailable(f"the engine does not answer ({type(error).__name__})") from error
        except BaseException:
            self.close()  # half an answer would be taken for the next one's
            raise
        if not _is_kept(head):
            self.close()

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
        self._streams = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._host.scheme == "unix":
            return await asyncio.open_unix_connection(self._host.path)
        return await asyncio.open_connection(self._host.hostname, self._host.port or _PORT)


def _is_kept(head: bytes) -> bool:
    """Whether the other side says that it keeps the connection: by its version, unless it says otherwise."""
    first, *lines = head.lower().split(b"\r\n")
    said = b",".join(value for name, _, value in (line.partition(b":") for line in lines) if name == b"connection")
    words = {word.strip() for word in said.split(b",")}
    return b"close" not in words and (first.startswith(b"http/1.1") or b"keep-alive" in words)
