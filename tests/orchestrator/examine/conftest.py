"""Campaigns of examinations have ledgers that are kept in memory."""

import pytest


@pytest.fixture(autouse=True)
def _in_memory(ledgers_in_memory: None) -> None: ...
