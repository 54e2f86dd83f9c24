"""Images for chambers without a daemon: unpacked folders, made by this process and the runtime alone."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.machine.images import DEFINITIONS, LABEL, Builder, Found, Image
from orchestrator.machine.programs import Unprepared, require
from sandbox import Refused, RuncConfig
from sandbox.backends.runc.images import Images
from sandbox.definitions import Dockerfile, read_dockerfile


class RuncBuilder(Builder):
    def __init__(self, config: RuncConfig, state: Path) -> None:
        super().__init__(state)
        self._config = config.for_images()

    def build(self, images: Iterable[Image]) -> None:
        wanted = list(images)
        try:
            for image in wanted:  # before others are fetched and built for it
                file = DEFINITIONS / image.name.removeprefix("blastdoor-") / "Dockerfile"
                if file.exists():
                    _lines_of(file, image)
            require(self._config.runtime, log=self.apt_log)
            super().build(wanted)
        except Refused as problem:
            raise Unprepared(str(problem)) from None

    def present(self, images: Iterable[Image]) -> dict[str, Found]:
        unpacked = self._images()
        tags, there = {image.tag for image in images}, unpacked.loaded()
        labels = {tag: unpacked.settings(there[tag]).get("Labels") or {} for tag in tags & there.keys()}
        return {tag: Found(str(it.get(LABEL, "")), unpacked.size(there[tag])) for tag, it in labels.items()}

    def take_root(self, image: Image, archive: Path, search_path: str) -> None:
        settings = {"Env": [f"PATH={search_path}"], "Labels": {LABEL: image.digest}}
        self._images().adopt(archive, image.tag, settings)

    def derive(self, image: Image, parent: str, context: Path) -> None:
        dockerfile = _lines_of(context / "Dockerfile", image)
        asyncio.run(self._derive(image, replace(dockerfile, base=parent), context))

    async def _derive(self, image: Image, dockerfile: Dockerfile, context: Path) -> None:
        from sandbox.backends.runc.build import build

        backend = await self._config.connect()
        try:
            await build(backend, dockerfile, context, image.tag, {LABEL: image.digest})
        finally:
            await backend.close()

    def _images(self) -> Images:
        return Images(self._config.images_folder, self._config.image_host)


def _lines_of(file: Path, image: Image) -> Dockerfile:
    if found := read_dockerfile(file):
        return found
    raise Refused(f"{image.tag} stands on more than one image, which needs a Docker engine; build it on one")
