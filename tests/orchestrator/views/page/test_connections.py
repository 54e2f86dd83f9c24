"""Anybody on the machine can connect; none of them keeps the others out."""

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.views.page import connections
from tests.orchestrator.views.page.conftest import PLACE, TOKEN, Served
from tests.orchestrator.views.page.test_command import certificate_in

HANG_S = 60


def connected(served: Served, data: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", served.port), HANG_S / 2)  # by itself TLS ends them in a minute
    made.sendall(data)
    return made


def status(served: Served, target: str = "/") -> int:
    asking = http.client.HTTPConnection("127.0.0.1", served.port, timeout=HANG_S)
    asking.request("GET", target)
    found = asking.getresponse().status
    asking.close()
    return found


def is_closed(made: socket.socket) -> bool:
    try:
        return made.recv(100) == b""
    except ConnectionResetError:
        return True


def _trickle(made: socket.socket) -> None:
    for _ in range(HANG_S * 10):
        made.sendall(b"a")
        time.sleep(0.1)


def test_half_a_request_has_some_seconds(served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says nothing, half of a header, or goes on and on with it; also after a request that was answered."""
    started = served()
    begun = b"GET / HTTP/1.1\r\nhost: x\r\n"
    answered = connected(started, begun + b"\r\n")
    assert b"421" in answered.recv(2000)
    while answered.recv(2000):  # one who is refused keeps no connection
        pass
    with monkeypatch.context() as short:
        short.setattr(connections, "REQUEST_S", 1.0)
        made = [connected(started), connected(started, begun), connected(started, b"G")]
        assert all(is_closed(it) for it in made)
        slow = connected(started)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            _trickle(slow)
    assert status(started) == 401
    for it in (*made, answered, slow):
        it.close()


def test_t103_an_answer_that_nobody_reads_has_some_seconds(
    served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that are full of answers would be all that the server takes."""
    monkeypatch.setattr(connections, "ANSWER_S", 0.5)
    started = served()
    greedy = socket.socket()
    greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    greedy.settimeout(HANG_S)
    greedy.connect(("127.0.0.1", started.port))
    request = f"GET /{PLACE}/ HTTP/1.1\r\nhost: 127.0.0.1:{started.port}\r\n\r\n".encode()
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        greedy.sendall(request * 100_000)
    greedy.close()
    assert status(started, f"/{PLACE}/") == 200


def test_many_who_say_nothing_keep_nobody_out(served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of them goes when another one comes; one who says what it wants is answered at once."""
    monkeypatch.setattr(connections, "MOST_WAITING", 4)
    monkeypatch.setattr(connections, "REQUEST_S", HANG_S * 10)
    started = served()
    made = [connected(started, b"GET / HT") for _ in range(12)]
    assert status(started, f"/{PLACE}/") == 200
    assert status(started, f"/?token={TOKEN.replace(' ', '%20')}") == 303
    assert all(is_closed(it) for it in made[:6])
    for it in made:
        it.close()


def test_half_handshakes(tmp_path: Path, served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS, too, one that says nothing or stops in the middle goes after some seconds, and the oldest of many when
    another one comes.
    """
    certificate = certificate_in(tmp_path)
    with monkeypatch.context() as short:
        short.setattr(connections, "REQUEST_S", 1.0)
        started = served(certificate=certificate)
        made = [connected(started), connected(started, b"\x16\x03\x01")]
        assert all(is_closed(it) for it in made)
    monkeypatch.setattr(connections, "MOST_WAITING", 4)
    monkeypatch.setattr(connections, "REQUEST_S", HANG_S * 10)
    started = served(certificate=certificate)
    many = [connected(started, b"\x16\x03\x01") for _ in range(12)]
    assert all(is_closed(it) for it in many[:8])
    trusts = ssl.create_default_context(cafile=str(certificate.chain))
    trusts.check_hostname = False
    asking = http.client.HTTPSConnection("127.0.0.1", started.port, timeout=HANG_S, context=trusts)
    asking.request("GET", f"/{PLACE}/")
    assert asking.getresponse().status == 200
    asking.close()
    for it in (*made, *many):
        it.close()


def test_raw_requests_of_an_attacker(served: Callable[..., Served]) -> None:
    """Line ends in an address become no header, no address is a path of the disk, and only its own name is answered;
    each is refused, and tells nothing.
    """
    started = served()
    here = f"127.0.0.1:{started.port}"
    requests = [
        ("/%0d%0aset-cookie:%20x=1", here),
        (f"/{PLACE}/%0d%0aset-cookie:%20x=1", here),
        ("/?token=%0d%0aset-cookie:%20x=1", here),
        (f"/{PLACE}/../../../../etc/passwd", here),
        (f"/{PLACE}/static/%2e%2e%2fserver.py", here),
        (f"/{PLACE}/static/..%5cserver.py", here),
        (f"/{PLACE}%2fapi%2fcampaigns", here),
        ("http://evil.example/", here),
        ("//evil.example/%2e%2e", here),
        (f"/{PLACE}/", "evil.example"),
        (f"/{PLACE}/", f"evil.example:{started.port}"),
        (f"/{PLACE}/", f"{here}@evil.example"),
        (f"/{PLACE}/", f"{here}\r\nhost: evil.example"),
        (f"/{PLACE}/", f"{here}\r\n host: evil.example"),
    ]
    for target, host in requests:
        with connected(started, f"GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()) as made:
            made.shutdown(socket.SHUT_WR)
            answer = b""
            while part := made.recv(65536):
                answer += part
        head = answer.partition(b"\r\n\r\n")[0].lower()
        assert head.split()[1] in (b"400", b"401", b"404", b"421"), (target, host)
        assert b"set-cookie" not in head
        assert b"\r\nlocation:" not in head
        assert b"root:" not in answer
