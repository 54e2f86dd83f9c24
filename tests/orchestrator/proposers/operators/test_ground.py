"""Operators with a profile of the root: where they look, and that it is no more than a hint."""

from orchestrator.change import Policy, Tree
from orchestrator.domain.profile import FileProfile, Profile
from orchestrator.proposers import Brief
from orchestrator.proposers.operators import Operators
from orchestrator.proposers.operators.ground import UNREACHED, Ground
from tests.orchestrator.proposers.operators.past import Remembered

SOURCE = b"""LIMIT = 3.5


def dead(a, b):
    a = a + 2.5
    b = b * 7.5
    return a * b


def f(x):
    waste = 0
    for at in range(100):
        waste = waste + at
    x = x + 1.5
    return x * LIMIT
"""
# As the module in the chamber tells it.
PROFILE = FileProfile(reached=((1, 1), (4, 4), (10, 15)), never=((5, 7),), heat={12: 100, 13: 800, 14: 10})


async def drawn(
    profile: Profile | None, *, hot: bool = False, count: int = 120, files: tuple[str, ...] = ("f.py",)
) -> list[str]:
    found = []
    for number in range(1, count + 1):
        tree = Tree.of(dict.fromkeys(files, SOURCE))
        brief = Brief(f"1.{number}", "1", number, 7, tree, past=Remembered(tree), profile=profile, hot=hot)
        [proposal] = await Operators(Policy(editable=files)).propose(brief)
        found.append(proposal.description)
    return found


async def test_what_no_run_reached_is_left_alone() -> None:
    """Almost: a profile proves nothing, so a few changes are tried there all the same. Without one, many are."""
    profile = Profile(samples=100, files={"f.py": PROFILE})
    hinted = sum(" dead()," in it for it in await drawn(profile, count=200))
    blind = sum(" dead()," in it for it in await drawn(None, count=200))
    assert blind > 40
    assert 0 < hinted < blind / 4


async def test_what_takes_the_time_is_left_out_first() -> None:
    """Where time counts; where it does not, or was looked at too seldom, nothing is made of heat."""
    profile, seldom = (Profile(samples=samples, files={"f.py": PROFILE}) for samples in (100, 5))
    ways = {"hot": (profile, True), "cold": (profile, False), "seldom": (seldom, True), "none": (None, True)}
    found = {
        name: sum(it.startswith("left out `for at in range(100)") for it in await drawn(known, hot=hot))
        for name, (known, hot) in ways.items()
    }
    assert found["hot"] > 3 * max(found["cold"], found["seldom"], found["none"])


async def test_no_profile_changes_nothing() -> None:
    """What was begun without one goes on with the very same draws; so does a profile that knows no file."""
    assert await drawn(None) == await drawn(Profile(), hot=True)


def test_lines_that_moved() -> None:
    """What is known of the root's lines follows them; of new lines nothing is known, unless all about them is dead."""
    now = SOURCE.replace(b"def dead", b"NEW = 1\n\n\ndef dead").replace(b"    x = x + 1.5\n", b"")
    ground = Ground(PROFILE, SOURCE, now)
    assert ground.chance(now.replace(b"7.5", b"8.5")) == UNREACHED
    assert ground.chance(now.replace(b"NEW = 1", b"NEW = 2")) == 1.0
    assert ground.chance(now.replace(b"range(100)", b"range(99)")) == 1.0
    assert ground.heat(now.index(b"    for at"), now.index(b"    return x")) == 1.0
    assert ground.heat(0, 5) == 0.0
    now = SOURCE.replace(b"7.5", b"8.5").replace(b"range(100)", b"range(99)")
    ground = Ground(PROFILE, SOURCE, now)
    assert ground.chance(now.replace(b"8.5", b"9.5")) == UNREACHED
    assert ground.chance(now.replace(b"range(99)", b"range(98)")) == 1.0
    unloaded = Ground(None, SOURCE, SOURCE)
    assert (unloaded.chance(b"other"), unloaded.is_hot, unloaded.heat(0, len(SOURCE))) == (UNREACHED, False, 0.0)


async def test_file_that_is_not_told() -> None:
    """A profile that was cut knows nothing of it, so it is drawn as often as without one; else no run loaded it."""
    told = {"f.py": PROFILE}
    whole, cut = (Profile(samples=100, files=told, cut=cut) for cut in (False, True))
    seldom, often, blind = [
        sum("of g.py" in it for it in await drawn(profile, files=("f.py", "g.py"))) for profile in (whole, cut, None)
    ]
    assert seldom < blind / 4
    assert often > blind / 2
