"""What a machine lacks, sent from here: images of the local engine, and large inputs. No registry is needed."""

import asyncio
import contextlib
import tarfile
from pathlib import Path

from sandbox.answers import fields, needed
from sandbox.backends.docker.engine import Engine
from sandbox.backends.skypilot.machine import Machine, written
from sandbox.box.report import Missing
from sandbox.errors import Refused
from sandbox.inputs import InputStore
from sandbox.job import Input, Job
from sandbox.posture import image_objections
from sandbox.scratch import scratch


class Shipper:
    """Images are saved once and kept for other machines, by their id."""

    def __init__(self, image_host: str, inputs: InputStore) -> None:
        self._image_host = image_host
        self._inputs = inputs
        self._engine: Engine | None = None
        self._held = contextlib.ExitStack()
        self._folder = self._held.enter_context(scratch("images"))
        self._saving = asyncio.Lock()

    async def identify(self, job: Job) -> Job:
        """The job with its image by id, and its inputs known to be here. Raises Refused for what cannot be shipped."""
        if self._engine is None:
            self._engine = await asyncio.to_thread(Engine, self._image_host)
        record = await self._engine.image(job.image)
        if objections := image_objections(fields(record, "Config")):
            raise Refused(f"the image {job.image} is refused: {objections[0]}")
        for item in job.inputs:
            self._inputs.locate(item)
        return job.model_copy(update={"image": needed(record, "Id")})

    async def ship(self, machine: Machine, job: Job, missing: Missing) -> None:
        if missing.image:
            await machine.send(await self._saved(job.image), "images")
        wanted = set(missing.inputs)
        for item in job.inputs:
            if item.digest in wanted:
                wanted.discard(item.digest)
                await self._send_input(machine, item)

    def close(self) -> None:
        if self._engine:
            self._engine.close()
        self._held.close()

    async def _saved(self, image: str) -> Path:
        """A folder that holds the image's archive, and nothing else."""
        identity = image.removeprefix("sha256:")
        folder = self._folder / identity
        async with self._saving:
            if not folder.is_dir() and self._engine:
                staging = self._folder / f".{identity}"
                staging.mkdir(exist_ok=True)
                await self._engine.save_image(image, staging / f"{identity}.tar")
                staging.rename(folder)
        return folder

    async def _send_input(self, machine: Machine, item: Input) -> None:
        with scratch("input") as folder:
            await written(_pack, self._inputs.locate(item), folder / f"{item.digest}.tar")
            await machine.send(folder, "inputs")


def _pack(tree: Path, target: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as packed:
        packed.add(tree, ".")
