"""Runs a command with a Docker engine: one that is named (settings, DOCKER_HOST), the machine's, or a private one.

usage: with-engine COMMAND...    exit code: the command's; 3 without an engine
       with-engine --clean       removes the private engine and its data
"""

import contextlib
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from distribution import Unprepared, program, require
from private_engine import PrivateEngine, answers

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_SOCKET = "/var/run/docker.sock"
FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
FROM_TERMINAL = 128  # si_code SI_KERNEL: the terminal told the whole group, the command included
NO_ENGINE = 3


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """The address of an engine that answers."""
    if host := _named():
        if not _reachable(host):
            raise Unprepared(f"no engine answers at {host}: start it, or take it out of DOCKER_HOST and the settings")
        yield host
    elif _default_answers():
        yield f"unix://{DEFAULT_SOCKET}"
    else:
        private = PrivateEngine(REPOSITORY)
        require("dockerd", "docker", "runsc", "mmdebstrap", log=private.home / "apt.log")
        # A second daemon with --bridge none would delete the bridge of one that the installation started.
        if _default_answers():
            yield f"unix://{DEFAULT_SOCKET}"
        elif os.geteuid() != 0:
            raise Unprepared("no engine answers: start docker, or run this as root, or set DOCKER_HOST")
        else:
            with private.running() as host:
                yield host


def _named() -> str | None:
    """What the user named, in the order in which the command itself looks."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    settings = Path(base) / "blastdoor" / "settings.toml"
    try:
        from_file = tomllib.loads(settings.read_text()).get("docker_host")
    except (OSError, ValueError):
        from_file = None  # missing, or broken: the command itself says so
    return os.environ.get("BLASTDOOR_DOCKER_HOST") or from_file or os.environ.get("DOCKER_HOST")


def _default_answers() -> bool:
    try:
        return answers(DEFAULT_SOCKET)
    except PermissionError:
        raise Unprepared(f"{DEFAULT_SOCKET} refuses this user: join the group docker, or run this as root") from None


def _reachable(host: str) -> bool:
    if host.startswith("unix://"):
        try:
            return answers(host.removeprefix("unix://"))
        except PermissionError:
            raise Unprepared(f"DOCKER_HOST={host} refuses this user") from None
    client = program("docker")
    if client is None:
        raise Unprepared("a DOCKER_HOST that is no unix socket needs the docker command: install it")
    try:
        return subprocess.run([client, "version"], capture_output=True, timeout=30, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def run(command: list[str], host: str) -> int:
    """The command's exit code. Signals to us are passed on; we outlive the command to tidy up."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    try:
        process = subprocess.Popen(
            command,
            env=os.environ | {"DOCKER_HOST": host, "BLASTDOOR_DOCKER_HOST": host},
            # Safe here: there is one thread, and the command must not start with signals blocked.
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
        )
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        print(f"with-engine: {command[0]}: {error.strerror}", file=sys.stderr)
        return 126 if isinstance(error, PermissionError) else 127
    while process.poll() is None:
        received = signal.sigwaitinfo(FORWARDED | {signal.SIGCHLD})
        if received.si_signo in FORWARDED and received.si_code != FROM_TERMINAL:
            process.send_signal(received.si_signo)
    # The mask stays: nothing may stop us from stopping the daemon, which is bounded.
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    for number in FORWARDED:
        signal.signal(number, _leave)
    try:
        if arguments == ["--clean"]:
            PrivateEngine(REPOSITORY).clean()
            return 0
        if not arguments or arguments[0].startswith("-"):
            print(__doc__, file=sys.stderr)
            return 2
        with engine() as host:
            return run(arguments, host)
    except Unprepared as problem:
        print(f"with-engine: {problem}", file=sys.stderr)
        return NO_ENGINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
