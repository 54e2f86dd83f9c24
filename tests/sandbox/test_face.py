"""The package's face: what it promises is there, and costs nothing before it is asked for."""

import subprocess
import sys

import pytest

import sandbox


def test_every_name_is_found() -> None:
    """Each promised name has a home, each name with a home is promised, and each can be had."""
    assert set(sandbox.__all__) == set(sandbox._HOME_OF)
    assert all(getattr(sandbox, name) is not None for name in sandbox.__all__)


def test_other_names_are_errors() -> None:
    """A name that is not there is an AttributeError, as of any module."""
    with pytest.raises(AttributeError, match="Bakcend"):
        _ = sandbox.Bakcend


def test_a_unit_waits_for_no_backend() -> None:
    """One who reads a size loads no backend, no event loop and no docker."""
    seen = "import sys, sandbox.units; print({'asyncio', 'docker', 'sandbox.backend'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
