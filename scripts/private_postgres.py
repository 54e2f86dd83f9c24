"""A PostgreSQL server of one's own for a while: in a folder that is removed, on loopback, with real durability.

The server refuses root. Root starts it as the user that the package made.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from distribution import Unprepared, program, require
from held_port import HeldPort

START_SECONDS = 300
STOP_SECONDS = 300
USER = "tester"
_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{home}'
max_connections = 60
log_min_messages = fatal
"""


class PrivatePostgres:
    """`start`, `stop` and `kill` as often as one likes; the data stay. The password is made for this server alone."""

    def __init__(self, home: Path, password: str, port: int) -> None:
        self.home = home
        self.log = home / "server.log"
        self.port = port
        self._password = password
        self._server: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", *, port: int | None = None, password: str | None = None) -> str:
        secret = quote(self._password if password is None else password, safe="")
        return f"postgresql://{USER}:{secret}@127.0.0.1:{port or self.port}/{database}"

    def make(self) -> None:
        words = self.home / "password"
        words.write_text(self._password)
        words.chmod(0o644)
        command = [program("initdb") or "initdb", "--pgdata", str(self.home / "data"), "--username", USER]
        command += ["--auth", "scram-sha-256", "--pwfile", str(words), "--encoding", "UTF8", "--locale", "C.UTF-8"]
        made = subprocess.run(_as_user(command), capture_output=True, text=True, check=False, cwd="/")
        words.unlink()
        if made.returncode:
            raise Unprepared(f"initdb failed: {made.stderr.strip()[-500:]}")
        with (self.home / "data" / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS.format(port=self.port, home=self.home))

    def start(self) -> None:
        """From the main thread: the server ends with the thread that started it."""
        command = [program("postgres") or "postgres", "-D", str(self.home / "data")]
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(
                _as_user(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
            )
        until = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._server.poll() is not None or time.monotonic() > until:
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
                raise Unprepared(f"the private PostgreSQL server did not start; the end of {self.log}:\n{tail}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends its sessions first; SIGQUIT leaves everything to the recovery of the next start."""
        if self._server:
            self._server.send_signal(how)
            self._server.wait(STOP_SECONDS)
            self._server = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def _is_ready(self) -> bool:
        """The server writes its state into the last line of this file; one that was killed left its own behind."""
        try:
            told = (self.home / "data" / "postmaster.pid").read_text().splitlines()
            return self._server is not None and (told[0], told[7].strip()) == (str(self._server.pid), "ready")
        except (OSError, IndexError):
            return False


@contextlib.contextmanager
def postgres(log: Path, within: Path | None = None) -> Iterator[PrivatePostgres]:
    """Installs the server where it is missing, or says what to install. `within` must be open to the server's user."""
    require("initdb", "postgres", log=log)
    with tempfile.TemporaryDirectory(prefix="blastdoor-pg-", dir=within) as folder, HeldPort() as port:
        home = Path(folder)
        if os.geteuid() == 0:
            shutil.chown(home, _account().pw_name)
        server = PrivatePostgres(home, f"canary/{secrets.token_hex(8)}@?%", port.number)
        server.make()
        try:
            server.start()
            yield server
        finally:
            server.stop(signal.SIGQUIT)  # without a last checkpoint of what is removed anyway


def _as_user(command: list[str]) -> list[str]:
    """It dies with us: setpriv asks for that last, because a change of user forgets it."""
    words = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() == 0:
        account = _account()
        words += ["--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
    return [*words, *command]


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise Unprepared(
            "PostgreSQL refuses root, and there is no user postgres: make one, or do not be root"
        ) from None
