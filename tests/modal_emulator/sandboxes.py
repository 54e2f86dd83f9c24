"""Sandboxes as containers: as permissive as Modal's, ended by their lifetime, billed from create to end."""

import asyncio
import secrets
import string
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2

from sandbox.answers import fields, needed, text
from tests.modal_emulator.engine import Engine, EngineError
from tests.modal_emulator.execs import Exec

LABEL = "blastdoor.modal-emulator"
_LETTERS = string.ascii_letters + string.digits
# Modal gives no limit of this kind; this one keeps a bomb from the machine that the tests run on.
_PIDS = 8192
_REMOVE_AGAIN_S = (0.5, 1.0, 2.0, 5.0, 10.0)
Result = api_pb2.GenericResult


def new_id(prefix: str, length: int = 22) -> str:
    return f"{prefix}-" + "".join(secrets.choice(_LETTERS) for _ in range(length))


@dataclass(frozen=True)
class Order:
    """What was asked for."""

    app_id: str
    app: str
    definition: api_pb2.Sandbox
    tags: dict[str, str]
    image: str
    files: bytes = b""
    is_v2: bool = True


@dataclass
class Sandbox:
    order: Order
    sandbox_id: str
    task_id: str
    created_at: float
    tags: dict[str, str]
    container: str = ""
    ended_at: float | None = None
    result: api_pb2.GenericResult = field(default_factory=api_pb2.GenericResult)
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    execs: dict[str, Exec] = field(default_factory=dict)
    timers: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.order.definition.name

    def bill(self) -> dict[str, Any]:
        """What an invoice would be made of."""
        wanted = self.order.definition
        resources = wanted.resources
        return {
            "sandbox_id": self.sandbox_id,
            "name": self.name,
            "app": self.order.app,
            "tags": self.tags,
            "is_v2": self.order.is_v2,
            "created_at": self.created_at,
            "ended_at": self.ended_at,
            "seconds": (self.ended_at or time.time()) - self.created_at,
            "status": Result.GenericStatus.Name(self.result.status),
            "timeout": wanted.timeout_secs,
            "cpu": [resources.milli_cpu / 1000, resources.milli_cpu_max / 1000],
            "memory_mib": [resources.memory_mb, resources.memory_mb_max],
            "gpu": resources.gpu_config.gpu_type,
            "gpus": resources.gpu_config.count,
            "network_blocked": wanted.network_access.network_access_type == api_pb2.NetworkAccess.BLOCKED,
            "image": self.order.image,
            "container": self.container,
        }


class Sandboxes:
    def __init__(self, engine: Engine, emulator: str) -> None:
        self._engine = engine
        self._emulator = emulator
        self._all: dict[str, Sandbox] = {}
        self._latest = 0.0
        self._names = asyncio.Lock()
        self._cpus = 1.0
        self.may_mount = False
        self._watch: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def ready(self) -> None:
        self._cpus = float(needed(await self._engine.json("GET", "/info"), "NCPU"))
        self._watch = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """A container that ends, or runs out of memory, ends its sandbox."""
        wanted = f'{{"label": ["{LABEL}={self._emulator}"], "event": ["die", "oom", "exec_die"]}}'
        async for event in self._engine.lines("GET", "/events", filters=wanted):
            if sandbox := self._all.get(text(event, "Actor", "Attributes", f"{LABEL}.sandbox")):
                task = asyncio.create_task(self._happened(sandbox, event))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def create(self, order: Order) -> Sandbox:
        async with self._names:
            self._check_name(order)
            sandbox = self._new(order)
        try:
            async with sandbox.starting:
                await self._start(sandbox)
        except EngineError as failure:
            await self.end(sandbox, Result.GENERIC_STATUS_INIT_FAILURE, 1, str(failure))
            raise GRPCError(Status.FAILED_PRECONDITION, f"the container did not start: {failure}") from failure
        sandbox.timers.append(asyncio.create_task(self._expire(sandbox, order.definition.timeout_secs)))
        return sandbox

    def get(self, sandbox_id: str) -> Sandbox:
        if sandbox := self._all.get(sandbox_id):
            return sandbox
        raise GRPCError(Status.NOT_FOUND, f"no sandbox {sandbox_id}")

    def of_task(self, task_id: str) -> Sandbox:
        for sandbox in self._all.values():
            if sandbox.task_id == task_id and not sandbox.result.status:
                return sandbox
        raise GRPCError(Status.NOT_FOUND, f"no task {task_id}")

    def app_id_of(self, sandbox_id: str, task_id: str) -> str:
        for sandbox in self._all.values():
            if sandbox_id == sandbox.sandbox_id or task_id == sandbox.task_id:
                return sandbox.order.app_id
        return ""

    def all(self) -> list[Sandbox]:
        return sorted(self._all.values(), key=lambda sandbox: -sandbox.created_at)

    async def end(self, sandbox: Sandbox, status: "Result.GenericStatus.ValueType", code: int, why: str = "") -> None:
        """Once: the first reason stays."""
        if sandbox.result.status:
            await sandbox.over.wait()
            return
        sandbox.result = Result(status=status, exitcode=code, exception=why)
        for timer in sandbox.timers:
            if timer is not asyncio.current_task():
                timer.cancel()
        async with sandbox.starting:  # who is ended while it starts is started, and then ended
            if sandbox.container:
                await _removed(self._engine, sandbox.container)
        for command in sandbox.execs.values():
            await command.close()
        sandbox.ended_at = time.time()
        sandbox.over.set()

    async def clear(self) -> None:
        """All are ended and forgotten; containers that nobody knows any more, too."""
        await asyncio.gather(
            *(self.end(sandbox, Result.GENERIC_STATUS_TERMINATED, 137) for sandbox in self._all.values())
        )
        self._all.clear()
        self.may_mount = False
        for container in await self.left():
            await _removed(self._engine, container)

    async def left(self) -> list[str]:
        return await containers(self._engine, self._emulator)

    def _check_name(self, order: Order) -> None:
        name = order.definition.name
        for other in self._all.values():
            same = name and other.name == name and other.order.app_id == order.app_id
            if same and not other.result.status:
                raise GRPCError(Status.ALREADY_EXISTS, f"a sandbox named {name!r} is running: {other.sandbox_id}")

    def _new(self, order: Order) -> Sandbox:
        # Lists are paged by this time, so no two are alike.
        self._latest = max(time.time(), self._latest + 1e-6)
        sandbox_id = new_id("sb", 28 if order.is_v2 else 22)
        task_id = new_id("ta") + ("V" if order.is_v2 else "")
        sandbox = Sandbox(order, sandbox_id, task_id, self._latest, dict(order.tags))
        self._all[sandbox_id] = sandbox
        return sandbox

    async def _start(self, sandbox: Sandbox) -> None:
        wanted = sandbox.order.definition
        body = {
            "Image": sandbox.order.image,
            "Entrypoint": [],
            "Cmd": list(wanted.entrypoint_args) or ["sleep", "172800"],
            "WorkingDir": wanted.workdir,
            "User": "0:0",
            "NetworkDisabled": True,  # not even the one called none, which takes half of a start
            "Labels": {LABEL: self._emulator, f"{LABEL}.sandbox": sandbox.sandbox_id},
            "HostConfig": self._limits(wanted.resources),
        }
        sandbox.container = needed(await self._engine.json("POST", "/containers/create", body), "Id")
        if sandbox.order.files:
            await self._engine.unpack(sandbox.container, sandbox.order.files)
        await self._engine.json("POST", f"/containers/{sandbox.container}/start")

    def _limits(self, resources: api_pb2.Resources) -> Mapping[str, object]:
        limits: dict[str, object] = {"NetworkMode": "none", "Init": True, "PidsLimit": _PIDS}
        if resources.memory_mb_max:
            limits |= {"Memory": resources.memory_mb_max << 20, "MemorySwap": resources.memory_mb_max << 20}
        if resources.milli_cpu_max:
            limits["NanoCpus"] = int(min(resources.milli_cpu_max / 1000, self._cpus) * 1e9)
        if self.may_mount:
            limits |= {"CapAdd": ["SYS_ADMIN"], "SecurityOpt": ["seccomp=unconfined"]}
        return limits

    async def _expire(self, sandbox: Sandbox, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.end(sandbox, Result.GENERIC_STATUS_TIMEOUT, 124)

    async def _happened(self, sandbox: Sandbox, event: Mapping[str, Any]) -> None:
        if text(event, "Action") == "oom":
            await self.end(sandbox, Result.GENERIC_STATUS_KERNEL_OOM_KILL, 137, "out of memory")
            return
        attributes = fields(event, "Actor", "Attributes")
        code = int(attributes.get("exitCode") or 0)
        if text(event, "Action") == "exec_die":
            for command in sandbox.execs.values():
                if command.docker_id == attributes.get("execID"):
                    await command.died(code)
            return
        status = Result.GENERIC_STATUS_FAILURE if code else Result.GENERIC_STATUS_SUCCESS
        await self.end(sandbox, status, code)


async def containers(engine: Engine, emulator: str) -> list[str]:
    """All that the engine itself has of an emulator, running or not."""
    filters = f'{{"label": ["{LABEL}={emulator}"]}}'
    return [needed(found, "Id") for found in await engine.json("GET", "/containers/json", all="true", filters=filters)]


async def _removed(engine: Engine, container: str) -> None:
    """A busy engine sometimes fails to kill at first."""
    for pause in (*_REMOVE_AGAIN_S, None):
        try:
            await engine.json("DELETE", f"/containers/{container}", force="true", v="true")
        except EngineError as failure:
            if failure.status in (404, 409):  # somebody removed it, or is about to
                return
            if pause is None:
                raise
            await asyncio.sleep(pause)
        else:
            return
