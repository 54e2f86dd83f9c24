"""The one file that drives SkyPilot, for tests that need its package and no server."""

import os
from typing import Any

import pytest


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """SkyPilot reads the home folder when it is imported; nothing of this account's is of interest."""
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))
    try:
        from sandbox.backends.skypilot import sdk as skypilot_sdk
    finally:
        if before is not None:
            os.environ["HOME"] = before
    return skypilot_sdk
