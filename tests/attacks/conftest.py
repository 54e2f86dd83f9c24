"""One arena a runtime for the whole session: opening a backend for every row would cost more than the rows."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from sandbox.attacks.attack import Arena
from sandbox.attacks.hosts import open_arena
from sandbox.config import DockerConfig

WARM = 2


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def arena(request: pytest.FixtureRequest) -> AsyncIterator[Arena]:
    """Parametrised by runtime. Without an engine, or without the runtime, this fails: nothing is skipped."""
    opened = await open_arena(DockerConfig(runtime=request.param, warm=WARM))
    yield opened
    await opened.backend.close()
