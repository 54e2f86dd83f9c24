"""The package's face: what it promises is there, and costs nothing before it is asked for."""

import subprocess
import sys

import pytest

import sandbox


def test_every_name_is_found() -> None:
    """Each promised name can be had, and no other."""
    assert all(getattr(sandbox, name) is not None for name in sandbox.__all__)
    with pytest.raises(AttributeError, match="Bakcend"):
        _ = sandbox.Bakcend


def test_a_unit_waits_for_no_backend() -> None:
    """One who reads a size loads no backend, no event loop and no docker."""
    seen = "import sys, sandbox.units; print({'asyncio', 'docker', 'sandbox.backend'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
