"""A door to an engine's socket for one user: `socket_door.py LISTEN UID TARGET`, until it is ended.

The engine's own socket may lie where only root can go. Each side's end of writing is passed on, as `attach` needs.
"""

import asyncio
import contextlib
import os
import sys

CHUNK = 1 << 16


async def _open(target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    scheme, _, rest = target.partition("://")
    if scheme == "unix":
        return await asyncio.open_unix_connection(rest)
    host, _, port = rest.rstrip("/").rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()
        sink.write_eof()


async def _serve(target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError), contextlib.closing(writer):
        upstream, downstream = await _open(target)
        with contextlib.closing(downstream):
            await asyncio.gather(_carry(reader, downstream), _carry(upstream, writer))


async def main(listen: str, uid: int, target: str) -> None:
    os.umask(0o177)
    server = await asyncio.start_unix_server(lambda r, w: _serve(target, r, w), listen)
    os.chown(listen, uid, -1)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
