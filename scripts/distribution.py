"""What tests need of this machine's distribution: programs, and the packages that bring them.

usage: distribution.py unit|test, which installs what the tests of that name need, or says what to install
exit code: 0 when all is there, 1 when something is missing

It runs before anything is installed, with the machine's own Python.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from orchestrator.machine import programs  # noqa: E402  the path above comes first
from orchestrator.machine.programs import SEARCH_PATH, Unprepared, program  # noqa: E402  the path above comes first

__all__ = ["SEARCH_PATH", "Unprepared", "program", "require"]

# Every program that product, scripts and tests start on this machine; a test holds the code to it.
PACKAGES = programs.PACKAGES | {
    "awk": "mawk",
    "bash": "bash",
    "bwrap": "bubblewrap",
    "cat": "coreutils",
    "chromium": "chromium",
    "cp": "coreutils",
    "dash": "dash",
    "dpkg-deb": "dpkg",
    "find": "findutils",
    "ip": "iproute2",
    "make": "make",
    "mount": "mount",
    "mkdir": "coreutils",
    "mktemp": "coreutils",
    "node": "nodejs",
    "newgidmap": "uidmap",
    "newuidmap": "uidmap",
    "nvidia-smi": "nvidia-smi",
    "rm": "coreutils",
    "sed": "sed",
    "setpriv": "util-linux",
    "sh": "dash",
    "sleep": "coreutils",
    "ssh-keygen": "openssh-client",
    "systemctl": "systemd",
    "tee": "coreutils",
    "touch": "coreutils",
    "unshare": "util-linux",
    "useradd": "passwd",
    "userdel": "passwd",
    "docker-compose": "docker-compose",
    "systemd-analyze": "systemd",
    "initdb": "postgresql",
    "postgres": "postgresql",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "sinfo": "slurm-client",
    "squeue": "slurm-client",
    "munged": "munge",
    "sshd": "openssh-server",
    "curl": "curl",
}
# What tests need before the first of them runs. The engine, its client and the cluster have set-ups of their own.
UNIT = ("bash", "git", "make", "tar", "ssh", "rsync", "docker-compose", "systemd-analyze")
NEEDED = {"unit": UNIT, "test": (*UNIT, "chromium", "crun", "initdb", "newuidmap", "node", "postgres", "runc", "runsc")}
# What these packages would run, by the name of its service.
SERVICES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munge": "munge", "openssh-server": "ssh", "rsync": "rsync"}
LOG = REPOSITORY / ".engine" / "apt.log"
POLICY = Path("/usr/sbin/policy-rc.d")
CLUSTERS = Path("/etc/postgresql-common/createcluster.conf")


def require(*names: str, log: Path) -> None:
    """Installs what is missing, or says what to install; no service of the machine's own is started by it."""
    with _no_services([PACKAGES[name] for name in names if programs.program(name) is None]):
        programs.require(*names, log=log, packages=PACKAGES, prepare=_make_no_cluster)


def _make_no_cluster(wanted: list[str], log: Path) -> None:
    """The server's package would make a database of its own and start it; nobody asked for one."""
    if "postgresql" in wanted and not CLUSTERS.exists():
        programs.install(["postgresql-common"], log)
        with CLUSTERS.open("a") as file:
            file.write("\ncreate_main_cluster = false\n")


@contextlib.contextmanager
def _no_services(packages: list[str]) -> Iterator[None]:
    """Some packages would start a daemon of the machine's own, now and at each boot; nobody asked for one."""
    services = sorted({SERVICES[name] for name in packages if name in SERVICES} if programs.may_install() else ())
    ours = bool(services) and not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()
        if services and Path("/run/systemd/system").is_dir():
            subprocess.run(["systemctl", "--quiet", "disable", *services], check=False)


def main(arguments: list[str]) -> int:
    LOG.parent.mkdir(exist_ok=True)
    try:
        require(*NEEDED[arguments[0]], log=LOG)
    except Unprepared as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
