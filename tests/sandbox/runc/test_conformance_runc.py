"""A runtime that we drive ourselves keeps the contract: runc all of it always, the others what their code differs in,
and all where a runtime or the contract changed, and in `make thorough`.
"""

from pathlib import Path

import pytest

from sandbox import RuncConfig
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.runc import RuncSubject

pytestmark = pytest.mark.docker

BRIEFLY = ("success_with_outputs", "out_of_memory")
ROWS = [
    *(("runc", row) for row in CONTRACT),
    *(
        (runtime, row) if row in BRIEFLY else pytest.param(runtime, row, marks=pytest.mark.touching("runc"))
        for runtime in ("crun", "runsc")
        for row in CONTRACT
    ),
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
