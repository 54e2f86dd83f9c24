"""A real engine keeps the contract, with runc and with gVisor."""

import pytest

from sandbox import DockerConfig
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.docker import DockerSubject

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("row", CONTRACT)
@pytest.mark.parametrize("runtime", ["runc", "runsc"])
async def test_row(runtime: str, row: str) -> None:
    subject = DockerSubject(DockerConfig(runtime=runtime))
    if row in subject.lacks:
        with pytest.raises(NotConforming):
            await CONTRACT[row](subject)
        return
    try:
        await CONTRACT[row](subject)
    finally:
        await subject.close()
