"""Which image at Modal a job's image stands for, looked up once each."""

import asyncio
from typing import TYPE_CHECKING

from sandbox.backends.modal.engine import ModalEngine, registry_image, with_folder
from sandbox.backends.modal.order import is_id, reference
from sandbox.inputs import InputStore
from sandbox.job import Input, Job

if TYPE_CHECKING:
    import modal

    from sandbox.config import ModalConfig


class Images:
    def __init__(self, config: "ModalConfig", engine: ModalEngine) -> None:
        self._config = config
        self._engine = engine
        self._inputs = InputStore(config.inputs_folder)
        self._ready: dict[tuple[str, tuple[Input, ...]], asyncio.Task[modal.Image]] = {}

    async def of(self, job: Job) -> "modal.Image":
        """Raises Refused when Modal has no such image, or an input was never added here."""
        key = (reference(self._config, job.image), job.inputs)
        if key not in self._ready:
            self._ready[key] = asyncio.create_task(self._load(*key))
        task = self._ready[key]
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done():  # one that failed is tried again by the next to ask
                self._ready.pop(key, None)
            raise

    async def close(self) -> None:
        for task in self._ready.values():
            task.cancel()
        await asyncio.gather(*self._ready.values(), return_exceptions=True)

    async def _load(self, name: str, inputs: tuple[Input, ...]) -> "modal.Image":
        folders = [(str(self._inputs.locate(item)), f"/inputs/{item.name}") for item in inputs]
        within_s = self._config.deadlines.provision
        if is_id(name):
            image = await self._engine.image_of_id(name, within_s)
        else:
            image = await self._engine.build(registry_image(name), within_s)
        for local, remote in folders:
            image = with_folder(image, local, remote)
        return await self._engine.build(image, within_s) if folders else image
