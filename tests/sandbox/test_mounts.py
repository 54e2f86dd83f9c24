"""Names of mounts are whatever somebody who may mount chose."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbox import trees
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.errors import Unavailable
from sandbox.mounts import mounts_of
from sandbox.scratch import scratch
from sandbox.trees import mounts_below, remove_unmounted

# No UTF-8; what ends a line or parts words in texts of Python, and nowhere else; what the kernel writes as numbers.
NAMES = (b"\xff\xfe", b"\r", b"a\x0b\x0cb", b"\xc2\x85", b"\xe2\x80\xa8", b"\xc2\xa0", b"a b\t\n\\040")


def written(name: bytes) -> bytes:
    """As the kernel does."""
    return b"".join(b"\\%03o" % it if bytes([it]) in b" \t\n\\" else bytes([it]) for it in name)


def line(folder: bytes, kind: bytes = b"tmpfs") -> bytes:
    return b"30 20 0:25 / " + written(folder) + b" rw shared:9 - " + kind + b" none rw,cpu,memory,pids\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user mounts nothing")
def test_the_kernel_writes_them_so(tmp_path: Path) -> None:
    """And so they are read."""
    folders = [os.fsencode(tmp_path) + b"/" + it for it in NAMES]
    for folder in folders:
        Path(os.fsdecode(folder)).mkdir()
    script = 'for it; do mount -t tmpfs none "$it"; done; cat /proc/self/mountinfo'
    command = [b"unshare", b"--mount", b"sh", b"-euc", script.encode(), b"sh", *folders]
    table = subprocess.run(command, capture_output=True, check=True).stdout
    found = [it.folder for it in mounts_of(table) if it.kind == "tmpfs" and it.folder.startswith(str(tmp_path))]
    assert found == [os.fsdecode(it) for it in folders]
    assert all(written(it) in table for it in folders)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_read(name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one that Python gives the folder, what stands after it is read, and nothing below it removed."""
    odd = os.fsencode(tmp_path) + b"/" + name
    table = tmp_path / "mounts"
    table.write_bytes(line(odd) + line(os.fsencode(tmp_path / "groups"), b"cgroup"))
    assert [it.folder for it in mounts_of(table.read_bytes())] == [os.fsdecode(odd), str(tmp_path / "groups")]
    monkeypatch.setattr(trees, "MOUNTS", table)
    assert mounts_below(Path(os.fsdecode(odd))) == [os.fsdecode(odd)]
    (tmp_path / "free").mkdir()
    remove_unmounted(tmp_path / "free")
    with scratch("mine", tmp_path) as folder:
        pass
    assert not folder.exists()
    assert Cgroups.of_this_machine(table).path("group")
    (Path(os.fsdecode(odd))).mkdir()
    with pytest.raises(Unavailable) as raised:
        remove_unmounted(tmp_path)
    assert str(raised.value).encode(), "what says so can be written down"
    assert Path(os.fsdecode(odd)).exists()
