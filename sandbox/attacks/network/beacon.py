"""Listeners on the host that an egress probe may aim at: they answer only to a nonce, and count who found them."""

import asyncio
import fcntl
import socket
import struct
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

SIOCGIFADDR = 0x8915
Target = tuple[str, str, int]


@dataclass
class Beacon:
    """What it listens on, and how often the nonce arrived there."""

    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    targets: list[Target] = field(default_factory=list)
    hits: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(64) == self.nonce.encode():
            self.hits += 1
            writer.write(b"heard")
        writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, beacon: Beacon) -> None:
        self._beacon = beacon

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if data == self._beacon.nonce.encode():
            self._beacon.hits += 1
            self._transport.sendto(b"heard", addr)


@asynccontextmanager
async def lit(addresses: list[str]) -> AsyncIterator[Beacon]:
    """TCP and UDP on each address, and one abstract unix socket, for as long as it is needed."""
    beacon = Beacon()
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        for address in addresses:
            server = await stack.enter_async_context(await asyncio.start_server(beacon.answer, address, 0))
            port = server.sockets[0].getsockname()[1]
            transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(beacon), (address, port))
            stack.callback(transport.close)
            beacon.targets += [("tcp", address, port), ("udp", address, port)]
        name = f"blastdoor-{beacon.nonce}"
        await stack.enter_async_context(await asyncio.start_unix_server(beacon.answer, f"\0{name}"))
        beacon.targets.append(("unix", name, 0))
        yield beacon


def own_addresses() -> list[str]:
    """The IPv4 addresses of this machine beside loopback."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            try:
                reply = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # an interface without an address
                continue
            found.append(socket.inet_ntoa(reply[20:24]))
    return [address for address in found if not address.startswith("127.")]


# For the chamber: reach a target with a nonce, and say which ways lead out. Nothing here sends to an address that
# the suite did not open itself.
REACH = '''
"""Egress, tried and looked for."""
import errno, fcntl, os, socket, struct


def reach(kind, host, port, nonce):
    """'answered' when the listener answered, else what happened instead."""
    family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as door:
            door.settimeout(1)
            door.connect("\\0" + host if kind == "unix" else (host, port))
            door.send(nonce.encode())
            return "answered" if door.recv(64) == b"heard" else "silent"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)


def lines(path):
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []


def ways():
    """Interfaces that are up and routes that do not end on the loopback."""
    names = [line.split(":")[0].strip() for line in lines("/proc/net/dev")[2:]]
    found = [name for name in names if name != "lo" and is_up(name)]
    found += [line for line in lines("/proc/net/route")[1:] if line.strip() and line.split()[0] != "lo"]
    found += [line.split()[-1] for line in lines("/proc/net/ipv6_route") if line.split()[-1:] not in ([], ["lo"])]
    addresses = [line.split()[1] for line in lines("/proc/net/fib_trie") if "|--" in line]
    return names, found + [address for address in addresses if not address.startswith("127.")]


def is_up(name):
    """Kernels with tunnel modules put dead fall-back devices into every namespace: only those that are up count."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            reply = fcntl.ioctl(any_socket, 0x8913, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return True
    return bool(struct.unpack("H", reply[16:18])[0] & 1)
'''
