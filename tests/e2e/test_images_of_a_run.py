"""A run keeps the images that it began with: what a fingerprint says of them is what chambers start from."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode
from orchestrator.loop.guards import guard_record
from orchestrator.loop.jobs import Image
from orchestrator.loop.judge_modes import JUDGE_MODES
from orchestrator.task import ImageSpec
from orchestrator.wiring.backends.docker import docker_site, local_site
from orchestrator.wiring.site import Site
from sandbox import Bundle, DockerConfig, Job, RuncConfig
from sandbox.config.docker import default_docker_host
from tests.orchestrator.loop.scripted import GUARD, scripted, write_task

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

FIRST, SECOND = "blastdoor-busybox:latest", "blastdoor-trial:latest"


@pytest.fixture
def moving() -> Iterator[tuple[docker.APIClient, str]]:
    client, name = docker.APIClient(default_docker_host()), f"blastdoor-moving:{uuid.uuid4().hex[:12]}"
    client.tag(FIRST, *name.split(":"))
    yield client, name
    with suppress(ImageNotFound):
        client.remove_image(name)
    client.close()


async def _has_python(site: Site, image: str) -> bool:
    async with await site.backend.open(Job(command=("sh", "-c", "command -v python3"), image=image)) as chamber:
        return b"python3" in (await chamber.run(Bundle({}))).log_tail


async def test_a_name_that_moves_on_an_engine(moving: tuple[docker.APIClient, str]) -> None:
    """Built again under its name while a run is at it: the run goes on with the image that it began with."""
    client, name = moving
    async with docker_site(DockerConfig(), SECOND) as site:
        image = await site.bake(ImageSpec(base=name))
        client.tag(SECOND, *name.split(":"))
        assert image.name == name
        assert not await _has_python(site, image.of_jobs)
        assert await _has_python(site, (await site.bake(ImageSpec(base=name))).of_jobs)


@pytest.mark.touching("runc", "baking")
async def test_a_name_that_moves_without_a_daemon(moving: tuple[docker.APIClient, str], tmp_path: Path) -> None:
    client, name = moving
    config = RuncConfig(folder=tmp_path / "runc", images_folder=tmp_path / "images")
    backend = await config.connect()
    try:
        site = local_site("runc", config, backend, SECOND)
        image = await site.bake(ImageSpec(base=name))
        client.tag(SECOND, *name.split(":"))
        later = await site.bake(ImageSpec(base=name))
        assert image.digest != later.digest
        assert not await _has_python(site, image.of_jobs)
        assert await _has_python(site, later.of_jobs)
    finally:
        await backend.close()


async def test_every_job_asks_by_digest(tmp_path: Path) -> None:
    """Trial, judge, guards beside both, and both in one chamber."""
    beside_judge = GUARD.replace('"sound"', '"judged"') + 'in = "judge"\n'
    async with scripted(write_task(tmp_path / "task", GUARD, beside_judge), None) as session:
        one, two = Image("a:1", "sha256:1", by_digest=True), Image("b:1", "sha256:2", by_digest=True)
        jobs = replace(session.bench.jobs, image=one, judge_image=two)
        assert jobs.trial(Mode.SUBMIT).image == "sha256:1"
        assert jobs.judge(Mode.SUBMIT).image == "sha256:2"
        assert JUDGE_MODES[Tier.SHARED].trial_job(jobs, Mode.SUBMIT, "1").image == "sha256:1"
        assert [jobs.guard(guard_record(it)).image for it in session.bench.task.guards] == ["sha256:1", "sha256:2"]
        assert {image for image, _ in jobs.realms()} == {"sha256:1"}
