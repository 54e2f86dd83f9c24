"""A challenger takes the present playbook's place only where users' results show that it is better."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.records import Role
from orchestrator.ledger import LedgerError
from orchestrator.llm.line import NoAnswer
from orchestrator.loop.evolving import LEAST_ATTEMPTS
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from tests.orchestrator.loop.evolution import COST, PAGES, Evolver, Users, evolving, notes, write_evolving
from tests.orchestrator.loop.scripted import Scripted

BETTER = {"Better": (0.95, 10**6)}
WORSE = {"Worse": (0.05, 10)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_evolving(tmp_path / "task")


def versions(session: Scripted) -> list[tuple[int, str, str]]:
    """Number, author and fate, as far as it is a word."""
    return [(it.number, it.by, it.fate.split(":")[0]) for it in session.state.playbooks.values()]


async def evolved(folder: Path, users: Users, evolver: Evolver, **flags: Any) -> Scripted:
    """A whole session."""
    async with evolving(folder, users, evolver, **flags) as session:
        await session.run()
    return session


async def test_a_better_one_is_adopted(folder: Path) -> None:
    """Both are tried equally often until it is shown to be better; each proposal has its version on record."""
    session = await evolved(folder, Users(BETTER), Evolver(notes("Better"), "prose"), attempts=50)
    nodes = session.nodes
    assert versions(session) == [(1, "task", ""), (2, "evolver", "used")]
    assert session.state.campaign.playbook == 2
    dealt = [nodes[name].playbook for name in session.state.playbooks[2].given]
    assert all(set(dealt[at : at + 2]) == {1, 2} for at in range(0, len(dealt), 2))
    assert dealt not in ([1, 2] * (len(dealt) // 2), [2, 1] * (len(dealt) // 2)), "no coin was thrown"
    assert [node.playbook for node in nodes.values() if node.role is Role.SEARCH][-5:] == [2] * 5
    [used] = session.of(e.PlaybookUsed)
    assert (used.by, "evidence" in used.why) == ("evolver", True)
    proposed = [event for event in session.of(e.Proposed) if event.operator == "user"]
    assert {event.playbook for event in proposed} == {1, 2}
    assert all(nodes[event.node].playbook == event.playbook for event in proposed)
    assert all(nodes[event.node].description.startswith("Better") == (event.playbook == 2) for event in proposed)


async def test_a_worse_one_is_discarded(folder: Path) -> None:
    """It is given up as soon as nothing that may follow could show it to be better, and stays in the log."""
    session = await evolved(folder, Users(WORSE), Evolver(notes("Worse"), "prose"), attempts=60)
    assert versions(session) == [(1, "task", ""), (2, "evolver", "not used")]
    assert session.state.campaign.playbook == 1
    assert len(session.state.playbooks[2].given) < 40
    assert not session.of(e.PlaybookUsed)


async def test_the_evolver_waits_for_results(folder: Path) -> None:
    """It is asked only after some attempts, and again only after as many more."""
    session = await evolved(folder, Users(), Evolver("prose that is no change"), attempts=26)
    opened = [index for index, event in enumerate(session.events) if isinstance(event, e.AttemptOpened)]
    asked = [index for index, event in enumerate(session.events) if isinstance(event, e.ModelCallIntended)]
    # Each time twice, since the answer is told back; the first attempt of all is the baseline's.
    before = [sum(at < index for at in opened) - 1 for index in asked[::2]]
    assert len(before) > 1
    assert all(later - earlier >= LEAST_ATTEMPTS for earlier, later in zip([0, *before], before, strict=False))
    assert len(session.state.playbooks) == 1


async def test_an_unusable_answer_is_told_back_once(folder: Path) -> None:
    """The reason is told once; what cannot be used then makes no version, and is paid for all the same."""
    evolver = Evolver("prose", "corrections.md\n```\nobey me\n```\n")
    session = await evolved(folder, Users(), evolver, attempts=22)
    assert len(session.state.playbooks) == 1
    assert "could not be used: no change found" in evolver.asked[1]
    booked = [event for event in session.of(e.Settled) if event.hold == "evolve-1"]
    assert [event.spent["usd"] for event in booked] == [2 * COST.microdollars]


async def test_a_provider_that_fails(folder: Path) -> None:
    """The campaign goes on with the playbook that it has. Evolvers are a pool: another one is asked each time."""
    evolver = Evolver(NoAnswer("overloaded", charged=False))
    session = await evolved(folder, Users(), evolver, attempts=25)
    assert session.champion
    assert session.charged == 25
    assert session.state.campaign.evolutions >= 1
    assert evolver.models_asked[:2] == ["small", "other"]


@pytest.mark.parametrize("flags", [{"usd": 0.05}, {"funded": False}, {"attempts": LEAST_ATTEMPTS + 5}], ids=str)
async def test_where_nobody_is_asked(folder: Path, flags: dict[str, Any]) -> None:
    """It does not fit under the cap, users are given all, or too little is left to show anything: users go on."""
    evolver, given = Evolver(notes("Better")), {"attempts": 22, **flags}
    session = await evolved(folder, Users(BETTER), evolver, **given)
    assert (session.charged, evolver.asked) == (given["attempts"], [])


async def test_resume_goes_on_alike(tmp_path: Path) -> None:
    """Stopped in the middle and resumed, the same attempts get the same versions, and the same is decided."""
    dealt = []
    for at in (0, 8, 18):
        folder = write_evolving(tmp_path / str(at))
        async with evolving(folder, Users(BETTER), Evolver(notes("Better"), "prose"), attempts=40) as session:
            if at:
                session.stop_at(e.AttemptEnded, at)
            await session.run()
        if at:
            evolver = Evolver("prose" if session.state.campaign.challengers else notes("Better"))
            session = await evolved(folder, Users(BETTER), evolver, how=How.RESUME)
        dealt.append([node.playbook for node in session.nodes.values() if node.role is Role.SEARCH])
    assert dealt[1:] == [dealt[0]] * 2
    assert 2 in dealt[0]


async def test_killed_while_asking(folder: Path) -> None:
    """What was under way is booked at its worst case when the campaign goes on, and another is asked for."""
    evolver = Evolver(notes("Better"))
    evolver.hangs = True
    async with evolving(folder, Users(BETTER), evolver, attempts=40) as session:
        with pytest.raises(LedgerError, match="killed"):
            await session.run()
        assert "evolve-1" in session.accounts.holds
    async with evolving(folder, Users(BETTER), Evolver(notes("Better"), "prose"), how=How.RESUME) as session:
        assert not session.accounts.holds
        assert session.accounts.used(Account.USD) == 100_000
        await session.run()
        assert session.state.campaign.playbook == 2


async def test_a_persons_use_wins(folder: Path) -> None:
    """Who chooses a version ends what is being tried, and all attempts from then on get that version."""
    users = Users({**BETTER, "Other": (0.5, 10)})
    async with evolving(folder, users, Evolver(notes("Other"), notes("Better")), attempts=60) as session:

        def choose(event: e.PlaybookGiven) -> None:
            if event.challenger == 2 and len(session.state.playbooks[2].given) == 4:
                ask(folder, "playbook correct", {"text": "never use numba"})

        session.when(e.PlaybookGiven, choose)
        await session.run()
        assert versions(session)[1:3] == [(2, "evolver", "not used"), (3, "person", "")]
        assert "set aside for version 3" in session.state.playbooks[2].fate
        after = session.events[session.events.index(session.of(e.RequestTaken)[0]) :]
        given = [event.version for event in after if isinstance(event, e.PlaybookGiven)]
        assert given[0] == 3
        assert {2} & set(given) == set()
        later = [it for it in session.state.playbooks.values() if it.number > 3]
        for version in later:
            pages = session.bench.playbooks.pages(version.number) if session.bench.playbooks else {}
            assert pages["corrections.md"] == "- never use numba\n"


async def test_use_an_older_one(folder: Path) -> None:
    """A version that was there is used again as it is; where it lacks a correction, a new one has both."""
    async with evolving(folder, Users(BETTER), Evolver("prose"), attempts=10, funded=False) as session:
        asked: list[tuple[str, dict[str, object]]] = [
            ("playbook correct", {"text": "be brief"}),
            ("playbook use", {"version": 1}),
        ]

        def act(event: e.AttemptEnded) -> None:
            if asked:
                ask(folder, *asked.pop(0))

        session.when(e.AttemptEnded, act)
        await session.run()
        answers = [event.answer for event in session.of(e.RequestTaken)]
        assert answers == [
            "version 2 is used from now on",
            "version 3 is used from now on: version 1, with the corrections of version 2",
        ]


async def test_refused_requests(folder: Path) -> None:
    """What cannot be done is answered with the reason, and changes nothing."""
    asked: list[tuple[str, dict[str, object], str]] = [
        ("playbook use", {"version": 7}, "there is no version 7"),
        ("playbook use", {"version": 1}, "version 1 is the present one"),
        ("playbook use", {"version": "x"}, "cannot be read"),
        ("playbook correct", {"text": " "}, "one line of 1 to 500"),
        ("playbook correct", {"text": "be nice", "drop": True}, "there is no correction"),
    ]
    async with evolving(folder, Users(), Evolver("prose"), attempts=3, funded=False) as session:
        for kind, body, _ in asked:
            ask(folder, kind, body)
        await session.run()
    answers = [it.answer for it in session.of(e.RequestTaken)]
    assert len(answers) == len(asked)
    for answer, (_, _, said) in zip(answers, asked, strict=True):
        assert answer.startswith("refused: ")
        assert said in answer
    assert len(session.state.playbooks) == 1


async def test_changed_folder_at_resume(folder: Path) -> None:
    """Pages that changed are a new version, with the corrections that were pinned meanwhile; else nothing is new."""
    users = Users({"Edited": (0.5, 10)})
    async with evolving(folder, users, Evolver("prose"), attempts=2, funded=False) as session:
        ask(folder, "playbook correct", {"text": "never use numba"})
        await session.run()
    edited = {**PAGES, "notes.md": "Edited by hand.\n", "corrections.md": "- be brief\n"}
    for _ in range(2):
        async with evolving(folder, users, Evolver("prose"), how=How.RESUME, pages=edited, funded=False) as session:
            assert [it[1] for it in versions(session)] == ["task", "person", "task", "person"]
            playbooks = session.bench.playbooks
            assert playbooks is not None
            assert playbooks.present == 4
            assert playbooks.pages(3) == edited
            assert playbooks.pages(4) == {**edited, "corrections.md": "- be brief\n- never use numba\n"}


async def test_a_new_run_ends_the_contest(folder: Path) -> None:
    """Results of two runs are not compared: what was being tried is given up."""
    async with evolving(folder, Users(BETTER), Evolver(notes("Better")), attempts=60) as session:
        session.stop_at(e.AttemptEnded, 12)
        await session.run()
        assert session.state.campaign.challenger == 2
    async with evolving(
        folder, Users(BETTER), Evolver("prose"), how=How.NEW_RUN, attempts=3, width=1, funded=False
    ) as session:
        await session.run()
        assert versions(session)[1] == (2, "evolver", "not used")
        assert "a new run" in session.state.playbooks[2].fate
        assert {node.playbook for node in session.nodes.values() if node.id.startswith("2.")} == {1}
