"""Runs a command with a Docker engine: one that is named (settings, DOCKER_HOST), the machine's, or a private one."""

import os
import signal
import subprocess
import tomllib
from pathlib import Path

from orchestrator.machine.private_engine import PrivateEngine, answers
from orchestrator.machine.programs import Unprepared, child_environment, program, require, say

DEFAULT_SOCKET = "/var/run/docker.sock"
FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
FROM_TERMINAL = 128  # si_code SI_KERNEL: the terminal told the whole group, the command included
PROGRAMS = ("dockerd", "docker", "runsc", "mmdebstrap")


def run_with_engine(private: PrivateEngine, command: list[str]) -> int:
    """The command's exit code. Raises Unprepared where no engine can be had."""
    for number in FORWARDED:
        signal.signal(number, _leave)
    if host := found_engine():
        return _run(command, host)
    if host := _prepared(private):
        return _run(command, host)
    with private.running() as host:
        return _run(command, host)


def start_engine(private: PrivateEngine) -> str:
    """The address of an engine that stays: one that is there, or the private one. Raises Unprepared."""
    if host := found_engine() or _prepared(private):
        return host
    private.keep()
    return private.host


def found_engine() -> str | None:
    """The engine that is named, or that of the machine. Raises Unprepared for a named one that does not answer."""
    if host := _named():
        if not _reachable(host):
            raise Unprepared(f"no engine answers at {host}: start it, or take it out of DOCKER_HOST and the settings")
        return host
    return f"unix://{DEFAULT_SOCKET}" if _default_answers() else None


def _prepared(private: PrivateEngine) -> str | None:
    """All that a private engine needs; an address where the installation brought an engine of the machine."""
    require(*PROGRAMS, log=private.home / "apt.log")
    # A second daemon with --bridge none would delete the bridge of one that the installation started.
    if _default_answers():
        return f"unix://{DEFAULT_SOCKET}"
    if not is_root():
        raise Unprepared("no engine answers: start docker, or run this as root, or set DOCKER_HOST")
    return None


def is_root() -> bool:
    return os.geteuid() == 0


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
    command = [client, "--host", host, "version"]
    try:
        return (
            subprocess.run(command, env=child_environment(), capture_output=True, timeout=30, check=False).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


def _run(command: list[str], host: str) -> int:
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
        say(f"blastdoor: {command[0]}: {error.strerror}")
        return 126 if isinstance(error, PermissionError) else 127
    while process.poll() is None:
        received = signal.sigwaitinfo(FORWARDED | {signal.SIGCHLD})
        if received.si_signo in FORWARDED and received.si_code != FROM_TERMINAL:
            process.send_signal(received.si_signo)
    # The mask stays: nothing may stop us from stopping the daemon, which is bounded.
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
