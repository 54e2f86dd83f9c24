"""`blastdoor serve` from outside: it says where it is, answers, and ends when it is told to."""

import datetime
import ipaddress
import json
import signal
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Callable
from http.client import HTTPSConnection
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from orchestrator.ledger import Ledger
from orchestrator.views.cli import cli
from orchestrator.views.page.entrance import Entrance
from orchestrator.views.page.guard import KEY
from orchestrator.views.page.listening import Certificate
from tests.clicking import runner
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.page.conftest import CONTROL, PLACE, Served
from tests.started import Started

_EVERYWHERE = "0.0.0.0"  # noqa: S104  what must not be listened on


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_cleanly(tmp_path: Path, number: int) -> None:
    """An address with a token, a campaign, and exit code 0 by Ctrl-C, also while somebody listens."""
    made = Stage(tmp_path / "task")
    made.story.open()
    made.write()
    with Started("serve", "--port", "0", "--no-open", tmp_path, stdout=subprocess.PIPE) as started:
        address = started.said.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        page = browser.open(address)
        base = page.geturl()
        assert "token" not in base
        assert b"<title>Blastdoor</title>" in page.read()
        (row,) = json.load(browser.open(f"{base}api/campaigns"))
        assert row["name"] == "circle-packing"
        stream = browser.open(f"{base}api/campaign/{row['id']}/updates")
        assert stream.readline() == b"event: again\n"
        started.send_signal(number)
        assert started.wait() == 0


def test_a_port_that_somebody_has(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = runner().invoke(cli, ["serve", "--port", str(port), str(tmp_path)])
    assert (ran.exit_code, f"cannot listen on port {port}" in ran.output) == (2, True)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--host", _EVERYWHERE], "can be reached from other machines"),
        (["--host", "::"], "can be reached from other machines"),
        (["--host", "192.0.2.1", "--control"], "can be reached from other machines"),
        (["--host", _EVERYWHERE, "--plain-http"], "is no name that a browser could open"),
        (["--host", "no such host"], "name an address of this machine"),
        (["--host", "a" * 70], "name an address of this machine"),
        (["--host", "a..b"], "name an address of this machine"),
        (["--host", "192.0.2.1", "--plain-http"], "can be listened on"),
        (["--name", "evil/x"], "is no name of a server"),
        (["--name", "a b"], "is no name of a server"),
        (["--tls-cert", "x.pem"], "belong together"),
        (["--tls-cert", "x.pem", "--tls-key", "y.pem"], "x.pem is not a file"),
        (["--tls-cert", "bad.pem", "--tls-key", "bad.pem"], "are no certificate and key"),
        (["--tls-cert", "cert.pem", "--tls-key", "locked.pem"], "needs a password"),
        (["bad.pem"], "bad.pem is not a folder; name one with campaigns in it"),
    ],
)
def test_where_it_would_not_be_safe_it_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], line: str
) -> None:
    """Beyond loopback with TLS or an explicit word alone, with control or without; one line, exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.pem").write_text("no certificate")
    if "cert.pem" in words:
        certificate_in(tmp_path)
    ran = runner().invoke(cli, ["serve", "--no-open", *words, str(tmp_path)])
    assert (ran.exit_code, line in ran.output.strip().splitlines()[-1]) == (2, True), ran.output


def certificate_in(folder: Path) -> Certificate:
    """For loopback; `locked.pem` is its key behind a password."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=2))
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = made.add_extension(here, critical=False).sign(key, hashes.SHA256())
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(signed.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    (folder / "locked.pem").write_bytes(key.private_bytes(pem, form, serialization.BestAvailableEncryption(b"x")))
    return Certificate(folder / "cert.pem", folder / "key.pem")


def test_tls(tmp_path: Path, served: Callable[..., Served]) -> None:
    """A certificate of one's own: the page is only spoken to over TLS, its cookie is for TLS alone, and an act over it
    is taken.
    """
    made = Stage(tmp_path / "task")
    made.story.open()
    made.write()
    certificate = certificate_in(tmp_path)
    started = served(made.folder, control=True, certificate=certificate)
    assert started.address.startswith("https://127.0.0.1:")
    context = ssl.create_default_context(cafile=certificate.chain)
    connection = HTTPSConnection("127.0.0.1", started.port, context=context)

    def ask(method: str, target: str, body: str | None = None, **headers: str) -> tuple[int, str, bytes]:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("set-cookie", ""), answer.read()

    status, cookie, _ = ask("GET", f"/?token={quote(CONTROL)}")
    assert (status, cookie.endswith("; Secure")) == (303, True)
    known = {"Cookie": cookie.partition(";")[0]}
    _, _, told = ask("GET", f"/{PLACE}/api/me", **known)
    _, _, rows = ask("GET", f"/{PLACE}/api/campaigns", **known)
    target = f"/{PLACE}/api/campaign/{json.loads(rows)[0]['id']}/ask/pause"
    act = {**known, "Content-Type": "application/json", KEY: json.loads(told)["key"]}
    with made.lock():
        assert ask("POST", target, "{}", Origin=f"http://127.0.0.1:{started.port}", **act)[0] == 403
        with Ledger.open(made.campaign / "ledger.sqlite3", read_only=True) as ledger:
            head = ledger.head()
        seen = json.dumps({"seen": f"{head.seq}-{head.hash}"})
        assert ask("POST", target, seen, Origin=started.address.rstrip("/"), **act)[0] == 200
    connection.close()
    with socket.create_connection(("127.0.0.1", started.port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b"HTTP" not in plain.recv(1000)


def test_what_is_printed_and_what_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One address to look and, with --control, another one to act. In the browser's command line is neither token."""
    opened: list[str] = []
    entrances: list[Entrance] = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    async def serve(_: object, __: object, ___: object, entrance: Entrance) -> None:
        entrances.append(entrance)

    monkeypatch.setattr("orchestrator.views.page.running.serve", serve)
    looks, acts = _printed(tmp_path, "--control")
    assert (looks[1:], acts[1:]) == (["(looks)"], ["(acts)"])
    tokens = [words[0].partition("token=")[2] for words in (looks, acts)]
    assert all(len(token) >= 40 for token in tokens)
    assert tokens[0] != tokens[1]
    assert not any(it in opened[0] for it in (*tokens, entrances[0].place))
    session = entrances[0].session(entrances[0].enter(opened[0].partition("?")[2].encode()) or "")
    assert session
    assert not session.acts
    ((alone,),) = _printed(tmp_path)
    assert not entrances[1].is_control
    assert "?token=" in alone


def _printed(folder: Path, *words: str) -> list[list[str]]:
    ran = runner().invoke(cli, ["serve", "--port", "0", "--open", *words, str(folder)])
    assert ran.exit_code == 0, ran.output
    return [line.split() for line in ran.stdout.splitlines()]
