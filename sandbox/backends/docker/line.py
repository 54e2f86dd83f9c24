"""One connection to the engine that is kept, for asking whether it answers.

Its end tells that the line to the engine broke, even if every later call gets through: the streams of all chambers
went the same way, and a chamber ends when its stdin does.
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
            await reader.readuntil(b"\r\n\r\n")  # any answer is one: what it says does not matter
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            self.close()
            raise Unavailable(f"the engine does not answer ({type(error).__name__})") from error
        except BaseException:
            self.close()  # half an answer would be taken for the next one's
            raise

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
        self._streams = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._host.scheme == "unix":
            return await asyncio.open_unix_connection(self._host.path)
        return await asyncio.open_connection(self._host.hostname, self._host.port or _PORT)
