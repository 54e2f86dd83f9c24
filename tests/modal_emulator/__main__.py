"""The emulator in a process of its own, so that tests can kill what talks to it and measure what it costs.

The first line on stdout says where it listens. Each further line on stdin is a command, answered by a line; at the
end of stdin it removes its containers and goes, so it does not outlive the test that started it.
"""

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

from grpclib import Status
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from tests.modal_emulator.control_plane import ControlPlane
from tests.modal_emulator.engine import Engine
from tests.modal_emulator.faults import Fault, Faults
from tests.modal_emulator.images import Files, Images
from tests.modal_emulator.listener import Listener
from tests.modal_emulator.router import Router
from tests.modal_emulator.sandboxes import Sandboxes, new_id
from tests.modal_emulator.service import Journal, serve


class Emulator:
    """Commands are its public coroutines, called by name with JSON."""

    def __init__(self, engine: Engine) -> None:
        name = new_id("emulator")
        files, faults = Files(), Faults()
        self._journal = Journal()
        self._faults = faults
        self._sandboxes = Sandboxes(engine, name)
        self._images = Images(engine, files, name)
        self._control = ControlPlane(self._sandboxes, self._images, files, faults, self._journal)
        self._router = Router(engine, self._sandboxes, self._control)
        self._servers = {
            "control": Listener(serve(ModalClientBase, self._control)),
            "router": Listener(serve(TaskCommandRouterBase, self._router)),
        }

    async def start(self) -> dict[str, str]:
        await self._images.ready()
        await self._sandboxes.ready()
        for server in self._servers.values():
            await server.listen()
        self._control.router_url = self._servers["router"].url
        token_id, token_secret = self._control.token
        urls = {"url": self._servers["control"].url, "router": self._servers["router"].url}
        return {**urls, "token_id": token_id, "token_secret": token_secret}

    async def fail(self, rpc: str, when: str, kind: str, status: str, times: int, seconds: float, app: str) -> int:
        if rpc not in ModalClientBase.__abstractmethods__ | TaskCommandRouterBase.__abstractmethods__:
            raise ValueError(f"Modal has no RPC {rpc!r}")
        return self._faults.add(Fault(rpc, when, kind, Status[status], times, seconds, app))  # type: ignore[arg-type]

    async def reached(self, fault: int, seconds: float) -> bool:
        struck = self._faults.get(fault).reached
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await struck.wait()
        return struck.is_set()

    async def struck(self) -> int:
        return self._faults.struck

    async def release(self, fault: int) -> None:
        self._faults.get(fault).released.set()

    async def remove(self, fault: int) -> None:
        self._faults.remove(fault)

    async def heal(self) -> None:
        """Everything works again."""
        self._faults.clear()
        self._router.speaking.set()
        await self.listen()

    async def silence(self) -> None:
        self._router.speaking.clear()

    async def cut(self, which: list[str]) -> None:
        for name in which:
            await self._servers[name].cut()

    async def listen(self) -> None:
        for server in self._servers.values():
            await server.listen()

    async def route_by(self, url: str) -> None:
        """Whoever asks for a worker is sent there; without one, to the worker itself."""
        self._control.router_url = url or self._servers["router"].url

    async def sandboxes(self) -> list[dict[str, Any]]:
        return [sandbox.bill() for sandbox in self._sandboxes.all()]

    async def containers(self) -> list[str]:
        return await self._sandboxes.left()

    async def calls(self) -> list[str]:
        return self._journal.calls

    async def blemishes(self) -> dict[str, list[str]]:
        return {"unimplemented": self._journal.unimplemented, "broken": self._journal.broken}

    async def look_for(self, needles: list[str]) -> None:
        self._journal.sought = [needle.encode() for needle in needles]

    async def found(self) -> list[str]:
        return sorted(needle.decode() for needle in self._journal.found)

    async def allow_mounts(self) -> None:
        self._sandboxes.may_mount = True

    async def forget(self) -> None:
        """A new test begins: nothing runs, nothing was called, nothing is broken."""
        await self.heal()
        await self.route_by("")
        await self._sandboxes.clear()
        await self._images.clear()
        self._journal.clear()


async def _command(emulator: Emulator, line: str) -> str:
    try:
        words = json.loads(line)
        answer = await getattr(emulator, words.pop("do"))(**words)
        return json.dumps({"answer": answer})
    except Exception as failure:  # noqa: BLE001 told to the caller, who raises it
        return json.dumps({"failure": f"{type(failure).__name__}: {failure}"})


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main() -> None:
    emulator = Emulator(Engine(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")))
    try:
        _say(json.dumps(await emulator.start()))
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            _say(await _command(emulator, line.decode()))
    finally:
        await emulator.forget()


asyncio.run(main())
