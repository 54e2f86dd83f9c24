"""A Docker engine for sandboxes of others, which want a bridge, published ports and Compose.

It lies in a folder, and its bridge in a network of its own: no packet leaves that, and no rule of the machine is
touched.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.their_packages import install_for
from orchestrator.machine.private_engine import answers
from orchestrator.machine.programs import OF_A_DAEMON, SEARCH_PATH, Unprepared, child_environment, last_line
from tests.newer_engine import said, unpack_engine

START_SECONDS = 60
STOP_SECONDS = 60
SERVER_IMAGE = "blastdoor-bench-swerex:latest"
# Packages in a folder that only the server looks at: for programs in the sandbox, the image is as it was.
SERVER = """#!/usr/bin/env python3
import sys
sys.path.insert(0, "/opt/swerex")
from swerex.server import main
main()
"""
DOCKERFILE = """FROM {image}
COPY packages /opt/swerex
COPY swerex-remote /usr/local/bin/
RUN python3 -m compileall -q /opt/swerex && swerex-remote --version
"""


@dataclass(frozen=True)
class TheirEngine:
    """`environment` is for its clients, `within` the beginning of a command that reaches published ports."""

    host: str
    environment: dict[str, str]
    within: tuple[str, ...]

    def said(self, why: str, *words: str) -> str:
        return said(why, ["docker", *words], environment=self.environment)

    def take(self, image: str) -> None:
        """From the engine that we work with."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saving:
            loaded = subprocess.run(
                ["docker", "load", "--quiet"],
                env=child_environment(**self.environment),
                stdin=saving.stdout,
                stdout=subprocess.DEVNULL,
                check=False,
            )
        if loaded.returncode or saving.returncode:
            raise Unprepared(f"{image} was not loaded")

    def add_server(self, image: str, folder: Path) -> str:
        """The same image with SWE-ReX's server in it."""
        asked = [
            "run",
            "--rm",
            "--network=none",
            image,
            "python3",
            "-c",
            "import sys; print('%d.%d' % sys.version_info[:2])",
        ]
        version = self.said(f"{image} does not run", *asked).strip()
        folder.mkdir()
        install_for(version, "swerex", folder / "packages")
        (folder / "swerex-remote").write_text(SERVER)
        (folder / "swerex-remote").chmod(0o755)
        (folder / "Dockerfile").write_text(DOCKERFILE.format(image=image))
        self.said("no image with SWE-ReX", "build", "--quiet", "--network=none", "--tag", SERVER_IMAGE, str(folder))
        return SERVER_IMAGE


@contextlib.contextmanager
def their_engine(folder: Path) -> Iterator[TheirEngine]:
    """Raises Unprepared where it cannot be had."""
    if os.geteuid():
        raise Unprepared("an engine of their own needs root")
    folder.mkdir(mode=0o700)
    root = unpack_engine(folder)
    settings = folder / "daemon.json"
    settings.write_text("{}\n")
    host = f"unix://{folder}/sock"
    path = os.pathsep.join([*(str(root / name) for name in ("usr/sbin", "usr/bin")), SEARCH_PATH])
    with (folder / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(
            # Its mounts are its own, too, and go with it.
            ["unshare", "--net", "--mount", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *_daemon(root, folder)],
            # As our own private engine has it, so that neither is quicker by it.
            env=child_environment(OF_A_DAEMON, PATH=path, GOGC="1000"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(daemon, folder)
        yield TheirEngine(host, _environment(folder, root, host, path), ("nsenter", f"--net=/proc/{daemon.pid}/ns/net"))
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(folder)


def _daemon(root: Path, folder: Path) -> list[str]:
    name = f"blastdoor-bench-{os.getpid()}"
    return [
        *(str(root / "usr/sbin/dockerd"), "--config-file", str(folder / "daemon.json")),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "pid"), "--host", f"unix://{folder}/sock"),
        # A containerd that is there already is shared with another engine: keep to a name of our own.
        *("--containerd-namespace", name, "--containerd-plugins-namespace", f"{name}-plugins"),
        *("--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"),
        *("--userland-proxy-path", str(root / "usr/sbin/docker-proxy")),
    ]


def _await(daemon: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(str(folder / "sock"), timeout=1):
        if daemon.poll() is not None or time.monotonic() > deadline:
            last = last_line((folder / "dockerd.log").read_text(errors="replace"))
            raise Unprepared(f"an engine of their own did not start ({last})")
        time.sleep(0.05)


def _environment(folder: Path, root: Path, host: str, path: str) -> dict[str, str]:
    """Nothing of the user's own settings, and no proxy between a client and its sandbox."""
    (folder / "client").mkdir()
    plugins = {"cliPluginsExtraDirs": [str(it) for it in root.glob("usr/*/docker/cli-plugins")]}
    (folder / "client" / "config.json").write_text(json.dumps(plugins))
    (folder / "home").mkdir()
    home = str(folder / "home")
    named = {"HOME": home, "XDG_DATA_HOME": home, "TMPDIR": home, "DOCKER_HOST": host, "PATH": path}
    return named | {"DOCKER_CONFIG": str(folder / "client"), "DOCKER_BUILDKIT": "0", "NO_PROXY": "*", "no_proxy": "*"}
