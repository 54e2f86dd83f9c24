"""What the machine's distribution can give: programs, and the packages that bring them.

usage: distribution.py unit|test, which installs what the tests of that name need, or says what to install
exit code: 0 when all is there, 1 when something is missing
"""

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Every program that product, scripts and tests start on this machine; a test holds the code to it.
PACKAGES = {
    "apt-cache": "apt",
    "apt-get": "apt",
    "awk": "mawk",
    "bash": "bash",
    "cp": "coreutils",
    "dash": "dash",
    "find": "findutils",
    "git": "git",
    "make": "make",
    "mkdir": "coreutils",
    "mktemp": "coreutils",
    "python3": "python3",
    "rm": "coreutils",
    "sed": "sed",
    "setpriv": "util-linux",
    "sh": "dash",
    "sleep": "coreutils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "systemctl": "systemd",
    "tar": "tar",
    "tee": "coreutils",
    "touch": "coreutils",
    "useradd": "passwd",
    "userdel": "passwd",
    "dockerd": "docker.io",
    "docker": "docker.io",
    "docker-compose": "docker-compose",
    "systemd-analyze": "systemd",
    "runsc": "runsc",
    "mmdebstrap": "mmdebstrap",
    "npm": "npm",
    "initdb": "postgresql",
    "postgres": "postgresql",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "sinfo": "slurm-client",
    "squeue": "slurm-client",
    "munged": "munge",
    "sshd": "openssh-server",
    "rsync": "rsync",
    "curl": "curl",
}
# What tests need before the first of them runs. The engine, its client and the cluster have set-ups of their own.
UNIT = ("bash", "git", "make", "tar", "ssh", "rsync", "docker-compose", "systemd-analyze")
NEEDED = {"unit": UNIT, "test": (*UNIT, "initdb", "postgres")}
# What these packages would run, by the name of its service.
SERVICES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munge": "munge", "openssh-server": "ssh", "rsync": "rsync"}
POLICY = Path("/usr/sbin/policy-rc.d")
CLUSTERS = Path("/etc/postgresql-common/createcluster.conf")
SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


class Unprepared(Exception):
    """The machine lacks something; the message is one line that says what to do."""


def program(name: str) -> str | None:
    # Debian keeps a server of each version in a folder of its own, which is not on anybody's path.
    servers = map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    return shutil.which(name, path=os.pathsep.join((SEARCH_PATH, *servers)))


def require(*programs: str, log: Path) -> None:
    """Installs what is missing, or says what to install."""
    missing = [name for name in programs if program(name) is None]
    if not missing:
        return
    packages = list(dict.fromkeys(PACKAGES[name] for name in missing))
    if not _is_debian() or os.geteuid() != 0:
        raise Unprepared(
            f"missing: {', '.join(missing)}. Install it (on Debian: apt-get install {' '.join(packages)}),"
            " or run this as root on Debian or Ubuntu"
            + (", or set DOCKER_HOST to an engine that runs." if "docker.io" in packages else ".")
        )
    print(f"installing {', '.join(packages)} (log: {log})", flush=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    _apt_get("update", log=log)
    if _release().get("ID") == "ubuntu":
        packages.append("debian-archive-keyring")  # the base image is Debian's
    if "docker.io" in packages:
        # Last, so that an engine started by the installation finds runsc in place.
        packages.remove("docker.io")
        _register_runsc()
        _install(packages, log)
        packages = ["docker.io", *_separate_client()]
    if "postgresql" in packages:
        _make_no_cluster(log)
    with _no_services(packages):
        _install(packages, log)
    if still := [name for name in missing if program(name) is None]:
        raise Unprepared(f"installed {', '.join(packages)} but {', '.join(still)} is still missing; see {log}")


def _install(packages: list[str], log: Path) -> None:
    if packages:
        _apt_get("install", "--yes", "--no-install-recommends", *packages, log=log)


def _apt_get(*arguments: str, log: Path) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": SEARCH_PATH}
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments]
    with log.open("ab") as output:
        code = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        ).returncode
    if code:
        raise Unprepared(f"apt-get {arguments[0]} failed with {code}; see {log}")


def _make_no_cluster(log: Path) -> None:
    """The server's package would make a database of its own and start it; nobody asked for one."""
    if not CLUSTERS.exists():
        _install(["postgresql-common"], log)
        with CLUSTERS.open("a") as file:
            file.write("\ncreate_main_cluster = false\n")


@contextlib.contextmanager
def _no_services(packages: list[str]) -> Iterator[None]:
    """Some packages would start a daemon of the machine's own, now and at each boot; nobody asked for one."""
    services = sorted({SERVICES[name] for name in packages if name in SERVICES})
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


def _separate_client() -> list[str]:
    """Newer Debian releases ship the `docker` command in a package of its own."""
    found = subprocess.run(["apt-cache", "show", "docker-cli"], capture_output=True, check=False)
    return ["docker-cli"] if found.returncode == 0 and found.stdout else []


def _register_runsc() -> None:
    """Under systemd the package starts its own engine, which must know runsc from the start."""
    settings = Path("/etc/docker/daemon.json")
    if Path("/run/systemd/system").is_dir() and not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(daemon_settings("/usr/bin/runsc"))
        print(f"wrote {settings}: it registers the runtime runsc", flush=True)


def daemon_settings(runsc: str) -> str:
    # --platform=kvm hangs on some machines; without --network=none runsc fails where there is no bridge.
    runtime = {"path": runsc, "runtimeArgs": ["--platform=ptrace", "--network=none"]}
    return json.dumps({"runtimes": {"runsc": runtime}}, indent=2) + "\n"


def _is_debian() -> bool:
    release = _release()
    return "debian" in (release.get("ID", ""), *release.get("ID_LIKE", "").split())


def _release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def main(arguments: list[str]) -> int:
    try:
        require(*NEEDED[arguments[0]], log=Path(sys.prefix, "apt.log"))
    except Unprepared as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
