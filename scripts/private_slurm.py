"""A Slurm cluster of one node and a SkyPilot server in front of it, of one's own for a while, on loopback.

Debian's packages, each daemon with files in one folder that is removed. Jobs run as a user that is made for this
cluster and removed with it, and find an engine of the node's own, which has no images yet. All that was started is
ended by its number, and what is left at the end is an error.
"""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import slurm_files
from distribution import SEARCH_PATH, Unprepared, program, require
from orchestrator.machine.private_engine import PrivateEngine
from own_processes import Process, end, end_all, own_processes
from slurm_files import CLUSTER, Ports

START_SECONDS = 300
STOP_SECONDS = 20
PLACE = Path("/tmp")  # noqa: S108 a folder of our own is made there, and the cluster's user must get to it
FOLDER = "blastdoor-slurm-"
USER = "blastdoor-"  # and what SkyPilot calls its tenant
PROGRAMS = ("dockerd", "docker", "slurmctld", "slurmd", "sbatch", "munged", "sshd", "rsync", "curl")


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One machine, as SkyPilot sees it."""

    number: int
    name: str
    state: str


class PrivateSlurm:
    """`docker_host` is the node's own engine; jobs find it in DOCKER_HOST, through a door for their user."""

    infra = f"slurm/{CLUSTER}"

    def __init__(self, home: Path, docker_host: str) -> None:
        self.home = home
        self._tenant = uuid.uuid4().hex[:8]  # whose machines these are, to SkyPilot
        self.user = USER + self._tenant
        self.uid: int | None = None
        self.docker_host = docker_host
        self._ports = _ports()
        self._daemons: list[subprocess.Popen[bytes]] = []

    def environment(self) -> dict[str, str]:
        """What a process needs to rent from this cluster. SkyPilot reads it when it is imported, and keeps it."""
        return {
            "HOME": str(self.home / "sky"),
            "SKYPILOT_API_SERVER_ENDPOINT": f"http://127.0.0.1:{self._ports.api}",
            "SKYPILOT_API_SERVER_LOCAL_PORT": str(self._ports.api),
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
            "SKYPILOT_USER_ID": self._tenant,
        }

    @property
    def login(self) -> str:
        """Where its own sshd listens."""
        return f"ssh://127.0.0.1:{self._ports.ssh}"

    @contextlib.contextmanager
    def reached_at(self, port: int) -> Iterator[None]:
        """What is launched meanwhile is reached through another port, by SkyPilot's server and by its clients."""
        slurm_files.write_login(self.home, port, self.user)
        try:
            yield
        finally:
            slurm_files.write_login(self.home, self._ports.ssh, self.user)

    def jobs(self) -> list[QueuedJob]:
        """All that Slurm has not ended: each is a machine that is paid for, or asked for."""
        lines = self.command("squeue", "--noheader", "--format=%A %j %T").splitlines()
        return [QueuedJob(int(number), name, state) for number, name, state in map(str.split, lines)]

    def processes(self) -> list[Process]:
        """All that runs on the node in the name of its user; what is in chambers has another."""
        return own_processes(self.home / "nobody", self.uid)

    def containers(self) -> list[str]:
        """Ids of all chambers on the node, running or not."""
        return self.command("docker", "ps", "--all", "--quiet").split()

    def command(self, *words: str) -> str:
        """One of Slurm's own commands, or of the engine's, as the node's administrator."""
        ran = subprocess.run(
            [program(words[0]) or words[0], *words[1:]],
            env=os.environ | {"SLURM_CONF": str(self.home / "slurm.conf"), "DOCKER_HOST": self.docker_host},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if ran.returncode:
            raise Unprepared(f"{words[0]} failed: {ran.stderr.strip()[-500:]}")
        return ran.stdout

    def start(self) -> None:
        """From the main thread: the daemons end with the thread that started them."""
        self._make_user()
        self._make_keys()
        door = self.home / "docker.sock"
        slurm_files.write_slurm(self.home, self._ports, self.user, door)
        slurm_files.write_uv(self.home, _copy_of_uv(self.home))
        slurm_files.write_sky(self.home, self._ports, self.user)
        relay = Path(__file__).with_name("socket_door.py")
        self._run("door", sys.executable, str(relay), str(door), str(self.uid), self.docker_host)
        munge = self.home / "munge"
        self._run("munged", program("munged") or "munged", "--foreground", "--force", f"--socket={munge}/socket",
                  f"--key-file={munge}/key", f"--pid-file={munge}/pid", f"--log-file={munge}/log",
                  f"--seed-file={munge}/seed")  # fmt: skip
        self._await("munged", (munge / "socket").exists)
        self._run("slurmctld", program("slurmctld") or "slurmctld", "-D", "-i")
        self._run("slurmd", program("slurmd") or "slurmd", "-D", "-N", slurm_files.NODE)
        self._run("sshd", program("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(self.home / "sshd.conf"))
        # Its executors give themselves a title, over their environment unless told not to, and outlive the server:
        # we would not know them again.
        server = {"IS_SKYPILOT_SERVER": "true", "TMPDIR": str(self.home / "tmp"), "SPT_NOENV": "1"}
        self._run("api", sys.executable, "-m", "sky.server.server", "--host=127.0.0.1", f"--port={self._ports.api}",
                  environment=self.environment() | server)  # fmt: skip
        self._await("slurmctld", self._idle)
        self._await("sshd", lambda: _answers(self._ports.ssh))
        self._await("api", self._healthy)

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            end(daemon.pid, signal.SIGTERM, STOP_SECONDS)
        end_all(self.home / "nobody", self.uid, STOP_SECONDS)
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait(STOP_SECONDS)

    def _make_user(self) -> None:
        """A password that none matches, not a locked account: sshd refuses those."""
        home = self.home / "user"
        made = subprocess.run(
            ["useradd", "-p", "*", "--no-create-home", "--home-dir", home, "--shell", "/bin/bash", self.user],
            env=os.environ | {"PATH": SEARCH_PATH}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise Unprepared(f"useradd failed: {made.stderr.strip()}")
        self.uid = pwd.getpwnam(self.user).pw_uid
        for folder in (home, self.home / "runtime"):
            folder.mkdir()
            shutil.chown(folder, self.user, self.user)

    def _make_keys(self) -> None:
        ssh = self.home / "ssh"
        ssh.mkdir()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh / name], check=True)
        shutil.copy(ssh / "user.pub", ssh / "authorized_keys")
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists on this one path
        munge = self.home / "munge"
        munge.mkdir(mode=0o755)
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        for name in ("state", "spool", "tmp"):
            (self.home / name).mkdir(mode=0o755)

    def _run(self, name: str, *command: str, environment: dict[str, str] | None = None) -> None:
        """In a session of its own: Ctrl-C is for the tests. It ends with us even if we are killed."""
        variables = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        variables |= {"PATH": SEARCH_PATH, "SLURM_CONF": str(self.home / "slurm.conf")} | (environment or {})
        with (self.home / f"{name}.out").open("wb") as log:
            self._daemons.append(
                subprocess.Popen(
                    ["setpriv", "--pdeathsig", "TERM", *command],
                    env=variables, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )
            )  # fmt: skip

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + START_SECONDS
        while not ready():
            if time.monotonic() > until or any(daemon.poll() is not None for daemon in self._daemons):
                logs = "\n".join(_tail(path) for path in sorted(self.home.glob("*.out")))
                raise Unprepared(f"the private Slurm cluster did not start, {name} is not ready:\n{logs}")
            time.sleep(0.1)

    def _idle(self) -> bool:
        try:
            return self.command("sinfo", "--noheader", "--format=%T").strip() == "idle"
        except Unprepared:
            return False

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports.api}/api/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextlib.contextmanager
def slurm(log: Path) -> Iterator[PrivateSlurm]:
    """Installs what is missing, or says what to install. Raises when anything is left in the end."""
    require(*PROGRAMS, log=log)
    if os.geteuid() != 0:
        raise Unprepared("a private Slurm cluster needs root: its daemons run jobs in the name of a user of their own")
    sweep()
    home = Path(tempfile.mkdtemp(prefix=FOLDER, dir=PLACE))
    home.chmod(0o755)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        uid = None
        try:
            # Apart, because the machine may have an engine with a bridge.
            with PrivateEngine(home / ".engine", apart=True).running() as host:
                cluster = PrivateSlurm(home, host)
                try:
                    cluster.start()
                    yield cluster
                finally:
                    uid = cluster.uid
                    cluster.stop()
        finally:
            _remove(home, uid)


def sweep() -> None:
    """Removes what clusters left that were killed with their owner. A living owner holds the lock in its folder."""
    for home in PLACE.glob(f"{FOLDER}*"):
        with _abandoned(home) as is_ours:
            if is_ours:
                _remove(home, next((account.pw_uid for account in _accounts(home)), None))


def _remove(home: Path, uid: int | None) -> None:
    """The engine first: only it can end its chambers."""
    PrivateEngine(home / ".engine", apart=True).clean()
    left = end_all(home, uid, STOP_SECONDS)
    for account in _accounts(home):
        subprocess.run(["userdel", account.pw_name], env=os.environ | {"PATH": SEARCH_PATH}, check=True)
        # SkyPilot's own fixed place for its connections.
        shutil.rmtree(PLACE / f"sky_ssh_{account.pw_name.removeprefix(USER)}", ignore_errors=True)
    shutil.rmtree(home)
    if left:
        raise Unprepared(f"the private Slurm cluster left processes: {left}")


def _accounts(home: Path) -> list[pwd.struct_passwd]:
    return [account for account in pwd.getpwall() if Path(account.pw_dir) == home / "user"]


@contextlib.contextmanager
def _abandoned(home: Path) -> Iterator[bool]:
    """Whether its owner is gone. The lock is held meanwhile: two who sweep at once do not get at the same one."""
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context((home / "lock").open("r+"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = (home / "lock").exists()  # else somebody removed it meanwhile
        except (FileNotFoundError, BlockingIOError):
            is_ours = False  # it is being made, or somebody is at it
        yield is_ours


def _copy_of_uv(home: Path) -> Path:
    """Where the cluster's user gets to it."""
    found = shutil.which("uv", path=os.pathsep.join((str(Path(sys.prefix) / "bin"), SEARCH_PATH)))
    if found is None:
        raise Unprepared("uv is missing: make setup installs it")
    target = home / "tools" / "bin" / "uv"
    target.parent.mkdir(parents=True)
    shutil.copy(found, target)
    return target


def _tail(path: Path) -> str:
    return f"{path.name}: " + "\n".join(path.read_text(errors="replace").splitlines()[-15:])


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _ports() -> Ports:
    """All free at this moment. SkyPilot takes a second port, which it reckons from the first."""
    while True:
        probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
        try:
            ports = Ports(*(int(probe.getsockname()[1]) for probe in probes))
            if not _answers(50_000 + (11 + ports.api - 46_580) % 10_000):
                return ports
        finally:
            for probe in probes:
                probe.close()
