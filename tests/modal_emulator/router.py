"""The worker's side: commands in a sandbox, their streams and their ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpclib import GRPCError, Status
from modal_proto import task_command_router_pb2 as router_pb2

from tests.modal_emulator.control_plane import ControlPlane
from tests.modal_emulator.engine import Engine
from tests.modal_emulator.execs import Exec
from tests.modal_emulator.faults import Faults
from tests.modal_emulator.sandboxes import Sandboxes
from tests.modal_emulator.service import Journal, Metadata


class Router:
    def __init__(self, engine: Engine, sandboxes: Sandboxes, control: ControlPlane) -> None:
        self.faults: Faults = control.faults
        self.journal: Journal = control.journal
        self.speaking = asyncio.Event()
        self.speaking.set()
        self._engine = engine
        self._sandboxes = sandboxes
        self._control = control

    def admit(self, rpc: str, metadata: Metadata) -> None:
        if not str(metadata.get("authorization", "")).startswith("Bearer "):
            raise GRPCError(Status.UNAUTHENTICATED, "no token for the worker")

    def app_of(self, request: Any) -> str:
        return self._control.app_of(request)

    async def TaskExecStart(self, request: router_pb2.TaskExecStartRequest) -> router_pb2.TaskExecStartResponse:
        """Once for an exec id: a retry finds it running."""
        sandbox = self._sandboxes.of_task(request.task_id)
        if request.exec_id not in sandbox.execs:
            command = Exec(self._engine, sandbox.container, request)
            sandbox.execs[request.exec_id] = command
            try:
                await command.start()
            except GRPCError:
                del sandbox.execs[request.exec_id]
                raise
        return router_pb2.TaskExecStartResponse()

    async def TaskExecStdioRead(
        self, request: router_pb2.TaskExecStdioReadRequest
    ) -> AsyncIterator[router_pb2.TaskExecStdioReadResponse]:
        command = self._command(request.task_id, request.exec_id)
        is_stdout = request.file_descriptor == router_pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT
        stream = command.stdout if is_stdout else command.stderr
        async for data in stream.read(request.offset):
            await self._heard()
            yield router_pb2.TaskExecStdioReadResponse(data=data)
        await self._heard()
        self._command(request.task_id, request.exec_id)

    async def TaskExecStdinWrite(
        self, request: router_pb2.TaskExecStdinWriteRequest
    ) -> router_pb2.TaskExecStdinWriteResponse:
        await self._heard()
        await self._command(request.task_id, request.exec_id).write(request.offset, request.data, request.eof)
        return router_pb2.TaskExecStdinWriteResponse()

    async def TaskExecWait(self, request: router_pb2.TaskExecWaitRequest) -> router_pb2.TaskExecWaitResponse:
        command = self._command(request.task_id, request.exec_id)
        await command.over.wait()
        await self._heard()
        self._command(request.task_id, request.exec_id)
        return router_pb2.TaskExecWaitResponse(code=command.code or 0)

    def _command(self, task_id: str, exec_id: str) -> Exec:
        """With its sandbox, a command is gone too: what it did not tell in time is lost."""
        found = self._sandboxes.of_task(task_id).execs.get(exec_id)
        if found is None:
            raise GRPCError(Status.NOT_FOUND, f"no command {exec_id}")
        return found

    async def _heard(self) -> None:
        await self.speaking.wait()
