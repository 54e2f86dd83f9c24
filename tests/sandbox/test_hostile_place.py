"""A home folder that was copied: a cloned machine, a container image, dot files that are synchronised."""

import shutil
from pathlib import Path

from sandbox.tenancy import Tenancy


def test_t77_a_copied_home_is_another_place(tmp_path: Path) -> None:
    """Of owners on another machine nothing is known, even if both machines have a copy of the same folder."""
    Tenancy(tmp_path / "image").release()
    shutil.copytree(tmp_path / "image", tmp_path / "one")
    shutil.copytree(tmp_path / "image", tmp_path / "other")
    living, reaper = Tenancy(tmp_path / "one"), Tenancy(tmp_path / "other")
    assert not reaper.is_over(living.mark(3600))
