"""A winner without ballast: what does nothing for its score is left out, and the rest is told with its worth."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.minimal import minimal_of
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Minimal, Node, Phase, Purpose, Role
from orchestrator.ledger import Held
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.noise import gaussian, noisy
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import (
    CPU,
    GUARD,
    HELDOUT,
    Act,
    Point,
    Scripted,
    ran,
    scripted,
    write_task,
    written,
)

POINT: Point = {"value": 7, "noise": 1, "ballast": 2, "more": 3, "idle": 4}
WINNER = written(POINT)
WORTH = [("params.json: value", {"score": 0.0})]


async def searched(folder: Path, *proposed: Point | Act, script: Script | None = None, **flags: Any) -> None:
    await ran(folder, script, *proposed, attempts=len(proposed), **flags)


@asynccontextmanager
async def apart(
    folder: Path, script: Script | None = None, winner: str = "1.1", **flags: Any
) -> AsyncIterator[Scripted]:
    """A session that takes a node apart, as the command does: not again where an earlier one came to its end."""
    async with scripted(folder, script, WINNER, how=How.RESUME, **flags) as session:
        if minimal_of(session.state, session.nodes[winner]) is None:
            session.campaign.minimise(winner)
        yield session


async def minimised(folder: Path, script: Script | None = None, winner: str = "1.1", **flags: Any) -> Scripted:
    """Taken apart, to the end."""
    async with apart(folder, script, winner, **flags) as session:
        await session.run()
    return session


def found_by(session: Scripted, name: str = "1.1.1") -> tuple[Node, Minimal]:
    node = session.nodes[name]
    assert node.minimal is not None
    return node, node.minimal


def check_kept(session: Scripted, name: str = "1.1.1") -> tuple[Node, Minimal]:
    """The one value that the judge looks at is left."""
    node, minimal = found_by(session, name)
    assert node.kept, node.why
    assert worth(minimal) == WORTH
    return node, minimal


def worth(minimal: Minimal) -> list[tuple[str, dict[str, float] | None]]:
    return [(part.where, part.worth) for part in minimal.kept]


def used(session: Scripted) -> int:
    return session.accounts.used(Account.MINIMISATION)


async def test_point_without_ballast(folder: Path) -> None:
    """Of five values, of which the judge looks at one, that one is left; nothing is drawn from attempts."""
    await searched(folder, WINNER)
    session = await minimised(folder)
    node, minimal = check_kept(session)
    assert (node.role, node.parent, len(minimal.dropped)) == (Role.MINIMISED, "1.1", 4)
    assert node.verdict
    assert node.verdict.metrics == {"score": 7.0}
    assert session.champion == "1.1"
    assert session.accounts.used(Account.ATTEMPTS) == 1
    assert 1 <= used(session) <= 8
    assert used(session) == session.script.commands.count("trial")
    assert "1.1 is taken apart: not worse than 1.1" in session.reason


def editing(*lines: str) -> Act:
    """A change of the notes, which nobody scores, line by line."""

    async def act(brief: Brief) -> Sequence[Proposal]:
        old = brief.tree["notes.txt"].data.decode()
        new = old + "".join(f"{line}\n" for line in lines)
        text = f"--- a/notes.txt\n+++ b/notes.txt\n@@ -1,{old.count(chr(10))} +1,{new.count(chr(10))} @@\n"
        text += "".join(f" {line}\n" for line in old.splitlines()) + "".join(f"+{line}\n" for line in lines)
        return [Proposal(operator="edit", description="notes", text=text)]

    return act


async def test_several_generations(folder: Path) -> None:
    """The change is the one since the baseline: what a grandparent brought along goes, too."""
    acts = (editing("one", "two"), written({"value": 9, "idle": 1}))
    assert (await ran(folder, None, *acts, attempts=2, branching=True, depth=2)).champion == "1.1.1"
    async with apart(folder, winner="1.1.1") as session:
        await session.run()
        node, minimal = check_kept(session, "1.1.1.1")
        assert {part.where for part in minimal.dropped} == {"notes.txt:2", "notes.txt:3", "params.json: idle"}
        assert (await session.bench.tree(node.id))["notes.txt"] == session.bench.root["notes.txt"]


@pytest.mark.parametrize(
    ("kind", "times", "width"),
    [
        (e.AttemptOpened, 1, 1),
        (e.Proposed, 1, 1),
        (e.TrialIntended, 2, 3),
        (e.TrialEnded, 1, 3),
        (e.JudgingIntended, 1, 1),
        (e.JudgingEnded, 2, 3),
        (e.Settled, 2, 3),
        (e.Minimised, 1, 1),
        (e.Promoted, 1, 1),
    ],
)
async def test_stop_and_go_on(folder: Path, kind: type[e.Event], times: int, width: int) -> None:
    """Stopped wherever, it goes on from the record: the same result, and nothing that was measured is run again. It
    holds up no search meanwhile: a resume that is told nothing leaves it where it is.

    A stop is heard a moment later. What came to its end meanwhile is not begun again.
    """
    await searched(folder, WINNER, width=width)
    async with apart(folder) as session:
        session.stop_at(kind, times)
        assert (await session.run()).reason == "Ctrl-C"
        assert not session.accounts.holds
    if kind is e.TrialEnded:
        searching = await ran(folder, None, WINNER, {"value": 6}, how=How.RESUME, attempts=2)
        assert (searching.nodes["1.1.1"].phase, searching.nodes["1.2"].ending) == (Phase.QUEUED, Ending.SCORED)
    session = await minimised(folder)
    node, _ = check_kept(session)
    told = [it for it in session.state.trials_of(node.id) if it.judged]
    assert max(Counter((it.purpose, it.draft) for it in told).values()) == 1
    assert used(session) == len(told)
    assert "1.1.2" not in session.nodes


async def test_two_at_once(folder: Path, on_disk: None) -> None:
    """A campaign that somebody works on is not taken apart by another one."""
    await searched(folder, WINNER)
    async with apart(folder):
        with pytest.raises(Held):
            await minimised(folder)


async def test_trials_used_up(folder: Path) -> None:
    """With none nothing is begun; with too few the smallest that passed counts, and more go on from there."""
    await searched(folder, WINNER, width=1)
    session = await minimised(folder, minimisation=0)
    assert "minimisation: 1 minimising trial needed, 0 minimising trials left" in session.reason
    assert "1.1.1" not in session.nodes
    session = await minimised(folder, minimisation=3)
    _, minimal = found_by(session)
    assert not minimal.complete
    # What it holds itself for the end cannot come free before it ends.
    assert "minimisation: 1 minimising trial needed, 0 minimising trials left; raise the cap" in minimal.why
    assert used(session) <= 3
    session = await minimised(folder, minimisation=30)
    assert check_kept(session, "1.1.2")[1].complete
    assert session.script.commands.count("trial") <= 6


async def test_nothing_to_leave_out(folder: Path) -> None:
    """A change of which everything is needed ends as that, without a candidate, and is not tried a second time."""
    await searched(folder, {"value": 7})
    session = await minimised(folder)
    node, minimal = found_by(session)
    assert (node.ending, node.kept, node.commit) == (Ending.SCORED, False, None)
    assert node.why == "1.1: no part of it can be left out"
    assert worth(minimal) == WORTH
    assert used(session) == 0  # the baseline's score was known


async def test_no_better_than_baseline(folder: Path) -> None:
    """Of a node that is no better than the baseline, nothing is left."""
    await searched(folder, written({"value": 0, "ballast": 1}))
    node, minimal = found_by(await minimised(folder))
    assert (node.kept, list(minimal.kept)) == (False, [])
    assert "the baseline is as good" in node.why


async def test_refunded(folder: Path) -> None:
    """An engine that fails costs no trial: it is tried again, and comes to the same."""
    await searched(folder, WINNER)
    session = await minimised(folder, failing(2))
    node, _ = check_kept(session)
    assert used(session) == sum(it.judged for it in session.state.trials_of(node.id))


class Needing(Script):
    """A candidate fails without its own word for what it does."""

    async def trial(self, guest: Guest) -> int:
        return await super().trial(guest) if b'"do"' in guest.files["params.json"] else 3


async def test_selection_that_fails(folder: Path) -> None:
    """A part without which the trial fails is needed, and the table says how it ended."""
    await searched(folder, written({"value": 7, "do": "answer", "ballast": 1}))
    node, minimal = found_by(await minimised(folder, Needing()))
    assert node.kept
    assert fates(minimal) == [("params.json: do", "failed"), ("params.json: value", "worse")]


def fates(minimal: Minimal) -> list[tuple[str, str]]:
    return [(part.where, part.fate) for part in minimal.kept]


class Guarding(Script):
    """A guard that wants what the score does not need."""

    async def program(self, guest: Guest) -> int:
        if guest.job.command[0] == "guard":
            self.commands.append("guard")
            return int(b'"ballast"' not in guest.files["params.json"])
        return await super().program(guest)


NEEDED = [("params.json: ballast", "the guard sound does not pass"), ("params.json: value", "worse")]


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", GUARD)


@pytest.mark.parametrize("times", [0, 1, 2, 3])
async def test_guards(guarded: Path, times: int) -> None:
    """A selection must pass all that the winner passed; what a guard said before a stop holds after it."""
    await searched(guarded, WINNER, script=Guarding(), width=1 if times else 3)
    if times:
        async with apart(guarded, Guarding()) as session:
            session.stop_at(e.GuardEnded, times)
            await session.run()
            assert session.nodes["1.1.1"].phase is Phase.QUEUED
    node, minimal = found_by(await minimised(guarded, Guarding()))
    assert (node.kept, node.guarded) == (True, {"sound": True}), node.why
    assert fates(minimal) == NEEDED


async def test_guards_after_trials_were_used_up(guarded: Path) -> None:
    """So does what it said when an earlier minimising ran out of trials."""
    await searched(guarded, WINNER, script=Guarding(), width=1)
    assert not found_by(await minimised(guarded, Guarding(), minimisation=3))[1].complete
    node, minimal = found_by(await minimised(guarded, Guarding(), minimisation=40), "1.1.2")
    assert node.kept, node.why
    assert fates(minimal) == NEEDED


async def test_a_candidate_that_a_guard_refused(guarded: Path) -> None:
    """A candidate that scored as well, and that a guard refused, shows of no part that it can go."""
    await searched(guarded, written({"value": 7}), WINNER, script=Guarding(), width=1)
    session = await minimised(guarded, Guarding(), winner="1.2")
    assert session.nodes["1.1"].guarded == {"sound": False}
    node, minimal = found_by(session, "1.2.1")
    assert node.kept, node.why
    assert fates(minimal) == NEEDED


class HeldOut(Script):
    """Whatever is left has this score on the held-out split."""

    held = 0

    async def judge(self, guest: Guest) -> int:
        if "--heldout" not in guest.job.command:
            return await super().judge(guest)
        guest.out["result.json"] = b'{"score": %d}' % self.held
        return 0


@pytest.mark.parametrize(("held", "kept"), [(7, True), (2, False)])
async def test_held_out(tmp_path: Path, held: int, kept: bool) -> None:
    """The held-out split is asked once, whether what is left is worse; one that is, is not offered."""
    folder, script = write_task(tmp_path / "task", HELDOUT), HeldOut()
    await searched(folder, written({**POINT, "held": 7}))
    script.held = held
    session = await minimised(folder, script)
    node, _ = found_by(session)
    assert [it.node for it in session.of(e.HeldOutAsked)] == [node.id]
    assert (node.kept, "worse on the held-out split" in node.why) == (kept, True)


@pytest.mark.parametrize("gate", [True, False])
async def test_no_query_is_left(tmp_path: Path, gate: bool) -> None:
    """Where nothing could be offered, since the held-out split answers no more, no trial is paid for."""
    spec = HELDOUT.replace("step = 1", f"step = 1\nqueries = 2\ngate = {str(gate).lower()}")
    folder = write_task(tmp_path / "task", spec)
    session = await ran(folder, None, written({**POINT, "held": 70}), attempts=1, minimise=True)
    assert bool(used(session)) is not gate
    assert ("1.1.1" in session.nodes) is not gate
    assert session.reason.count("the held-out split was asked") <= 1
    if gate:
        session = await minimised(folder)
        assert "so that nothing more can be kept" in session.reason
        assert used(session) == 0


async def test_another_machine(tmp_path: Path) -> None:
    """On other hardware, the winner is measured there first: nothing is compared across cohorts."""
    folder = write_task(tmp_path / "task", CPU)
    await searched(folder, WINNER)
    session = await minimised(folder, Script(cpu="another"))
    check_kept(session)
    assert [it.purpose for it in session.state.trials_of("1.1")].count(Purpose.RERUN) == 1


async def test_at_the_end_of_a_run(folder: Path) -> None:
    """With `minimise`, the champion is taken apart when the search is over, and the reason tells both."""
    session = await ran(folder, None, WINNER, {"value": 3}, attempts=2, minimise=True)
    check_kept(session)
    assert session.reason.startswith("2 of 2 attempts are used")
    assert "1.1 is taken apart" in session.reason
    assert "1.1.2" not in (await ran(folder, None, WINNER, {"value": 3}, how=How.RESUME)).nodes


async def test_noisy(tmp_path: Path) -> None:
    """Where scores are noisy, what is left is tested against the winner, and loses nothing that the test could see."""
    folder, script = write_task(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(folder, script, written({"value": 7, "idle": 4}), attempts=1) as session:
        script.noise = gaussian(session.state, 0.5)
        await session.run()
        assert session.nodes["1.1"].kept
    async with apart(folder, script, minimisation=400) as session:
        script.noise = gaussian(session.state, 0.5)
        await session.run()
    node, minimal = found_by(session)
    assert node.kept, node.why
    assert minimal.complete
    assert "params.json: value" in [part.where for part in minimal.kept]
    assert len(minimal.dropped) <= 1
    assert node.certification
    assert (node.certification.both, node.certification.champion) == (True, "1.1")
    assert not any(session.nodes["1.1"].challenged.values())
