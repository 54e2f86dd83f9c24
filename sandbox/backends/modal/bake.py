"""Bakes an image at Modal, from the same definitions as on a Docker engine: our Dockerfiles, packages, wheels, lines.

Modal builds what it does not have, on its machines and with a network, and keeps it under an id that stands for this
content for good: so the id is both the name for a job and the digest for a fingerprint.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sandbox.backends.modal.guest import TOOLS
from sandbox.backends.modal.order import check_installed, is_id, reference
from sandbox.baking import BakedImage, ImageSpec
from sandbox.definitions import Definition, layered, lineage
from sandbox.errors import Refused
from sandbox.scratch import scratch

if TYPE_CHECKING:
    from sandbox.config import ModalConfig

LIMIT_S = 1800.0
CHECK = f"for tool in {' '.join(TOOLS)}; do command -v $tool || {{ echo $tool is missing in the image; exit 1; }}; done"


async def bake(
    config: "ModalConfig", spec: ImageSpec, progress: Callable[[str], None], limit_s: float = LIMIT_S
) -> BakedImage:
    base = reference(config, spec.base)
    if is_id(base):
        if not spec.is_empty:
            raise Refused(f"{base} is an image at Modal already; name a base from a registry to add something to it")
        return BakedImage(base, base)
    check_installed()
    from sandbox.backends.modal.engine import ModalEngine, image_id, registry_image, with_added

    ours = lineage(spec.base)
    engine = await ModalEngine.connect(config.app, config.environment)
    try:
        with scratch("bake") as folder:
            progress(f"Modal builds the image, unless it has it: {_in_words(base, ours, spec)}")
            image = await layered(registry_image(base), ours, folder)
            image = with_added(image, sorted(set(spec.apt)), sorted(set(spec.pip)), (*spec.run, CHECK))
            made = image_id(await engine.build(image, limit_s))
    finally:
        await engine.close()
    return BakedImage(made, made)


def _in_words(base: str, ours: tuple[Definition, ...], spec: ImageSpec) -> str:
    run = [f"{len(spec.run)} run lines"] if spec.run else []
    names = [f"images/{definition.name}" for definition in ours]
    return ", ".join([base, *names, *sorted(set(spec.apt)), *sorted(set(spec.pip)), *run])
