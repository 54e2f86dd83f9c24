"""The door to an engine's socket passes bytes both ways, and each side's end of writing."""

import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

DOOR = Path(__file__).resolve().parents[2] / "scripts" / "socket_door.py"


def _engine(server: socket.socket) -> None:
    """Answers once it has heard everything: only the end of writing tells it so."""
    connection, _ = server.accept()
    with connection:
        heard = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        connection.sendall(b"heard %d" % len(heard))


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "engine"))
    server.listen()
    threading.Thread(target=_engine, args=(server,), daemon=True).start()
    return tmp_path / "engine"


def _connected(listen: Path) -> socket.socket:
    """The door has its name before it listens."""
    until = time.monotonic() + 60
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(120)
        try:
            client.connect(str(listen))
        except (FileNotFoundError, ConnectionRefusedError):
            client.close()
            assert time.monotonic() < until, "the door does not open"
            time.sleep(0.02)
        else:
            return client


def test_half_closed_streams_pass(engine: Path, tmp_path: Path) -> None:
    uid = engine.stat().st_uid
    listen = tmp_path / "door"
    process = subprocess.Popen([sys.executable, str(DOOR), str(listen), str(uid), f"unix://{engine}"])
    try:
        with _connected(listen) as client:
            assert stat.S_IMODE(listen.stat().st_mode) == 0o600
            client.sendall(bytes(1 << 20))
            client.shutdown(socket.SHUT_WR)
            assert client.recv(64) == b"heard 1048576"
            assert client.recv(64) == b""
    finally:
        process.kill()
        process.wait()
