"""Modal's control plane: tokens, apps, images, sandboxes."""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Iterable
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.modal_emulator.faults import Faults
from tests.modal_emulator.images import BUILDER_VERSION, Files, Images
from tests.modal_emulator.sandboxes import Order, Result, Sandbox, Sandboxes, new_id
from tests.modal_emulator.service import Journal, Metadata

PAGE = 10
_TOKEN_S = 1200


def jwt(**claims: object) -> str:
    """Signed by nobody: the SDK reads its end and sends it back."""
    parts = [{"alg": "none"}, {"exp": int(time.time()) + _TOKEN_S, **claims}]
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts), "x"])


class ControlPlane:
    def __init__(self, sandboxes: Sandboxes, images: Images, files: Files, faults: Faults, journal: Journal) -> None:
        self.faults = faults
        self.journal = journal
        self.token = (new_id("ak"), new_id("as"))
        self.router_url = ""
        self._sandboxes = sandboxes
        self._images = images
        self._files = files
        self._apps: dict[tuple[str, str], str] = {}

    def admit(self, rpc: str, metadata: Metadata) -> None:
        given = (metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret"))
        if given != self.token:
            raise GRPCError(Status.UNAUTHENTICATED, "Token ID or secret is malformed or unknown")

    def app_of(self, request: Any) -> str:
        if name := getattr(request, "app_name", ""):
            return str(name)
        app_id = getattr(request, "app_id", "")
        if not app_id:
            app_id = self._sandboxes.app_id_of(getattr(request, "sandbox_id", ""), getattr(request, "task_id", ""))
        return next((name for (_, name), known in self._apps.items() if known == app_id), "")

    async def ClientHello(self, request: Empty) -> api_pb2.ClientHelloResponse:
        return api_pb2.ClientHelloResponse(image_builder_version=BUILDER_VERSION)

    async def AuthTokenGet(self, request: api_pb2.AuthTokenGetRequest) -> api_pb2.AuthTokenGetResponse:
        return api_pb2.AuthTokenGetResponse(token=jwt())

    async def EnvironmentGetOrCreate(
        self, request: api_pb2.EnvironmentGetOrCreateRequest
    ) -> api_pb2.EnvironmentGetOrCreateResponse:
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER_VERSION)
        metadata = api_pb2.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-main", metadata=metadata)

    async def AppGetOrCreate(self, request: api_pb2.AppGetOrCreateRequest) -> api_pb2.AppGetOrCreateResponse:
        key = (request.environment_name, request.app_name)
        if key not in self._apps:
            if request.object_creation_type != api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING:
                raise GRPCError(Status.NOT_FOUND, f"App {request.app_name!r} not found")
            self._apps[key] = new_id("ap")
        return api_pb2.AppGetOrCreateResponse(app_id=self._apps[key])

    async def MountBatchedCheckExistence(
        self, request: api_pb2.MountBatchedCheckExistenceRequest
    ) -> api_pb2.MountBatchedCheckExistenceResponse:
        missing = self._files.missing(list(request.sha256_hex_hashes))
        return api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    async def MountPutFile(self, request: api_pb2.MountPutFileRequest) -> api_pb2.MountPutFileResponse:
        self._files.put(request.sha256_hex, request.data)
        return api_pb2.MountPutFileResponse(exists=True)

    async def MountGetOrCreate(self, request: api_pb2.MountGetOrCreateRequest) -> api_pb2.MountGetOrCreateResponse:
        return api_pb2.MountGetOrCreateResponse(mount_id=self._files.mount(list(request.files)))

    async def ImageGetOrCreate(self, request: api_pb2.ImageGetOrCreateRequest) -> api_pb2.ImageGetOrCreateResponse:
        image_id, result = await self._images.build(request.image)
        metadata = api_pb2.ImageMetadata(image_builder_version=request.builder_version)
        return api_pb2.ImageGetOrCreateResponse(image_id=image_id, result=result, metadata=metadata)

    async def ImageFromId(self, request: api_pb2.ImageFromIdRequest) -> api_pb2.ImageFromIdResponse:
        self._images.local(request.image_id)
        return api_pb2.ImageFromIdResponse(image_id=request.image_id)

    async def SandboxCreateV2(self, request: api_pb2.SandboxCreateV2Request) -> api_pb2.SandboxCreateV2Response:
        sandbox = await self._create(request.app_id, request.definition, request.tags, is_v2=True)
        return api_pb2.SandboxCreateV2Response(
            sandbox_id=sandbox.sandbox_id,
            task_id=sandbox.task_id,
            metadata=_metadata(sandbox),
            command_router_access=api_pb2.CommandRouterAccess(jwt=jwt(task=sandbox.task_id), url=self.router_url),
        )

    async def SandboxCreate(self, request: api_pb2.SandboxCreateRequest) -> api_pb2.SandboxCreateResponse:
        sandbox = await self._create(request.app_id, request.definition, request.tags, is_v2=False)
        return api_pb2.SandboxCreateResponse(sandbox_id=sandbox.sandbox_id, metadata=_metadata(sandbox))

    async def SandboxGetTaskId(self, request: api_pb2.SandboxGetTaskIdRequest) -> api_pb2.SandboxGetTaskIdResponse:
        sandbox = self._sandboxes.get(request.sandbox_id)
        if sandbox.result.status:
            return api_pb2.SandboxGetTaskIdResponse(task_result=sandbox.result)
        return api_pb2.SandboxGetTaskIdResponse(task_id=sandbox.task_id)

    SandboxGetTaskIdV2 = SandboxGetTaskId

    async def TaskGetCommandRouterAccess(
        self, request: api_pb2.TaskGetCommandRouterAccessRequest
    ) -> api_pb2.TaskGetCommandRouterAccessResponse:
        task_id = self._sandboxes.of_task(request.task_id).task_id
        return api_pb2.TaskGetCommandRouterAccessResponse(jwt=jwt(task=task_id), url=self.router_url)

    async def SandboxGetCommandRouterAccess(
        self, request: api_pb2.SandboxGetCommandRouterAccessRequest
    ) -> api_pb2.SandboxGetCommandRouterAccessResponse:
        sandbox = self._sandboxes.get(request.sandbox_id)
        if sandbox.result.status:
            raise GRPCError(Status.FAILED_PRECONDITION, "the sandbox is over")
        return api_pb2.SandboxGetCommandRouterAccessResponse(jwt=jwt(task=sandbox.task_id), url=self.router_url)

    async def SandboxWait(self, request: api_pb2.SandboxWaitRequest) -> api_pb2.SandboxWaitResponse:
        sandbox = self._sandboxes.get(request.sandbox_id)
        if request.timeout > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(request.timeout):
                    await sandbox.over.wait()
        result = sandbox.result if sandbox.over.is_set() else None
        return api_pb2.SandboxWaitResponse(result=result, metadata=_metadata(sandbox))

    SandboxWaitV2 = SandboxWait

    async def SandboxTerminate(self, request: api_pb2.SandboxTerminateRequest) -> api_pb2.SandboxTerminateResponse:
        sandbox = self._sandboxes.get(request.sandbox_id)
        existing = sandbox.result if sandbox.over.is_set() else None
        await self._sandboxes.end(sandbox, Result.GENERIC_STATUS_TERMINATED, 137)
        return api_pb2.SandboxTerminateResponse(existing_result=existing)

    SandboxTerminateV2 = SandboxTerminate

    async def SandboxListV2(self, request: api_pb2.SandboxListRequest) -> api_pb2.SandboxListResponse:
        """Newest first, a page at a time, of both kinds."""
        wanted = {tag.tag_name: tag.tag_value for tag in request.tags}
        page = [
            sandbox
            for sandbox in self._sandboxes.all()
            if (not request.before_timestamp or sandbox.created_at < request.before_timestamp)
            and (not request.app_id or sandbox.order.app_id == request.app_id)
            and (request.include_finished or not sandbox.over.is_set())
            and wanted.items() <= sandbox.tags.items()
        ]
        return api_pb2.SandboxListResponse(sandboxes=[_info(sandbox) for sandbox in page[:PAGE]])

    async def SandboxTagsGet(self, request: api_pb2.SandboxTagsGetRequest) -> api_pb2.SandboxTagsGetResponse:
        return api_pb2.SandboxTagsGetResponse(tags=_tags(self._sandboxes.get(request.sandbox_id)))

    SandboxTagsGetV2 = SandboxTagsGet

    async def SandboxGetFromName(
        self, request: api_pb2.SandboxGetFromNameRequest
    ) -> api_pb2.SandboxGetFromNameResponse:
        return self._find(request, is_v2=False)

    async def SandboxGetFromNameV2(
        self, request: api_pb2.SandboxGetFromNameRequest
    ) -> api_pb2.SandboxGetFromNameResponse:
        return self._find(request, is_v2=True)

    def _find(self, request: api_pb2.SandboxGetFromNameRequest, is_v2: bool) -> api_pb2.SandboxGetFromNameResponse:
        app_id = self._apps.get((request.environment_name, request.app_name))
        for sandbox in self._sandboxes.all():
            same = (sandbox.name, sandbox.order.app_id, sandbox.order.is_v2) == (request.sandbox_name, app_id, is_v2)
            if same and (request.include_terminated or not sandbox.result.status):
                return api_pb2.SandboxGetFromNameResponse(sandbox_id=sandbox.sandbox_id, metadata=_metadata(sandbox))
        raise GRPCError(Status.NOT_FOUND, f"no running sandbox named {request.sandbox_name!r}")

    async def _create(
        self,
        app_id: str,
        definition: api_pb2.Sandbox,
        tags: Iterable[api_pb2.SandboxTag],
        *,
        is_v2: bool,
    ) -> Sandbox:
        order = Order(
            app_id=app_id,
            app=next((name for (_, name), known in self._apps.items() if known == app_id), ""),
            definition=definition,
            tags={tag.tag_name: tag.tag_value for tag in tags},
            image=self._images.local(definition.image_id),
            files=self._files.archive(list(definition.mount_ids)) if definition.mount_ids else b"",
            is_v2=is_v2,
        )
        return await self._sandboxes.create(order)


def _metadata(sandbox: Sandbox) -> api_pb2.SandboxHandleMetadata:
    result = sandbox.result if sandbox.over.is_set() else None
    return api_pb2.SandboxHandleMetadata(app_id=sandbox.order.app_id, result=result)


def _tags(sandbox: Sandbox) -> list[api_pb2.SandboxTag]:
    return [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in sandbox.tags.items()]


def _info(sandbox: Sandbox) -> api_pb2.SandboxInfo:
    return api_pb2.SandboxInfo(
        id=sandbox.sandbox_id,
        created_at=sandbox.created_at,
        app_id=sandbox.order.app_id,
        tags=_tags(sandbox),
        name=sandbox.name,
        image_id=sandbox.order.definition.image_id,
        timeout_secs=sandbox.order.definition.timeout_secs,
        task_info=api_pb2.TaskInfo(
            id=sandbox.task_id,
            sandbox_id=sandbox.sandbox_id,
            result=sandbox.result,
            started_at=sandbox.created_at,
            finished_at=sandbox.ended_at or 0.0,
        ),
        metadata=_metadata(sandbox),
    )
