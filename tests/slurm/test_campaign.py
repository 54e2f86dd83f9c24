"""The whole circle_packing campaign on machines that SkyPilot really rents, compared with the same one on docker."""

from pathlib import Path

import pytest

from private_slurm import PrivateSlurm
from tests.e2e.backends import GOLD, JUDGE, SENT, circle_packing, run

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]
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

    async def seen_submit(self: SkyPilot, name: str, command: str) -> int:
        postman.see(command.encode())
        return await submit(self, name, command)

    monkeypatch.setattr(SkyPilot, "send", seen_send)
    monkeypatch.setattr(SkyPilot, "call", seen_call)
    monkeypatch.setattr(SkyPilot, "submit", seen_submit)
    return postman


def test_on_skypilot(tmp_path: Path, rented: PrivateSlurm, postman: Postman) -> None:
    """Scores, endings and tree are those of docker; no cohort is shared; what was sent holds no gold and no judge."""
    on_docker = run(circle_packing(tmp_path / "docker"), attempts=1)
    on_skypilot = run(circle_packing(tmp_path / "skypilot"), attempts=1, backend="skypilot", infra=rented.infra)
    assert on_skypilot.nodes == on_docker.nodes
    assert len(on_docker.nodes) == 2
    assert not on_skypilot.cohorts & on_docker.cohorts
    assert on_skypilot.site.backend == f"skypilot/{rented.infra}/fresh"
    assert on_skypilot.site.judge == "docker/runc"
    assert on_skypilot.site.caveats
    assert postman.found == {SENT}
    assert on_skypilot.usd > 0
    assert rented.jobs() == []
