"""The parts of a backend without a daemon, each by itself: no runtime is started here."""

import asyncio
import dataclasses
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.runc import cgroups
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.link import RuncLink
from sandbox.backends.runc.runtime import Filters, find_runtime, is_too_old, limits_of
from sandbox.backends.runc.spec import LIMIT_NAMES, NO_LIMIT, Disk, Place, oci_spec, rlimit_differences
from sandbox.errors import Refused, Unavailable
from sandbox.job import Input, Limits
from sandbox.posture import FULL, Posture
from sandbox.wire.demux import Stream
from tests.lag import watched_turns

UID = 1_600_000
# What a chamber reads is mounted before its runtime starts; nothing keeps a log.
NOT_SPECIFIED = ("log_driver", "own_files")
PLACE = Place(Path("/images/x"), "/blastdoor-o/c")


def spec(posture: Posture = FULL, runtime: str = "runc", place: Place = PLACE, **more: Any) -> dict[str, Any]:
    return oci_spec(posture, Limits(), runtime, "boot", ["PATH=/bin"], place, UID, **more)


@pytest.mark.parametrize("flag", [it.name for it in dataclasses.fields(Posture) if it.name not in NOT_SPECIFIED])
def test_every_flag_is_in_the_specification(flag: str) -> None:
    """A flag that changes nothing would be one that nobody enforces."""
    assert spec(dataclasses.replace(FULL, **{flag: False})) != spec()


def test_hardened() -> None:
    found = spec()
    process, linux = found["process"], found["linux"]
    assert found["root"]["readonly"] is True
    assert process["noNewPrivileges"] is True
    assert not any(process["capabilities"].values())
    assert process["user"]["uid"] == process["user"]["gid"] == UID
    kinds = {it["type"] for it in linux["namespaces"]}
    assert kinds == {"mount", "pid", "uts", "network", "ipc", "cgroup"}
    assert linux["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO"
    assert linux["resources"]["memory"]["limit"] == linux["resources"]["memory"]["swap"]


def held(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The limits of a specification as the kernel writes them."""

    def said(most: int) -> str:
        return "unlimited" if most == NO_LIMIT else str(most)

    return {LIMIT_NAMES[it["type"]]: (said(it["soft"]), said(it["hard"])) for it in found["process"]["rlimits"]}


def test_no_limit_is_inherited() -> None:
    """All that the kernel knows are in the specification, none above what may be granted."""
    found = spec()
    assert set(held(found)) == set(LIMIT_NAMES.values()) == set(limits_of(os.getpid())) - {"Max file locks"}
    assert held(found)["Max stack size"] == ("8388608", "unlimited")
    place = dataclasses.replace(PLACE, limits={"RLIMIT_STACK": 4096, "RLIMIT_SIGPENDING": 2**40})
    bounded = held(spec(place=place))
    assert bounded["Max stack size"] == ("4096", "4096")
    assert bounded["Max pending signals"] == held(found)["Max pending signals"]


@pytest.mark.parametrize(("ours", "lowered"), [({}, "64"), ({"RLIMIT_MEMLOCK": 8192}, "8")])
def test_locked_memory_where_the_runtime_locks_some(ours: dict[str, int], lowered: str) -> None:
    """crun raises that limit for itself once it is under the chamber's: the chamber lowers it then, and no other. To no
    more than its part of ours: more would be other chambers', and a shell that may not raise it would end.
    """
    found = spec(place=dataclasses.replace(PLACE, locks_memory=True, limits=ours))
    assert set(held(spec())) - set(held(found)) == {"Max locked memory"}
    script = found["process"]["args"][2].replace("boot", "ulimit -S -l; ulimit -H -l")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout.split() == [lowered, lowered]


def test_each_limit_is_compared_with_the_kernels() -> None:
    found = spec()
    assert rlimit_differences(found, held(found)) == []
    for name in held(found):
        (line,) = rlimit_differences(found, held(found) | {name: ("7", "7")})
        assert line.startswith(name.lower())
        assert len(rlimit_differences(found, {it: both for it, both in held(found).items() if it != name})) == 1


def test_inputs_do_not_touch_the_image() -> None:
    """Their folders are made in a file system of the chamber's own, which comes before them."""
    item = Input(name="data", digest="0" * 64)
    mounts = spec(place=dataclasses.replace(PLACE, inputs=[(Path("/store/x"), item)]))["mounts"]
    targets = [mount["destination"] for mount in mounts]
    assert targets.index("/inputs") < targets.index("/inputs/data")
    assert "ro" in mounts[targets.index("/inputs/data")]["options"]


def test_disk_reads() -> None:
    found = spec(place=dataclasses.replace(PLACE, disks=[Disk(254, 0, 1000)]))
    assert found["linux"]["resources"]["blockIO"]["throttleReadBpsDevice"] == [{"major": 254, "minor": 0, "rate": 1000}]


def test_groups_that_the_runtime_does_not_mount() -> None:
    """Below a folder of ours, where only root may write; each can be read, and nothing else of the host's groups."""
    mounts = spec(place=dataclasses.replace(PLACE, groups={"pids": Path("/sys/fs/cgroup/pids/o/c")}))["mounts"]
    assert not [mount for mount in mounts if mount["type"] == "cgroup"]
    found = {mount["destination"]: mount for mount in mounts}
    assert {"mode=755", "nosuid"} <= set(found["/sys/fs/cgroup"]["options"])
    assert "ro" in found["/sys/fs/cgroup/pids"]["options"]


def test_filter_is_compiled_once(tmp_path: Path) -> None:
    """What was made of a profile goes to chambers with that profile, and to no other; none is asked for without one."""
    filters, usual, served = Filters(), spec(), spec(loopback=True)
    bare = spec(dataclasses.replace(FULL, seccomp=False))
    (tmp_path / "state" / "one").mkdir(parents=True)
    (tmp_path / "state" / "one" / "seccomp.bpf").write_bytes(b"filter")
    filters.learn(bare, "one", tmp_path)
    filters.learn(usual, "one", tmp_path)
    filters.learn(served, "other", tmp_path)
    for it in (again := spec(), served, bare):
        filters.give(it)
    assert again["annotations"] == {"run.oci.seccomp_bpf_data": "ZmlsdGVy"}
    assert again["linux"] == usual["linux"]
    assert "annotations" not in served
    assert "annotations" not in bare


def test_host_network_keeps_its_settings() -> None:
    """In the mutation check a chamber is on the host's network, whose settings are not ours to change."""
    assert "sysctl" not in spec(dataclasses.replace(FULL, network=False), loopback=True)["linux"]


@pytest.mark.parametrize(
    ("name", "version", "old"),
    [
        ("runc", "1.1.5+ds1", False),
        ("runc", "1.0.3", True),
        ("runc", "unknown", True),
        ("crun", "1.8.1", False),
        ("crun", "1.15", False),
        ("crun", "1.4.3", True),
        ("crun", "UNKNOWN", True),
        ("runsc", "0.0~20221219.0", False),
        ("runsc", "release-20210101.0", True),
        ("runsc", "VERSION_MISSING", True),
    ],
)
def test_too_old(name: str, version: str, old: bool) -> None:
    assert is_too_old(name, version) is old


def installed(folder: Path, version: str = "1.1.9") -> Path:
    program = folder / "runc"
    program.write_text(f"#!/bin/sh\necho runc version {version}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "why"), [("", "apt-get install runc"), ("1.0.0", r"1\.0\.0, and 1\.1\.0 is the oldest")]
)
def test_no_runtime(tmp_path: Path, version: str, why: str) -> None:
    if version:
        installed(tmp_path, version)
    with pytest.raises(Refused, match=why):
        find_runtime("runc", search=str(tmp_path))


def test_copy_of_a_runtime(tmp_path: Path) -> None:
    """Nobody can write to it; one that is replaced meanwhile is copied anew; where none can be run there is none."""
    program = installed(tmp_path)
    first = find_runtime("runc", search=str(tmp_path))
    assert first.copy is not None
    with pytest.raises(PermissionError):
        os.write(first.copy, b"x")
    assert find_runtime("runc", search=str(tmp_path)).copy == first.copy
    os.utime(program, (1, 1))
    assert find_runtime("runc", search=str(tmp_path)).copy not in (None, first.copy)
    program.write_text("#!/bin/sh\ncase $0 in /proc/*) exit 1 ;; esac\necho runc version 1.1.9\n")
    assert find_runtime("runc", search=str(tmp_path)).copy is None


def test_no_memory_for_a_copy_of_a_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself is run then, and nothing of the copy is left open."""
    made = os.memfd_create("copy")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    installed(tmp_path)
    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr("os.memfd_create", lambda *_: made)
    assert find_runtime("runc", search=str(tmp_path)).copy is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made)


def v1(tmp_path: Path, *controllers: str) -> Path:
    lines = []
    for name in controllers:
        (tmp_path / name).mkdir()
        lines.append(f"30 20 0:25 / {tmp_path / name} rw,relatime - cgroup cgroup rw,{name}")
    (tmp_path / "memory" / "memory.memsw.limit_in_bytes").touch()
    (tmp_path / "mounts").write_text("\n".join(lines))
    return tmp_path / "mounts"


def v2(tmp_path: Path, controllers: str = "cpuset cpu io memory pids") -> Path:
    (tmp_path / "cgroup.controllers").write_text(controllers)
    (tmp_path / "cgroup.subtree_control").write_text("")
    (tmp_path / "mounts").write_text(f"30 20 0:25 / {tmp_path} rw,relatime shared:9 - cgroup2 cgroup2 rw")
    return tmp_path / "mounts"


def shown(folder: Path, files: dict[str, str]) -> None:
    """What the kernel shows of a group."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_evidence_of_version_2(tmp_path: Path) -> None:
    """A disk without a limit is not among those that are read, and a group without swap has none."""
    found = Cgroups.of_this_machine(v2(tmp_path))
    events = {"memory.events": "low 0\noom 3\noom_kill 2\n", "cpu.stat": "usage_usec 1500000\nuser_usec 1\n"}
    shown(tmp_path / "o/c", {**events, "memory.max": "1024", "pids.max": "64", "cpu.max": "100000 100000"})
    assert (found.is_unified, found.limits_reads) == (True, True)
    assert (found.oom_kills("o/c"), found.cpu_seconds("o/c")) == (2, 1.5)
    assert found.limits("o/c") == {"memory": "1024", "pids": "64", "cpus": "100000 100000"}
    reads = "259:0 rbps=max wbps=7 riops=max wiops=max\n254:0 rbps=67108864 wbps=max riops=max wiops=max\n"
    shown(tmp_path / "o/c", {"memory.swap.max": "max\n", "io.max": reads})
    limits = found.limits("o/c")
    assert (limits["swap"], limits["reads"]) == ("max", "254:0 67108864")


def test_evidence_of_version_1(tmp_path: Path) -> None:
    """Swap is what is beyond the memory."""
    found = Cgroups.of_this_machine(v1(tmp_path, "memory", "pids", "cpu", "cpuacct", "blkio"))
    files = {
        "memory/c/memory.limit_in_bytes": "1024",
        "memory/c/memory.memsw.limit_in_bytes": "5120",
        "pids/c/pids.max": "64",
        "cpu/c/cpu.cfs_quota_us": "100000",
        "cpu/c/cpu.cfs_period_us": "50000\n",
        "blkio/c/blkio.throttle.read_bps_device": "254:0 67108864\n",
    }
    shown(tmp_path, files)
    assert (found.is_unified, found.limits_reads) == (False, True)
    limits = {"memory": "1024", "pids": "64", "cpus": "100000 50000", "swap": "4096", "reads": "254:0 67108864"}
    assert found.limits("c") == limits
    (tmp_path / "mounts").write_text("".join((tmp_path / "mounts").read_text().splitlines(keepends=True)[:3]))
    bare = Cgroups.of_this_machine(tmp_path / "mounts")
    assert not bare.limits_reads
    assert "reads" not in bare.limits("c")


def test_controllers_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no pids cgroup"):
        Cgroups.of_this_machine(v2(tmp_path, "cpu memory"))


def test_not_delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that takes no groups is refused, and nothing of it stays."""
    found = Cgroups.of_this_machine(v2(tmp_path))

    def busy(self: Path, *_: Any) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "write_text", busy)
    with pytest.raises(Refused, match="delegated"):
        found.found("blastdoor-x")
    assert not (tmp_path / "blastdoor-x").exists()


def test_swap_that_nobody_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = v1(tmp_path, "memory", "pids", "cpu")
    (tmp_path / "memory" / "memory.memsw.limit_in_bytes").unlink()
    (tmp_path / "swaps").write_text("Filename Type\n/dev/sdb partition\n")
    monkeypatch.setattr(cgroups, "SWAPS", tmp_path / "swaps")
    with pytest.raises(Refused, match="swapaccount=1"):
        Cgroups.of_this_machine(mounts)


@pytest.mark.parametrize(("swaps", "refused"), [("/dev/sdb partition\n", True), ("", False)])
def test_swap_that_nobody_limits_in_version_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: str, refused: bool
) -> None:
    """Only a group below the root shows whether the kernel limits it; one that is refused is not left behind."""
    found = Cgroups.of_this_machine(v2(tmp_path))
    (tmp_path / "swaps").write_text(f"Filename Type\n{swaps}")
    monkeypatch.setattr(cgroups, "SWAPS", tmp_path / "swaps")
    read = Path.read_text
    given = "cpu io memory pids"
    monkeypatch.setattr(
        Path, "read_text", lambda it, *words: given if it.name == "cgroup.subtree_control" else read(it, *words)
    )
    if refused:
        with pytest.raises(Refused, match="swapaccount=1"):
            found.found("blastdoor-x")
    else:
        found.found("blastdoor-x")
    assert (tmp_path / "blastdoor-x").exists() is not refused


async def test_link() -> None:
    """Both streams are heard, and the end of both is no end while the first process lives."""
    link = RuncLink()
    theirs = link.theirs
    alive, death = os.pipe()
    link.began(alive)
    os.write(theirs.stdout, b"out")
    os.write(theirs.stderr, b"err")
    heard = [(stream, bytes(piece)) for _ in range(2) for stream, piece in await link.receive()]
    assert sorted(heard) == [(Stream.STDOUT, b"out"), (Stream.STDERR, b"err")]
    await link.send(b"go\n")
    assert os.read(theirs.stdin, 10) == b"go\n"
    theirs.close()
    over = asyncio.ensure_future(link.receive())
    await asyncio.sleep(0.05)
    assert not over.done()
    os.close(death)
    assert await over == []
    await link.send(b"nobody reads this")
    link.close()
    link.close()


async def test_link_keeps_no_loop_busy() -> None:
    """Neither what nobody takes yet, nor a stream that has ended beside one that is waited for."""
    link = RuncLink()
    theirs = link.theirs
    waiting = asyncio.ensure_future(link.receive())
    await asyncio.sleep(0.01)
    os.write(theirs.stdout, b"first")
    assert [bytes(piece) for _, piece in await waiting] == [b"first"]
    os.write(theirs.stdout, b"untaken")
    with watched_turns() as untaken:
        await asyncio.sleep(0.1)
    assert [bytes(piece) for _, piece in await link.receive()] == [b"untaken"]
    os.close(theirs.stderr)
    waiting = asyncio.ensure_future(link.receive())
    with watched_turns() as ended:
        await asyncio.sleep(0.1)
    os.write(theirs.stdout, b"last")
    assert [bytes(piece) for _, piece in await waiting] == [b"last"]
    assert max(untaken.count, ended.count) < 20
    link.close()
    os.close(theirs.stdin)
    os.close(theirs.stdout)


async def test_link_loses_nothing_with_its_reader() -> None:
    """What came for one that was cancelled, at whichever turn of the loop, is there for the next."""
    for turns in range(6):
        link = RuncLink()
        waiting = asyncio.ensure_future(link.receive())
        await asyncio.sleep(0.01)
        os.write(link.theirs.stdout, b"kept")
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        (heard,) = await asyncio.gather(waiting, return_exceptions=True)
        if isinstance(heard, BaseException):
            heard = await link.receive()
        assert [bytes(piece) for _, piece in heard] == [b"kept"]
        link.theirs.close()
        link.close()


async def test_link_sends_more_than_a_pipe_holds() -> None:
    link = RuncLink()
    data = os.urandom(1 << 20)
    sending = asyncio.create_task(link.send(data))
    got = b""
    while len(got) < len(data):
        got += await asyncio.to_thread(os.read, link.theirs.stdin, 1 << 16)
    await sending
    assert got == data
    link.theirs.close()
    link.close()


LATER = """
import subprocess, sys
from pathlib import Path
from sandbox.backends.runc import runtime
from sandbox.backends.runc.covers import covered
second, later = (Path(sys.argv[1], name) for name in ("second", "later"))
runtime._SECOND = second
mounts = runtime._without_the_second()
subprocess.run(["mount", "-t", "tmpfs", "none", later], check=True)
(later / "file").touch()
covered(lambda: subprocess.run(["ls", second, later], check=True), {}, mounts)
print(*(it.name for it in second.iterdir()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user mounts nothing")
def test_what_is_mounted_later_is_there_for_crun(tmp_path: Path) -> None:
    """Such as the disk with the images. What is hidden there is hidden from nobody else."""
    for name in ("second", "later"):
        (tmp_path / name).mkdir()
    (tmp_path / "second" / "cgroup.controllers").write_text("cpu\n")
    alone = ["unshare", "--mount", "--propagation", "shared"]
    command = [*alone, sys.executable, "-c", LATER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{tmp_path}/later:", "file", f"{tmp_path}/second:", "cgroup.controllers"]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptors_for_a_chamber() -> None:
    """The provider's failure, and none of those that there were is lost with it."""
    first = RuncLink()  # with what is made once
    first.close()
    first.theirs.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = [os.dup(0) for _ in range(5)]
    there = descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, hard))
    try:
        for descriptor in spare:
            os.close(descriptor)
        with pytest.raises(Unavailable, match="ulimit"):
            RuncLink()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert descriptors() == there - len(spare)
