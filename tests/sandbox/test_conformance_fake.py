"""The fake keeps the contract that the real backends keep."""

import pytest

from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.fake import FakeSubject

ROWS = [name for name in CONTRACT if name not in FakeSubject.lacks]


@pytest.mark.parametrize("row", ROWS)
async def test_row(row: str) -> None:
    subject = FakeSubject()
    try:
        await CONTRACT[row](subject)
    finally:
        await subject.close()
