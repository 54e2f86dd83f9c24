"""The fake keeps the contract that the real backends keep."""

import pytest

from sandbox.conformance.checks import CHECKS
from sandbox.conformance.fake import FakeSubject

ROWS = [name for name in CHECKS if name not in FakeSubject.lacks]


@pytest.mark.parametrize("row", ROWS)
async def test_row(row: str) -> None:
    subject = FakeSubject()
    try:
        await CHECKS[row](subject)
    finally:
        await subject.close()
