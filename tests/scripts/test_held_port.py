"""A held port is nobody else's, between two servers too."""

import errno
import socket

import pytest

from held_port import HeldPort


def test_a_server_takes_it_leaves_it_and_takes_it_again() -> None:
    """In between, one who connects is refused, and one who asks for just this port without a word gets none."""
    with HeldPort() as port:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port.number), 60)
            with socket.socket() as other, pytest.raises(OSError, match="in use") as caught:
                other.bind(("127.0.0.1", port.number))
            assert caught.value.errno == errno.EADDRINUSE
            with (
                socket.create_server(("127.0.0.1", port.number)) as server,
                socket.create_connection(("127.0.0.1", port.number), 60) as client,
            ):
                server.accept()[0].close()
                assert client.recv(1) == b""
