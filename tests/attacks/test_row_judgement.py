"""A row is good when its attack ran, had no effect, and ended as the taxonomy says: a death by the limit, too."""

from collections.abc import Callable
from functools import partial

import pytest

from benchmarks.channels import capacity
from sandbox.attacks.attack import QUICK, Finding
from sandbox.attacks.capture.results import late_finding
from sandbox.attacks.channels import BITS, READ, message, read_right
from sandbox.attacks.exhaustion.processes import FORKS, RESPONSIVE_S, forks_finding
from sandbox.attacks.exhaustion.space import INODES, buffers_finding, hog_finding, inodes_finding, tmpfs_finding
from sandbox.attacks.forge import Seen
from sandbox.job import Ending, Outcome

Judge = Callable[[Seen], Finding]

GVISOR_INODES = partial(inodes_finding, is_gvisor=True, limit=QUICK.work_inodes)
RUNC_INODES = partial(inodes_finding, is_gvisor=False, limit=QUICK.work_inodes)
GVISOR_BUFFERS = partial(buffers_finding, is_gvisor=True)
RUNC_BUFFERS = partial(buffers_finding, is_gvisor=False)
GVISOR_FORKS = partial(forks_finding, is_gvisor=True, slowest=0.1)
RUNC_FORKS = partial(forks_finding, is_gvisor=False, slowest=0.1)
SHUT = "at netlink\nnetlink held 0 MiB, error 13\nat udp\nudp held 0 MiB, error 13\nat unix\n"
OPEN = "at netlink\nnetlink held 0 MiB, error 13\nat udp\nudp held 106 MiB, error 0\nat unix\n"
DIED = Ending.OUT_OF_MEMORY


def seen(log: str, ending: Ending, *, gone: bool = True) -> Seen:
    return Seen(Outcome(ending=ending, log_tail=log.encode()), gone)


@pytest.mark.parametrize(
    ("judge", "log", "ending"),
    [
        pytest.param(hog_finding, "holds 10 MiB\nholds 100 MiB\n", DIED, id="T14 memory"),
        pytest.param(tmpfs_finding, "wrote 43 MiB\n", DIED, id="T15 tmpfs"),
        pytest.param(GVISOR_INODES, "made 9500\n", DIED, id="T16 inodes on runsc"),
        pytest.param(RUNC_INODES, "made 1500\n", Ending.WORK_FULL, id="T16 inodes on runc"),
        pytest.param(GVISOR_BUFFERS, "at netlink\n", DIED, id="T14 buffers on runsc, died of the first"),
        pytest.param(GVISOR_BUFFERS, OPEN, DIED, id="T14 buffers on runsc, died of another"),
        pytest.param(GVISOR_BUFFERS, OPEN, Ending.COMPLETED, id="T14 buffers on runsc"),
        pytest.param(RUNC_BUFFERS, SHUT, Ending.COMPLETED, id="T14 buffers on runc"),
        pytest.param(RUNC_BUFFERS, SHUT, DIED, id="T14 buffers on runc, died of those that are counted"),
        pytest.param(GVISOR_FORKS, "forked 9\n", Ending.FAILED, id="T13 forks on runsc"),
        pytest.param(RUNC_FORKS, "forked 9\n", Ending.PROCESS_LIMIT, id="T13 forks on runc"),
    ],
)
def test_held_to_a_limit(judge: Judge, log: str, ending: Ending) -> None:
    """What a limit ended was blocked; unless it never ran, or is still there."""
    assert judge(seen(log, ending)) == Finding(True, True, str(ending), judge(seen(log, ending)).evidence)
    assert not judge(seen("", ending)).ran
    if judge not in (GVISOR_BUFFERS, RUNC_BUFFERS) or ending is DIED:
        assert not judge(seen(log, ending, gone=False)).blocked


@pytest.mark.parametrize(
    ("judge", "log", "ending"),
    [
        pytest.param(hog_finding, "holds 100 MiB\n", Ending.FAILED, id="T14 died of something else"),
        pytest.param(hog_finding, "holds 400 MiB\n", Ending.COMPLETED, id="T14 without a limit"),
        pytest.param(hog_finding, "holds 300 MiB\n", DIED, id="T14 with another limit"),
        pytest.param(tmpfs_finding, "wrote 80 MiB\n", Ending.COMPLETED, id="T15 without a limit"),
        pytest.param(GVISOR_INODES, f"made {INODES}\n", Ending.COMPLETED, id="T16 without a limit"),
        pytest.param(GVISOR_INODES, "made 9500\n", Ending.FAILED, id="T16 died of something else"),
        pytest.param(RUNC_INODES, "made 9500\n", Ending.WORK_FULL, id="T16 past the limit"),
        pytest.param(RUNC_INODES, "made 1500\n", DIED, id="T16 on runc by its memory"),
        pytest.param(GVISOR_BUFFERS, SHUT.replace("held 0", "held 90"), Ending.COMPLETED, id="T14 buffers on runsc"),
        pytest.param(RUNC_BUFFERS, OPEN, Ending.COMPLETED, id="T14 buffers on runc"),
        pytest.param(RUNC_BUFFERS, OPEN, DIED, id="T14 buffers on runc, died of others"),
        pytest.param(GVISOR_FORKS, f"forked {FORKS}\n", Ending.COMPLETED, id="T13 without a limit"),
        pytest.param(GVISOR_FORKS, "forked 9\n", DIED, id="T13 on runsc by its memory"),
        pytest.param(RUNC_FORKS, "forked 9\n", DIED, id="T13 on runc by its memory"),
        pytest.param(
            partial(GVISOR_FORKS, slowest=RESPONSIVE_S), "forked 9\n", Ending.FAILED, id="T13 with a deaf engine"
        ),
    ],
)
def test_not_held(judge: Judge, log: str, ending: Ending) -> None:
    """The controls: what ran and was not held by its own limit is an attack that succeeded."""
    finding = judge(seen(log, ending))
    assert (finding.ran, finding.blocked) == (True, False)


@pytest.mark.parametrize(("ending", "blocked"), [(Ending.COMPLETED, True), (Ending.FAILED, True), (DIED, False)])
def test_t33_program_may_fail_over_its_thread(ending: Ending, blocked: bool) -> None:
    """Python 3.12 does, when it ends beside a thread that goes on: what counts is that nobody writes any more."""
    dead, alive = ({"1/first": b"%016d" % 7, "3/last": b"%016d" % last} for last in (7, 9000))
    said = b"rewriter stays\n"
    assert late_finding(Seen(Outcome(ending=ending, outputs=dead, log_tail=said), True)).blocked is blocked
    assert not late_finding(Seen(Outcome(ending=ending, outputs=alive, log_tail=said), True)).blocked
    assert not late_finding(Seen(Outcome(ending=ending, outputs=dead, log_tail=said), False)).blocked


def test_t83_message_is_read_by_order() -> None:
    """A reader that sees the bits has all of them, one that sees nothing has half, and one without a look has none."""
    sent = message()
    assert (len(sent), sum(sent)) == (BITS, BITS // 2)
    assert read_right(sent, [9.0 if bit else 2.0 for bit in sent]) == BITS
    assert read_right(sent, [2.0 if bit else 9.0 for bit in sent]) == 0
    assert read_right([1, 0] * (BITS // 2), [1.0] * BITS) == BITS // 2 < READ
    assert read_right(sent, []) == 0


@pytest.mark.parametrize(("right", "least", "most"), [(64, 0, 0), (80, 0, 0), (96, 0.18, 0.2), (128, 1, 1), (0, 1, 1)])
def test_t83_capacity(right: int, least: float, most: float) -> None:
    """Of 128 bits: nothing within four deviations of chance, all of it where all are right or all are wrong."""
    assert least <= capacity(right, 128) <= most
