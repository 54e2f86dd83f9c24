"""A Docker daemon of one folder's own, shared by all commands that use it at the same time.

A command holds a shared lock while it works, and the last one stops the daemon, unless `keep` was asked for. The daemon
is found by its command line, not by its pidfile: one that a crash left behind may name a stranger.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from orchestrator.machine.programs import (
    OF_A_DAEMON,
    Unprepared,
    child_environment,
    daemon_settings,
    last_line,
    program,
)

START_SECONDS = 60
STOP_SECONDS = 40
DETACH = 2  # MNT_DETACH; a small Debian has no umount command
# A unix socket's path holds 107 bytes; the longest one below the run folder takes this many of them.
LONGEST_SOCKET = len("/exec/containerd/containerd-debug.sock.ttrpc")
MOUNTS = Path("/proc/self/mountinfo")
ROOM = 1 << 30  # bytes that the smallest set of images takes


def answers(path: str, timeout: float = 5) -> bool:
    """Whether an engine answers on this socket. A refusal for lack of rights is raised."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(path)
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")
            return b" 200 " in connection.recv(64)
    except PermissionError:
        raise
    except OSError:
        return False


def _containers(path: str) -> int:
    """How many run there; none where it does not answer."""
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(path)
        connection.sendall(b"GET /containers/json HTTP/1.0\r\nHost: engine\r\n\r\n")
        reply = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        return len(json.loads(reply.partition(b"\r\n\r\n")[2]))
    return 0


class PrivateEngine:
    """`home` has all of it. `apart`: in a network of its own, where it cannot touch another engine's bridge.

    `dockerd` is the daemon where it is not the machine's own.
    """

    def __init__(self, home: Path, *, apart: bool = False, dockerd: Path | None = None) -> None:
        self._dockerd = dockerd
        self._before = ["unshare", "--net"] if apart else []
        self.home = home.absolute()
        self.name = "blastdoor-" + hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        fits = len(os.fsencode(self.home)) + LONGEST_SOCKET <= 107
        self.run = self.home if fits else Path("/tmp") / self.name  # noqa: S108 checked in make_own_folder
        self.socket = self.run / "sock"
        self.host = f"unix://{self.socket}"
        self.log = self.home / "dockerd.log"
        self._kept = self.home / "kept"

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """The address of the running daemon, which is stopped after its last user."""
        make_own_folder(self.home)
        with (self.home / "users.lock").open("w") as users:
            try:
                with self._alone():
                    fcntl.flock(users, fcntl.LOCK_SH)
                    self._ensure()
                yield self.host
            finally:
                with self._alone(), contextlib.suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if not self._kept.exists():
                        self._stop()

    def keep(self) -> None:
        """Starts the daemon, unless it runs already. It stays until `end`."""
        make_own_folder(self.home)
        with self._alone():
            self._ensure()
            self._kept.touch()

    def is_kept(self) -> bool:
        """Whether it runs because `keep` asked for it."""
        return self._kept.exists() and self._pid() is not None and answers(str(self.socket))

    def end(self, *, force: bool = False) -> bool:
        """Whether there was one to stop. Raises Unprepared where it is in use, unless `force`."""
        if not self.home.is_dir():
            return False
        with self._alone(), self._unused(force=force):
            there = self._pid() is not None
            if there and not force and (busy := _containers(str(self.socket))):
                raise Unprepared(
                    f"chambers still run on the private engine ({busy}): end the campaign or run `blastdoor reap`,"
                    " then try again; --force ends them now"
                )
            self._kept.unlink(missing_ok=True)
            self._stop()
            return there

    def clean(self) -> None:
        """Stops the daemon and removes all that it kept, unless someone uses it."""
        if self.home.exists():
            with self._alone(), self._unused():
                if self._pid() is None and (self.run / "pid").exists() and program("dockerd"):
                    self._start()  # the daemon was killed, and only a new one ends its containers
                self._stop()
                for folder in {self.home, self.run}:
                    remove_folder(folder)

    @contextlib.contextmanager
    def _unused(self, *, force: bool = False) -> Iterator[None]:
        with (self.home / "users.lock").open("w") as users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not force:
                    raise Unprepared("a command still uses the private engine; nothing was changed") from None
            yield

    def _ensure(self) -> None:
        if self._pid() is None or not answers(str(self.socket)):
            self._stop()
            self._start()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.home / "change.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start(self) -> None:
        make_own_folder(self.run)
        if (free := shutil.disk_usage(self.home).free) < ROOM:
            raise Unprepared(
                f"{self.home} has {free >> 20} MiB of free space, and images need {ROOM >> 20} MiB:"
                " free some, or name a folder elsewhere"
            )
        containerd = self.run / "exec/containerd"
        stale = [self.run / "pid", self.socket]
        if find_process(b"containerd", b"--config", containerd / "containerd.toml") is None:
            stale.append(containerd / "containerd.pid")
        for path in stale:
            path.unlink(missing_ok=True)
        settings = self.home / "daemon.json"
        settings.write_text(daemon_settings(program("runsc") or "/usr/bin/runsc"))
        command = [*self._before, str(self._dockerd or program("dockerd") or "dockerd"), "--config-file", str(settings)]
        command += ["--data-root", str(self.home / "data"), "--exec-root", str(self.run / "exec")]
        command += ["--pidfile", str(self.run / "pid"), "--host", f"unix://{self.socket}"]
        # A containerd that is there already is shared with another engine: keep to a name of our own.
        command += [
            "--containerd-namespace",
            self.name,
            "--containerd-plugins-namespace",
            f"{self.name}-plugins",
        ]
        command += ["--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
        with self.log.open("wb") as log:
            # A session of its own: Ctrl-C is for the command, not for the daemon.
            daemon = subprocess.Popen(
                command,
                # To collect garbage takes a fifth of the engine's processor time for a chamber, and memory is plenty.
                # What runs inside of a chamber does not get this.
                env=child_environment(OF_A_DAEMON, GOGC="1000"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not answers(str(self.socket), timeout=1):
            if daemon.poll() is not None or time.monotonic() > deadline:
                why = "it ended" if daemon.poll() is not None else f"it does not answer after {START_SECONDS} s"
                last = last_line(self.log.read_text(errors="replace"))
                self._stop()
                raise Unprepared(f"the private engine did not start: {why} ({last}); see {self.log}")
            time.sleep(0.05)

    def _pid(self) -> int | None:
        return find_process(b"dockerd", b"--data-root", self.home / "data")

    def _stop(self) -> None:
        """Ends our daemon. The handle is taken before the look, so that a reused pid is never hit."""
        pid = self._pid()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 10)):
                    if self._pid() != pid:
                        return
                    signal.pidfd_send_signal(handle, number)
                    if select.select([handle], [], [], seconds)[0]:
                        with contextlib.suppress(ChildProcessError):
                            os.waitpid(pid, os.WNOHANG)
                        # It leaves a namespace mounted, and then nobody can delete the repository's folder.
                        _unmount(self.run)
                        return
            finally:
                os.close(handle)


def find_process(name: bytes, option: bytes, value: Path) -> int | None:
    """The process of this name that was started with this option."""
    wanted = os.fsencode(value)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(name) and wanted in words[words.index(option) + 1 :][:1]:
                return int(entry.name)
    return None


def make_own_folder(folder: Path) -> None:
    """A folder that only we can enter; /tmp is everyone's, and a folder that was there may have been open."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    status = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise Unprepared(f"{folder} is not a folder that only this user can write; remove it and try again")
    folder.chmod(0o700)


def _unmount(folder: Path) -> None:
    """Unmounts what a daemon left mounted below a folder, deepest first."""
    # As bytes: whoever mounts may take any name.
    points = [line.split(b" ")[4] for line in MOUNTS.read_bytes().split(b"\n") if line]
    for point in sorted((p for p in points if p.startswith(os.fsencode(folder) + b"/")), key=len, reverse=True):
        ctypes.CDLL(None).umount2(point, DETACH)


def remove_folder(folder: Path) -> None:
    _unmount(folder)
    # An image may hold more folders in one another than Python removes.
    if subprocess.run(["rm", "-rf", "--", str(folder)], env=child_environment(), check=False).returncode:
        raise Unprepared(f"{folder} cannot be removed; remove it by hand")
