"""GPUs of an engine: who claims which is told by the containers' labels.

An engine that is asked for a number of GPUs gives the first ones, to everybody. So chambers are given GPUs by id.
"""

from collections.abc import Mapping, Sequence

from sandbox.answers import needed, text
from sandbox.backends.docker.engine import Engine

GPU_LABEL = "blastdoor.gpus"
EVERY_GPU = ("all",)  # what the NVIDIA runtime calls them


def gpu_label(ids: Sequence[str]) -> dict[str, str]:
    """What others see of a chamber's GPUs. Looking at all of them takes none away."""
    return {GPU_LABEL: ",".join(ids)} if ids and ids != EVERY_GPU else {}


async def claims(engine: Engine) -> Mapping[str, Sequence[str]]:
    """The GPUs of every container that has some."""
    found = await engine.containers(GPU_LABEL)
    return {needed(it, "Id"): text(it, "Labels", GPU_LABEL).split(",") for it in found}
