"""Where the server listens, under which names, and with which certificate; each wish is kept or refused in one line."""

import ipaddress
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.text import short

LOOPBACK = "127.0.0.1"
PORT = 8420
_LOOPBACK_NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Certificate:
    chain: Path
    key: Path


@dataclass(frozen=True)
class Listening:
    """`hosts` are the names by which browsers may come, the first one for the address that is printed."""

    socket: socket.socket
    hosts: tuple[str, ...] = _LOOPBACK_NAMES
    certificate: Certificate | None = None

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"

    @property
    def address(self) -> str:
        return f"{self.scheme}://{self.hosts[0]}:{self.port}/"


def listen(
    host: str, port: int | None, names: Sequence[str], certificate: Certificate | None, *, plain: bool
) -> Listening:
    """Raises click's UsageError."""
    address = _resolved(host)
    if not address.is_loopback and not certificate and not plain:
        raise click.UsageError(
            f"{host} can be reached from other machines, and without TLS all on the way read along: give --tls-cert and"
            " --tls-key, or --plain-http where something else encrypts; ssh -L needs neither"
        )
    hosts = tuple(_name(name) for name in names) or _names_of(host, address)
    if certificate:
        _check(certificate)
    return Listening(_bound(address, port), hosts, certificate)


def _resolved(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise click.UsageError(f"--host {host}: {error.strerror}; name an address of this machine") from None
    except UnicodeError:
        raise click.UsageError(
            f"--host {short(host, 80)} is no name of a host; name an address of this machine"
        ) from None
    return ipaddress.ip_address(str(found[0][4][0]).partition("%")[0])


def _names_of(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> tuple[str, ...]:
    if address.is_unspecified:
        raise click.UsageError(f"{host} is no name that a browser could open; say by which one they come with --name")
    if address == ipaddress.ip_address(LOOPBACK):
        return _LOOPBACK_NAMES
    return tuple(dict.fromkeys((_name(host), f"[{address}]" if address.version == 6 else str(address))))


def _name(text: str) -> str:
    """As a browser writes it into Host."""
    name = text.lower()
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    if not name.isascii() or any(it in name for it in "/@?# \t") or not name.isprintable() or not name.strip("[]"):
        raise click.UsageError(f"{text!a} is no name of a server; a port or a path has no place in it")
    return name


def _check(certificate: Certificate) -> None:
    def no_password() -> str:
        raise click.UsageError(f"{certificate.key} needs a password; give a key without one, that only you can read")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for path in (certificate.chain, certificate.key):
        if not path.is_file():
            raise click.UsageError(f"{path} is not a file")
    try:
        context.load_cert_chain(certificate.chain, certificate.key, no_password)
    except (OSError, ValueError) as error:
        told = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise click.UsageError(
            f"{certificate.chain} and {certificate.key} are no certificate and key: {told}"
        ) from None


def _bound(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int | None) -> socket.socket:
    """The wish of a person is kept or refused; the usual port gives way to any."""
    for wanted in (PORT, 0) if port is None else (port,):
        listening = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((str(address), wanted))
            listening.listen()  # one who opens the address at once waits, and is not refused
        except OSError as error:
            listening.close()
            if port is not None:
                line = f"cannot listen on port {port}: {error.strerror}; name another, or leave out --port"
                raise click.UsageError(line) from None
            continue
        return listening
    raise click.UsageError(f"no port of {address} can be listened on")
