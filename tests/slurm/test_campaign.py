"""The whole circle_packing campaign on machines that SkyPilot really rents, compared with the same one on docker."""

import json
from pathlib import Path
from typing import Any

import pytest

from private_slurm import PrivateSlurm
from tests.e2e.backends import GOLD, JUDGE, SENT, blastdoor, circle_packing, run

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.touching("skypilot"),
]
_PIECE = 1 << 20


class Postman:
    """Reads what is sent to a machine, on its way: every file and every line."""

    def __init__(self, *needles: str) -> None:
        self._needles = [needle.encode() for needle in needles]
        self.found: set[str] = set()

    def see(self, data: bytes) -> None:
        self.found.update(needle.decode() for needle in self._needles if needle in data)

    def see_folder(self, folder: Path) -> None:
        """A needle may lie over the edge of two pieces."""
        for path in (path for path in folder.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                rest = b""
                while piece := file.read(_PIECE):
                    self.see(rest + piece)
                    rest = piece[-256:]


@pytest.fixture
def postman(rented: PrivateSlurm, monkeypatch: pytest.MonkeyPatch) -> Postman:
    """SkyPilot is imported here, after `rented` said where it is."""
    from sandbox.backends.skypilot.sdk import SkyPilot

    postman, send, call, submit = Postman(SENT, GOLD, JUDGE), SkyPilot.send, SkyPilot.call, SkyPilot.submit

    async def seen_send(self: SkyPilot, name: str, source: Path, target: str, timeout: float) -> None:
        postman.see_folder(source)
        await send(self, name, source, target, timeout)

    async def seen_call(self: SkyPilot, name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        postman.see(command.encode())
        return await call(self, name, command, cap, timeout)

    async def seen_submit(self: SkyPilot, name: str, command: str) -> None:
        postman.see(command.encode())
        await submit(self, name, command)

    monkeypatch.setattr(SkyPilot, "send", seen_send)
    monkeypatch.setattr(SkyPilot, "call", seen_call)
    monkeypatch.setattr(SkyPilot, "submit", seen_submit)
    return postman


def test_on_skypilot(tmp_path: Path, rented: PrivateSlurm, postman: Postman) -> None:
    """Scores, endings and tree are those of docker; no cohort is shared; what was sent holds no gold and no judge. With
    a machine for each trial they cost by themselves (on a standing one the campaign pays: `test_outages.py`).

    `doctor` says who pays and what a chamber sees, and runs rows of the contract; `reap` works there.
    """
    on_docker = run(circle_packing(tmp_path / "docker"), attempts=1)
    assert len(on_docker.nodes) == 2
    on_skypilot = run(circle_packing(tmp_path / "fresh"), attempts=1, backend="skypilot", infra=rented.infra)
    assert on_skypilot.nodes == on_docker.nodes
    assert not on_skypilot.cohorts & on_docker.cohorts
    assert (on_skypilot.site.backend, on_skypilot.site.judge) == (f"skypilot/{rented.infra}/fresh", "docker/runc")
    assert on_skypilot.site.caveats
    assert on_skypilot.usd > 0 == on_skypilot.standing_usd
    assert rented.jobs() == []
    assert postman.found == {SENT}
    words = ("--backend", "skypilot", "--infra", rented.infra, "--only", "success_with_outputs", "--json")
    doctor = blastdoor("doctor", *words)
    assert doctor.returncode == 0, doctor.stderr
    found: dict[str, Any] = json.loads(doctor.stdout)
    assert [(row["subject"], row["holds"]) for row in found["rows"]] == [(f"skypilot/{rented.infra}", True)]
    assert found["account"]["where"] == rented.infra
    assert found["posture"]["facts"]["capabilities"] == "0" * 16
    assert blastdoor("reap", "--backend", "skypilot").stdout == "nothing was left behind\n"
