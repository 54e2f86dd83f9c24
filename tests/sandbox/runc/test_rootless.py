"""Chambers without root: an ordinary user makes them in a user namespace, and is told what is missing for that."""

import json
import os
import pwd
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox import Refused, RuncConfig
from sandbox.attacks.hosts import LocalTarget
from sandbox.backends.runc import cgroups, rootless
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import Estate, group_of, sweep
from sandbox.backends.runc.rootless import rights_here
from sandbox.environment import DOCKER, child_environment
from sandbox.posture import CHAMBER_UIDS
from tests.sandbox.runc.ordinary import UID, User, ordinary_user

MAPPED = "0 1000 1\n1 300000 65535\n"
V2 = "0::/user.slice/run-1.scope\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that lets everybody make user namespaces, seen by an ordinary user."""
    for name, file, text in (
        ("UID_MAP", "uid_map", "0 0 4294967295\n"),
        ("MOST_NAMESPACES", "most", "100"),
        ("SUBORDINATE", "subuid", "me:300000:65536\n"),
    ):
        (tmp_path / file).write_text(text)
        monkeypatch.setattr(rootless, name, tmp_path / file)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="me"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "subuid",
            "me:300000:65536\n",
            "systemd-run --user --scope -p Delegate=yes unshare --map-root-user --map-auto",
        ),
        ("subuid", "1000:300000:65536\n", "start it as"),
        ("most", "0", "user.max_user_namespaces"),
        ("most", None, "this kernel lets nobody"),
        ("subuid", "you:300000:65536\n", "usermod --add-subuids"),
        ("subuid", None, "usermod --add-subuids"),
    ],
)
def test_an_ordinary_user_is_told_what_is_missing(here: Path, file: str, text: str | None, said: str) -> None:
    """And how to start it; ids are given to a name or a number."""
    (here / file).unlink()
    if text is not None:
        (here / file).write_text(text)
    with pytest.raises(Refused, match=said):
        rights_here()


def test_a_user_without_a_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a container was told by number, for example."""

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(Refused, match=r"usermod .* 1000$"):
        rights_here()


def test_a_program_that_is_missing_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "newuidmap" else name)
    with pytest.raises(Refused, match=r"no newuidmap .* apt-get install util-linux uidmap"):
        rights_here()


def test_uids_are_those_of_the_namespace(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the machine's root far above those of users; of a namespace those that it has, less an image's own."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = rights_here()
    assert (found.rootless, found.uids) == (False, CHAMBER_UIDS)
    (here / "uid_map").write_text(MAPPED)
    found = rights_here()
    assert (found.rootless, found.uids) == (True, range(10_000, 65_534))
    for few in ("0 1000 1\n", "0 1000 1\n1 300000 10998\n"):
        (here / "uid_map").write_text(few)
        with pytest.raises(Refused, match="too few ids"):
            rights_here()


@pytest.mark.parametrize(
    ("rights", "mapped", "most"),
    [
        ("000001ffffffffff", False, {}),
        ("000001fffeffffff", False, {"MSGQUEUE": 64, "NPROC": 64, "SIGPENDING": 64}),
        ("000001ffffffffff", True, {"MSGQUEUE": 8, "NPROC": 64, "SIGPENDING": 2}),
    ],
    ids=["may raise", "may not raise", "rootless"],
)
def test_limits_that_cannot_be_raised(
    here: Path, monkeypatch: pytest.MonkeyPatch, rights: str, mapped: bool, most: dict[str, int]
) -> None:
    """Ours bound those of chambers where we lack the right to raise them; what a user shares is divided."""
    (here / "status").write_text(f"Name:\tpython\nCapEff:\t{rights}\n")
    monkeypatch.setattr(rootless, "STATUS", here / "status")
    if mapped:
        (here / "uid_map").write_text(MAPPED)
    finite = {resource.RLIMIT_MSGQUEUE, resource.RLIMIT_NPROC, resource.RLIMIT_SIGPENDING}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(resource, "getrlimit", lambda it: (0, 64 if it in finite else resource.RLIM_INFINITY))
    assert rights_here().limits == {f"RLIMIT_{name}": value for name, value in most.items()}


def delegated(folder: Path, here: Path, monkeypatch: pytest.MonkeyPatch, ours: str = V2) -> Cgroups:
    """Version 2, mounted in a folder, with all controllers in the group that we were started in."""
    place = folder / ours.partition("::/")[2].strip()
    place.mkdir(parents=True)
    for name, text in (("cgroup.controllers", "cpu memory pids"), ("cgroup.subtree_control", ""), ("cgroup.procs", "")):
        (place / name).write_text(text)
    (folder / "mounts").write_text(f"30 20 0:25 / {folder} rw shared:9 - cgroup2 cgroup2 rw")
    (folder / "ours").write_text(ours)
    (here / "uid_map").write_text(MAPPED)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "OURS", folder / "ours")
    return Cgroups.of_this_machine(folder / "mounts")


def test_groups_are_made_below_the_delegated_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who are in it go to a seat beside the chambers: no group has both processes and limits for others."""
    folder = here / "cgroup"
    found = delegated(folder, here, monkeypatch)
    assert found.path("blastdoor-o/c") == "/user.slice/run-1.scope/blastdoor-o/c"
    ours = folder / found.place
    (ours / "cgroup.procs").write_text("12\n34\n")
    moved: list[str] = []
    (ours / "blastdoor-o").mkdir()
    (ours / "blastdoor-o" / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(Path, "mkdir", lambda *_words, **_more: None)
    monkeypatch.setattr(Path, "write_text", lambda it, text, *_: moved.append(f"{text} {it.relative_to(ours)}"))
    found.found("blastdoor-o")
    assert moved == [
        "12 blastdoor-seat/cgroup.procs",
        "34 blastdoor-seat/cgroup.procs",
        "+cpu +memory +pids cgroup.subtree_control",
        "+cpu +memory +pids blastdoor-o/cgroup.subtree_control",
    ]


def test_a_process_on_the_seat_means_the_group_above(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warden is started by an owner that sat down already."""
    found = delegated(here / "cgroup", here, monkeypatch)
    (here / "cgroup" / "ours").write_text(V2.replace(".scope", ".scope/blastdoor-seat"))
    assert Cgroups.of_this_machine(here / "cgroup" / "mounts").place == found.place


@pytest.mark.parametrize("ours", ["0::/\n", "3:cpu:/a\n2:memory:/b\n1:pids:/a\n", "2:memory:/\n1:cpu,pids:/\n0::/x\n"])
def test_no_group_is_delegated(here: Path, monkeypatch: pytest.MonkeyPatch, ours: str) -> None:
    delegated(here / "cgroup", here, monkeypatch)
    (here / "cgroup" / "ours").write_text(ours)
    with pytest.raises(Refused, match="no one group is delegated"):
        Cgroups.of_this_machine(here / "cgroup" / "mounts")


def test_only_version_1_is_delegated(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with both, the group need not be there in version 2, which has no controller."""
    delegated(here / "cgroup", here, monkeypatch)
    (here / "cgroup" / "ours").write_text("3:cpu:/ours\n2:memory:/ours\n1:pids:/ours\n0::/\n")
    lines = ["30 20 0:25 / /v2 rw - cgroup2 cgroup2 rw"]
    lines += [f"30 20 0:25 / /v1/{name} rw - cgroup cgroup rw,{name}" for name in ("cpu", "memory", "pids")]
    (here / "mounts").write_text("\n".join(lines))
    monkeypatch.setattr(cgroups, "SWAPS", here / "none")
    assert Cgroups.of_this_machine(here / "mounts").place == "ours"


def test_another_owners_groups_are_found_where_it_made_them(tmp_path: Path) -> None:
    """It may have been started in another scope than who cleans up."""
    hierarchy = cgroups.Hierarchy(tmp_path / "cgroup", frozenset(cgroups.WANTED), False)
    for place in ("a", "b"):
        (tmp_path / "cgroup" / place).mkdir(parents=True)
    theirs = Estate(tmp_path / "state", Cgroups((hierarchy,), "a"))
    assert (tmp_path / "cgroup" / "a" / group_of(theirs.owner)).is_dir()
    sweep(tmp_path / "state", theirs.owner, Cgroups((hierarchy,), "b"))
    assert not (tmp_path / "cgroup" / "a" / group_of(theirs.owner)).exists()


@pytest.fixture(scope="module")
def user() -> Iterator[User]:
    with ordinary_user() as found:
        for name in ("blastdoor-trial:latest", "blastdoor-attack:latest"):
            archive = found.home / "image.tar"
            save = ["docker", "save", "--output", str(archive), name]
            subprocess.run(save, env=child_environment(DOCKER), check=True)
            archive.chmod(0o644)
            loaded = found.run("blastdoor", "images", "load", str(archive), name)
            assert loaded.returncode == 0, loaded.stderr
            archive.unlink()
        yield found


@pytest.mark.docker
@pytest.mark.timeout(600)
@pytest.mark.parametrize("runtime", ["runc", pytest.param("crun", marks=pytest.mark.touching("runc"))])
def test_contract(user: User, runtime: str) -> None:
    """All of it, also that a killed owner leaves nothing; and what is weaker is told."""
    done = user.run("blastdoor", "doctor", "--backend", runtime)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "26 rows hold, 0 broken" in done.stdout
    assert "rootless" in done.stdout


@pytest.mark.touching("baking")
@pytest.mark.docker
@pytest.mark.timeout(600)
def test_images_are_built(user: User) -> None:
    """From Debian's packages, and on an image that is there: nothing is mounted where others could see it."""
    built = user.run("blastdoor", "images", "build", "--backend", "runc", "busybox")
    assert built.returncode == 0, built.stderr
    in_it = ("exec", "--backend", "runc", "--image", "blastdoor-busybox:latest", "--", "sh", "-c", "echo in it")
    assert user.run("blastdoor", *in_it).stdout == "in it\n"
    own = ("--base", "blastdoor-busybox:latest", "--tag", "own", "attack")
    refused = user.run("blastdoor", "images", "build", "--backend", "runc", *own)
    assert refused.returncode == 3
    assert "the base image lacks python3 (exit 1)" in refused.stderr


@pytest.mark.docker
@pytest.mark.attack
@pytest.mark.timeout(600)
@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_walls(user: User, runtime: str) -> None:
    """Uids, quotas of a user, other namespaces, limits of memory and processes, and files of a chamber's own."""
    rows = ["T04", "T06", "T12", "T18", "T19", "T23", "T97", "T98"]
    done = user.run("blastdoor", "attack", "--backend", runtime, *(word for row in rows for word in ("--only", row)))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.docker
@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("runtime", "more"), [("runc", ()), ("crun", ()), ("runc", ("--mutate",))])
def test_every_attack(user: User, runtime: str, more: tuple[str, ...]) -> None:
    """Blocked; and every flag that is switched off is noticed."""
    done = user.run("blastdoor", "attack", "--backend", runtime, *more)
    assert done.returncode == 0, done.stdout + done.stderr


def test_flags_that_the_kernel_keeps_on(here: Path) -> None:
    """No ordinary user may share the host's own namespaces: no chamber would start without these flags."""
    assert set(LocalTarget(RuncConfig()).never) == {"log_driver"}
    (here / "uid_map").write_text(MAPPED)
    assert set(LocalTarget(RuncConfig()).never) == {"log_driver", "network", "ipc"}


@pytest.mark.docker
@pytest.mark.parametrize(
    ("how", "said"),
    [({"namespace": False}, "unshare --map-root-user --map-auto"), ({"ids": 100}, "too few ids")],
)
def test_without_a_namespace(user: User, how: dict[str, Any], said: str) -> None:
    """One line says how to start it, or what it lacks, and nothing is made."""
    done = user.run("blastdoor", "exec", "--backend", "runc", "--", "true", **how)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.docker
@pytest.mark.timeout(600)
def test_campaign(user: User) -> None:
    """A real one, with a judge in a chamber of its own: candidates, judge and ledger belong to the user. What the task
    adds to its image is baked in the user's own namespace; no engine answers.
    """
    task = user.home / "task"
    made = user.run("blastdoor", "init", str(task))
    assert made.returncode == 0, made.stderr
    text = (task / "blastdoor.toml").read_text()
    text = text.replace("# [image]\n", '[image]\nrun = ["echo 42 > /etc/answer"]\n')
    text = text.replace('command = ["python3", "solve.py"]', 'command = "cat /etc/answer && python3 solve.py"')
    (task / "blastdoor.toml").write_text(text)
    done = user.run("blastdoor", "run", str(task), "--backend", "runc", "--attempts", "4", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keeping the image as blastdoor-baked:" in done.stdout + done.stderr
    seen = json.loads(user.run("blastdoor", "status", str(task), "--json", namespace=False).stdout)
    assert seen["campaign"]["counts"] == {"1/baseline": 1, "1/search": 4}
    assert {it.stat().st_uid for it in (task / ".blastdoor").rglob("*")} == {UID}
    log = user.run("blastdoor", "logs", "1", str(task), namespace=False)
    assert log.stdout.startswith("42"), log.stdout + log.stderr
