"""A real engine keeps the contract, with runc and with gVisor."""

import pytest

from sandbox import DockerConfig
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.docker import DockerSubject

pytestmark = pytest.mark.docker

# With gVisor those whose outcome is another runtime's doing: what PID 1 sees, does and hears there, how a sandbox dies,
# what neighbours share. All others are the same code of ours, on the same streams; they run where it changed.
OF_GVISOR = """
    success_with_outputs facts_before_delivery crash_by_signal out_of_memory stop_with_partial_outputs stop_ignored
    kill_twice needs_refused_at_open frame_round_trips neighbours_see_nothing orphan_ends_itself orphan_is_reaped
"""


ROWS = [
    *(("runc", row) for row in CONTRACT),
    *(
        ("runsc", row) if row in OF_GVISOR.split() else pytest.param("runsc", row, marks=pytest.mark.touching("docker"))
        for row in CONTRACT
    ),
]


@pytest.mark.parametrize(("runtime", "row"), ROWS)
async def test_row(runtime: str, row: str) -> None:
    subject = DockerSubject(DockerConfig(runtime=runtime))
    try:
        if row in subject.lacks:
            with pytest.raises(NotConforming):
                await CONTRACT[row](subject)
        else:
            await CONTRACT[row](subject)
    finally:
        await subject.close()
