"""Programs of others: where they are, and the packages of the distribution that bring them."""

import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

# What we start on a user's machine, and the package of Debian that brings it.
PACKAGES = {
    "apt-cache": "apt",
    "apt-get": "apt",
    "crun": "crun",
    "docker": "docker.io",
    "dockerd": "docker.io",
    "git": "git",
    "mmdebstrap": "mmdebstrap",
    "npm": "npm",
    "python3": "python3",
    "rsync": "rsync",
    "runc": "runc",
    "runsc": "runsc",
    "ssh": "openssh-client",
    "tar": "tar",
    "unshare": "util-linux",
}
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# Of our environment, for a daemon that outlives us. Ours may hold the key of a model's provider.
OF_A_DAEMON = (*_PROXIES, "LANG", "TZ")
# And for programs that fetch and build: where things are, and how the user's own docker, pip and npm are set up.
OF_A_TOOL = (
    *OF_A_DAEMON,
    *("HOME", "USER", "LOGNAME", "TMPDIR", "LC_*", "XDG_*", "NETRC", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
    *("PIP_*", "REQUESTS_CA_BUNDLE", "NPM_CONFIG_*", "npm_config_*", "NODE_EXTRA_CA_CERTS"),
)
_SIGNAL_OF_PARENTS_DEATH = 1  # of <linux/prctl.h>
SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


class Unprepared(Exception):
    """The machine lacks something; the message is one line that says what to do."""


def say(text: str) -> None:
    """What we do that takes a while; a command's own output is not mixed with it."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def last_line(text: str) -> str:
    """What a program said last, for a message of one line."""
    return next((line.strip()[-300:] for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def program(name: str) -> str | None:
    # Debian keeps a server of each version in a folder of its own, which is not on anybody's path.
    servers = map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    return shutil.which(name, path=os.pathsep.join((SEARCH_PATH, *servers)))


def child_environment(needs: Iterable[str] = OF_A_TOOL, **more: str) -> dict[str, str]:
    """What a process gets of our environment: `needs` by name (`*` stands for the rest of one), a path, and `more`.

    `sandbox/environment.py` says the same for what it starts; it cannot be imported on a bare machine.
    """
    named = {name: value for name, value in os.environ.items() if any(fnmatchcase(name, it) for it in needs)}
    return named | {"PATH": SEARCH_PATH} | more


def dying_with_us() -> Callable[[], None]:
    """For `preexec_fn`, where there is one thread: a process that nobody waits for any more is killed."""
    us, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def ask_for_it() -> None:
        prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
        if os.getppid() != us:
            os._exit(1)  # it was too late

    return ask_for_it


def require(
    *programs: str,
    log: Path,
    packages: Mapping[str, str] = PACKAGES,
    prepare: Callable[[list[str], Path], None] = lambda _wanted, _log: None,
) -> None:
    """Installs what is missing, or says what to install. `prepare` is called before the packages are installed."""
    missing = [name for name in programs if program(name) is None]
    if not missing:
        return
    wanted = list(dict.fromkeys(packages[name] for name in missing))
    if not may_install():
        raise Unprepared(
            f"missing: {', '.join(missing)}. Install it (on Debian: apt-get install {' '.join(wanted)}),"
            " or run this as root on Debian or Ubuntu"
            + (", or set DOCKER_HOST to an engine that runs." if "docker.io" in wanted else ".")
        )
    say(f"installing {', '.join(wanted)} (log: {log})")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    apt_get("update", log=log)
    if release().get("ID") == "ubuntu":
        wanted.append("debian-archive-keyring")  # the base image is Debian's
    if "docker.io" in wanted:
        # Last, so that an engine started by the installation finds runsc in place.
        wanted.remove("docker.io")
        _register_runsc()
        install(wanted, log)
        wanted = ["docker.io", *_separate_client()]
    prepare(wanted, log)
    install(wanted, log)
    if still := [name for name in missing if program(name) is None]:
        raise Unprepared(f"installed {', '.join(wanted)} but {', '.join(still)} is still missing; see {log}")


def install(packages: list[str], log: Path) -> None:
    if packages:
        apt_get("install", "--yes", "--no-install-recommends", *packages, log=log)


def apt_get(*arguments: str, log: Path) -> None:
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments]
    with log.open("ab") as output:
        code = subprocess.run(
            command,
            env=child_environment(DEBIAN_FRONTEND="noninteractive"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        ).returncode
    if code:
        raise Unprepared(f"apt-get {arguments[0]} failed with {code}; see {log}")


def _separate_client() -> list[str]:
    """Newer Debian releases ship the `docker` command in a package of its own."""
    command = ["apt-cache", "show", "docker-cli"]
    found = subprocess.run(command, env=child_environment(), capture_output=True, check=False)
    return ["docker-cli"] if found.returncode == 0 and found.stdout else []


def _register_runsc() -> None:
    """Under systemd the package starts its own engine, which must know runsc from the start."""
    settings = Path("/etc/docker/daemon.json")
    if Path("/run/systemd/system").is_dir() and not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(daemon_settings("/usr/bin/runsc"))
        say(f"wrote {settings}: it registers the runtime runsc")


def daemon_settings(runsc: str) -> str:
    # --platform=kvm hangs on some machines; without --network=none runsc fails where there is no bridge.
    runtime = {"path": runsc, "runtimeArgs": ["--platform=ptrace", "--network=none"]}
    return json.dumps({"runtimes": {"runsc": runtime}}, indent=2) + "\n"


def may_install() -> bool:
    """As root on Debian or Ubuntu."""
    found = release()
    return os.geteuid() == 0 and "debian" in (found.get("ID", ""), *found.get("ID_LIKE", "").split())


def release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
