"""Where large files go: a store of its own beside the control plane, written by a signed address."""

import base64
import hashlib
import secrets

from aiohttp import web
from grpclib import GRPCError, Status

from tests.modal_emulator.sandboxes import new_id

_LARGEST = 1 << 30


class Blobs:
    """Each is announced with its length and digest first, then put once under its address."""

    def __init__(self) -> None:
        self._announced: dict[str, tuple[str, int, str]] = {}  # id: signature, length, sha256 as base64
        self._contents: dict[str, bytes] = {}
        self._runner: web.AppRunner | None = None
        self._url = ""

    async def listen(self) -> None:
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_put("/{id}", self._put)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def announce(self, length: int, sha256_base64: str) -> tuple[str, str]:
        """Its id, and the address that whoever has it may write to."""
        blob_id, signature = new_id("bl"), secrets.token_hex(16)
        self._announced[blob_id] = (signature, length, sha256_base64)
        return blob_id, f"{self._url}/{blob_id}?signature={signature}"

    def take(self, blob_id: str) -> bytes:
        if blob_id not in self._contents:
            raise GRPCError(Status.NOT_FOUND, f"no blob {blob_id}")
        return self._contents[blob_id]

    def clear(self) -> None:
        self._announced.clear()
        self._contents.clear()

    async def _put(self, request: web.Request) -> web.Response:
        blob_id = request.match_info["id"]
        signature, length, digest = self._announced.get(blob_id, ("", -1, ""))
        if not signature or request.query.get("signature") != signature:
            return web.Response(status=403, text="SignatureDoesNotMatch")
        data = await request.read()
        if (len(data), base64.b64encode(hashlib.sha256(data).digest()).decode()) != (length, digest):
            return web.Response(status=400, text="BadDigest")
        self._contents[blob_id] = data
        return web.Response(headers={"ETag": f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'})
