"""Runs a coding agent in a chamber without network. Standard library only, Python 3.9 up.

It listens on loopback and looks like the Messages API: what the agent asks goes to the orchestrator as frames over this
chamber's own stdin and stdout, and the answer comes back the same way, piece by piece. `blastdoor tune` and
`blastdoor submit` take the same way. Nothing here is trusted by anybody: it shares its rights with the agent.

The orchestrator asks, over and over: [seconds, [message…]]. The answer is a list of messages, at once if there is one,
else when the seconds are over. Down:

    ["head", id, status, [[name, value]…]]   the answer to a request begins; then
    ["body", id, bytes]  ["end", id]         its pieces, and its end; or
    ["cut", id]                              it breaks off
    ["told", id, code, text]                 the answer to a tool
    ["finish"]                               end the agent, and hand over the files

Up:

    ["request", id, method, path, [[name, value]…], bytes]
    ["gone", id]                             the one who asked went away
    ["tool", id, name, said, files, deleted] with all files that differ from those that were delivered
    ["exited", code, files, deleted]
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path, PurePosixPath
from typing import Any

from blastdoor_forwarder import Handler, Post, Server
from blastdoor_frames import Ended, Frames
from blastdoor_values import decode, encode

HERE = Path(__file__).resolve().parent
GRACE_S = 5.0


class Workspace:
    """The files as they were delivered, so that only what differs travels back."""

    def __init__(self, folder: Path, editable: set[str], caches: set[str]) -> None:
        """`caches` are names of folders that tools fill: looked into only where they were delivered."""
        self._folder = folder
        self._caches: set[str] = set()
        self._was = {name: _mark(path) for name, path in self._walk()}
        self._delivered = {str(above) for name in self._was for above in PurePosixPath(name).parents}
        for name, path in self._walk():
            if name not in editable:
                # A hint to well-meaning agents; what counts is decided when the change is applied.
                path.chmod(0o555 if os.access(path, os.X_OK) else 0o444)
        self._caches = caches

    def _walk(self) -> Any:
        for folder, folders, names in os.walk(self._folder):
            folders[:] = sorted(it for it in folders if it not in self._caches or self._was_there(Path(folder, it)))
            for name in sorted(names):
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(path.lstat().st_mode):
                        yield path.relative_to(self._folder).as_posix(), path

    def _was_there(self, folder: Path) -> bool:
        return folder.relative_to(self._folder).as_posix() in self._delivered

    def changed(self, file_cap: int, byte_cap: int) -> tuple[dict[str, bytes], list[str]]:
        """Files that differ, and the names of those that are gone. What is over a cap is cut: the rest says enough."""
        files: dict[str, bytes] = {}
        there, size = set(), 0
        for name, path in self._walk():
            there.add(name)
            with contextlib.suppress(OSError):
                if len(files) >= file_cap or size + path.stat().st_size > byte_cap:
                    continue
                data = path.read_bytes()
                if self._was.get(name) != hashlib.sha256(data).digest() and _is_text(name):
                    files[name] = data
                    size += len(data)
        return files, sorted(set(self._was) - there)


def _mark(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class Agent:
    """The agent's own process, and what it says, up to a cap."""

    def __init__(self, plan: dict[str, Any], port: int) -> None:
        bin_folder = HERE / "bin"
        environment = {
            **os.environ,
            **plan["env"],
            "PATH": f"{bin_folder}:{os.environ.get('PATH', os.defpath)}",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            "ANTHROPIC_API_BASE": f"http://127.0.0.1:{port}",
            "BLASTDOOR_PORT": str(port),
        }
        self._process = subprocess.Popen(
            plan["command"],
            cwd=plan["workspace"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._copying = threading.Thread(target=self._copy, args=(plan["log_bytes"],), daemon=True)
        self._copying.start()

    def _copy(self, cap: int) -> None:
        left, output = cap, self._process.stdout
        while output and (piece := os.read(output.fileno(), 65_536)):
            if left > 0:
                os.write(2, piece[:left])
                left -= len(piece)
                if left <= 0:
                    os.write(2, b"\nblastdoor: the agent says more than is kept; the rest is left out\n")

    def wait(self) -> int:
        code = self._process.wait()
        self._copying.join(timeout=1)
        return code

    def end(self) -> None:
        """Its whole group: first asked, then made to."""
        for order, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, order)
            until = time.monotonic() + seconds
            while self._process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            if self._process.poll() is not None:
                return


def _tool(post: Post, workspace: Workspace, caps: list[int]) -> Any:
    def call(name: str, said: str) -> tuple[int, str]:
        number, answers = post.open()
        try:
            post.send(["tool", number, name, said, *workspace.changed(*caps)])
            message = answers.get()
            return message[2], message[3]
        finally:
            post.close(number)

    return call


def _say_exit(agent: Agent, post: Post, workspace: Workspace, caps: list[int]) -> None:
    post.send(["exited", agent.wait(), *workspace.changed(*caps)])


def main() -> None:
    frames, post = Frames(), Post()
    plan = json.loads((HERE / "plan.json").read_text("utf-8"))
    workspace = Workspace(Path(plan["workspace"]), set(plan["editable"]), set(plan["caches"]))
    Handler.body_bytes = plan["body_bytes"]
    Handler.post, Handler.tools = post, staticmethod(_tool(post, workspace, plan["caps"]))
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        agent = Agent(plan, server.server_address[1])
    except OSError as error:
        sys.stderr.write(f"blastdoor: {plan['command'][0]} cannot be started: {error.strerror}\n")
        post.send(["exited", 127, {}, []])
        agent = None
    else:
        threading.Thread(target=_say_exit, args=(agent, post, workspace, plan["caps"]), daemon=True).start()
    while True:
        try:
            nonce, request = frames.receive()
        except Ended:
            return
        seconds, messages = decode(request)
        for message in messages:
            if message[0] != "finish":
                post.deliver(message)
            elif agent:
                threading.Thread(target=agent.end, daemon=True).start()
        frames.send(nonce, encode(post.collect(seconds)))


if __name__ == "__main__":
    main()
