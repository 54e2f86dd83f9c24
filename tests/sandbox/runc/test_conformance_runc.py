"""A runtime that we drive ourselves keeps the contract. With gVisor all of it in `make thorough`, some of it always."""

from pathlib import Path

import pytest

from sandbox import RuncConfig
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.runc import RuncSubject

pytestmark = pytest.mark.docker

BRIEFLY = ("success_with_outputs", "out_of_memory")
ROWS = [
    *((runtime, row) for runtime in ("runc", "crun") for row in CONTRACT),
    *(("runsc", row) if row in BRIEFLY else pytest.param("runsc", row, marks=pytest.mark.slow) for row in CONTRACT),
]


@pytest.mark.parametrize(("runtime", "row"), ROWS)
async def test_row(runtime: str, row: str, tmp_path: Path) -> None:
    subject = RuncSubject(RuncConfig.model_validate({"runtime": runtime, "folder": tmp_path}))
    if row in subject.lacks:
        with pytest.raises(NotConforming if row == "needs_refused_at_open" else NotImplementedError):
            await CONTRACT[row](subject)
        return
    try:
        await CONTRACT[row](subject)
    finally:
        await subject.close()
