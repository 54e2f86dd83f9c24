"""The wrapper that root runs before a candidate: what it holds, and what is refused when it cannot."""

import os
import subprocess
from collections.abc import Sequence
from importlib import resources

import pytest

from sandbox.backends.modal import guest as modal_guest
from sandbox.backends.modal.backend import ModalBackend
from sandbox.bundle import Bundle
from sandbox.errors import Refused, Unavailable
from sandbox.job import Ending, Enforcer, Job, Limits
from tests.modal_emulator import ModalEmulator

UID = 1_600_001
HELD = {
    "uid": f"{UID} {UID} {UID} {UID}",
    "capabilities": "0000000000000000",
    "no_new_privileges": "1",
    "held": "pids open_files core",
}
JOB = Job(command=("true",))


def test_what_must_hold_and_what_need_not() -> None:
    """A chamber whose facts are all there is taken; files and root are labelled, not demanded. gVisor reports no
    privileges: the order itself was taken, or the wrapper would have ended.
    """
    modal_guest.compare(HELD, JOB, UID)
    modal_guest.compare({name: value for name, value in HELD.items() if name != "no_new_privileges"}, JOB, UID)


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("uid", "0 0 0 0", "uid: wanted"),
        ("uid", f"{UID} 0 {UID} {UID}", "uid: wanted"),
        ("capabilities", "00000000a80425fb", "capabilities: wanted"),
        ("no_new_privileges", "0", "no_new_privileges: wanted 1"),
        ("held", "open_files core", "pids: the sandbox's kernel does not limit it"),
        ("held", "", "open_files: the sandbox's kernel"),
        ("gpu", "NVIDIA A10", "gpu: none was asked for"),
    ],
)
def test_less_is_refused(name: str, value: str, word: str) -> None:
    with pytest.raises(Refused, match=word):
        modal_guest.compare({**HELD, name: value}, JOB, UID)


def test_root_that_does_not_let_go() -> None:
    """No other try would help: that is a refusal, other last words are not."""
    assert isinstance(modal_guest.told(Unavailable("did not start: setpriv: not permitted")), Refused)
    other = Unavailable("did not start: cut")
    assert modal_guest.told(other) is other


def test_labels_are_honest() -> None:
    """What the guest holds is not called the engine's, and what nobody promises is called nobody's."""
    found = modal_guest.capabilities()
    assert found.enforcer("memory") is Enforcer.ENGINE
    assert found.enforcer("pids") is Enforcer.GUEST
    assert found.enforcer("work_bytes") is Enforcer.NOBODY
    assert found.caveats
    assert set(found.enforced) == set(Limits.model_fields)


def boot(*flags: str, image: str = "blastdoor-trial:latest", script: str | None = None) -> dict[str, str]:
    """The facts of a chamber in a container that the engine makes as permissive as it is told."""
    text = script or resources.files("sandbox").joinpath("boot.sh").read_text("utf-8")
    words: Sequence[str] = modal_guest.command(UID, Limits(), text)
    command = ["docker", "run", "--rm", "-i", "--network", "none", *flags, image, *words]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=os.environ)
    facts = {"stderr": ran.stderr}
    for line in ran.stdout.splitlines():
        if line.startswith("fact "):
            _, name, *value = line.split()
            facts[name] = " ".join([*facts.get(name, "").split(), *value])
    return facts


@pytest.mark.docker
def test_where_nothing_can_be_mounted() -> None:
    """As on the emulator: rights are given up and processes limited, and the wrapper claims no more than that. With
    BusyBox's setpriv, which knows no bounding set, it ends before anything hostile, and says why.
    """
    facts = boot()
    assert (facts["held"], facts["capabilities"]) == ("pids open_files core", "0000000000000000")
    other = boot(image="blastdoor-busybox:latest")
    assert "uid" not in other
    assert "setpriv" in other["stderr"]


@pytest.mark.docker
def test_where_mounts_are_allowed() -> None:
    """Then files are limited as well, and the root is closed."""
    probe = (
        "echo blastdoor 1; for path in /x /usr/x /tmp/x /work/x /dev/shm/x; do "
        "(: >$path) 2>/dev/null && echo fact writes $path; done; echo ready"
    )
    allowed = ("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined")
    assert boot(*allowed)["held"] == "work_bytes work_inodes read_only_root pids open_files core"
    writes = boot(*allowed, script=probe)
    assert writes["writes"].split() == ["/tmp/x", "/work/x", "/dev/shm/x"]
    sized = boot(*allowed, script="echo blastdoor 1; echo fact size $(stat -f -c '%b %S %c' /work)")
    blocks, size, inodes = map(int, sized["size"].split())
    assert blocks * size == Limits().work_bytes
    assert inodes == Limits().work_inodes


@pytest.mark.docker
@pytest.mark.modal
async def test_a_trial_where_mounts_are_allowed(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """A whole trial on the wrapper's mounts: the bundle comes, outputs leave, the size holds, the root is closed."""
    modal_emulator.allow_mounts()
    fill = "head -c 9000000 /dev/zero >big || echo full; rm -f big"
    script = f"cat main.txt >/work/out/x; {fill}; (: >/tmp/x) && ! (: >/var/tmp/x)"
    limits = Limits(wall=30, memory="128MiB", work_bytes=8 * 1024**2)
    async with await backend.open(Job(command=("sh", "-c", script), limits=limits)) as chamber:
        outcome = await chamber.run(Bundle({"main.txt": b"hello"}))
    assert outcome.facts["held"] == "work_bytes work_inodes read_only_root pids open_files core"
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"x": b"hello"})
    assert b"full" in outcome.log_tail


@pytest.mark.docker
def test_variables_of_the_image_and_the_service_stay_outside() -> None:
    """Nothing preloads code into what runs as the candidate, and no token of the service is there to be read."""
    flags = ("-e", "LD_PRELOAD=/x.so", "-e", "MODAL_IDENTITY_TOKEN=secret", "-e", "LANG=C.UTF-8")
    script = "echo blastdoor 1; echo fact env $(env | cut -d= -f1 | sort)"
    assert boot(*flags, script=script)["env"].split() == ["LANG", "PATH", "PWD"]
