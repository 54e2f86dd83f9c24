"""Changes that are too much like others: they cost no attempt, are counted, and end the asking."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.change.whole import whole_file
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.scripted import TUNE, Act, Scripted, ran, scripted, write_task

# A change writes a program, which is what is compared, and the value that it is scored by.
LONG = "".join(f"let name{at} = call{at}(first, {at})\n" for at in range(40))
OTHER = "".join(f"work{at}({at})\n" for at in range(20))


def write(folder: Path, *more: str) -> Path:
    made = write_task(folder, *more)
    toml = (made / "blastdoor.toml").read_text()
    (made / "blastdoor.toml").write_text(toml.replace('"notes.txt"]', '"notes.txt", "notes.js"]'))
    (made / "workspace/notes.js").write_text("start()\n")
    return made


def offer(note: str, value: int = 1, write: str = '{{\n  "value": {}\n}}\n') -> Proposal:
    files = {"notes.js": note, "params.json": write.format(value)}
    text = "\n".join(whole_file(path, content) for path, content in files.items())
    return Proposal(operator="scripted", description=f"{value}: {note[:40]}", text=text)


def act(*found: Proposal) -> Act:
    async def propose(brief: Brief) -> Sequence[Proposal]:
        del brief
        return found

    return propose


def tried(session: Scripted) -> list[str]:
    nodes = session.nodes.values()
    return [node.description for node in nodes if node.role is Role.SEARCH and node.ending is Ending.SCORED]


async def run_on(folder: Path, *acts: Act, **flags: Any) -> Scripted:
    async with scripted(folder, None, *acts, **{"attempts": len(acts), **flags}) as session:
        await session.run()
        return session


SAME = [LONG.replace("name", "other"), LONG.replace("\n", "  // so\n"), LONG.replace("first, ", "first,\t")]


async def test_the_same_in_other_words_is_not_run(tmp_path: Path) -> None:
    """It costs no attempt and is counted; without the key it is run, as any other bytes are."""
    offers = [act(offer(it)) for it in (LONG, *SAME)] + [act(offer(OTHER, 2))]
    session = await run_on(write(tmp_path / "on"), *offers, novelty="1", attempts=2)
    assert len(tried(session)) == session.charged == 2
    assert session.state.campaign.alike == sum(it.alike for it in session.of(e.OffersCounted)) > 0
    dropped = [node.why for node in session.nodes.values() if node.ending is Ending.CANCELLED]
    assert ["100% like 1.1" in why for why in dropped] == [True] * 3
    plain = await run_on(write(tmp_path / "off"), *offers)
    assert len(tried(plain)) == plain.charged == 5
    assert plain.of(e.OffersCounted) == []


async def test_what_is_nearly_the_same(tmp_path: Path) -> None:
    """One line of forty is another: too much alike at 0.8, new at 0.99, and new on another parent."""
    near = LONG.replace("call7(", "call77(")
    offers = [act(offer(LONG)), act(offer(near)), act(offer(OTHER, 2))]
    strict = await run_on(write(tmp_path / "a"), *offers, novelty="0.8")
    assert len(tried(strict)) == 2
    loose = await run_on(write(tmp_path / "b"), *offers, novelty="0.99")
    assert len(tried(loose)) == 3
    draft = loose.bench.state.draft("1.2#1")
    assert draft
    assert draft.likeness
    assert (draft.likeness.twin, 0.8 < draft.likeness.alike < 0.99) == ("1.1#1", True)
    deep = await run_on(write(tmp_path / "c"), *offers, novelty="0.8", branching=True, depth=3)
    assert len(tried(deep)) == 3


async def test_several_of_one_asking(tmp_path: Path) -> None:
    """Offers of one asking are compared with each other, too: those that are left are tried next to each other."""
    near = LONG.replace("call7(", "call77(")
    folder = write(tmp_path / "task")
    offers = act(offer(LONG), offer(near), offer(SAME[0]), offer(OTHER, 2))
    async with scripted(folder, None, offers, offers, attempts=2, novelty="0.9") as session:
        object.__setattr__(session.bench, "at_once", 4)
        await session.run()
        [counted] = session.of(e.OffersCounted)
        assert (counted.offered, counted.distinct, counted.alike) == (4, 2, 2)
        assert len(tried(session)) == 2
        assert session.nodes["1.2"].drafts == 1


async def test_drafts_that_are_tuned(tmp_path: Path) -> None:
    """A tune trial is not spent on a draft that is too much like another one."""
    folder = write(tmp_path / "task", TUNE)
    offers = act(offer(LONG), offer(SAME[0]), offer(OTHER, 2))
    session = await run_on(folder, offers, novelty="0.9")
    assert session.nodes["1.1"].drafts == 2


async def test_only_near_duplicates_end_the_asking(tmp_path: Path) -> None:
    """A proposer that offers nothing else is through after a bounded number of questions, and nothing is charged."""
    offers = [act(offer(LONG))] + [act(offer(LONG.replace("name", f"other{at}_"))) for at in range(60)]
    session = await run_on(write(tmp_path / "task"), *offers, novelty="0.9", attempts=50)
    assert session.charged == 1
    assert len(session.nodes) < 30
    assert "nothing new" in session.state.campaign.stopped


async def test_a_refused_change_is_no_likeness(tmp_path: Path) -> None:
    """What does not apply is refused as ever, and has no twin."""
    wrong = Proposal(operator="scripted", description="no change", text="let us talk")
    session = await run_on(write(tmp_path / "task"), act(wrong), act(wrong), novelty="0.5")
    assert [node.ending for node in session.nodes.values()][1:] == [Ending.INVALID] * 2
    assert session.state.campaign.alike == 0


async def test_what_a_person_brings_is_run(tmp_path: Path) -> None:
    """However much it is like another one; then it is known to the search."""
    folder = write(tmp_path / "task")
    await run_on(folder, act(offer(LONG)), novelty="0.5")
    text = offer(LONG.replace("call7(", "call77("), 3).text or ""
    async with scripted(folder, None, act(), act(offer(LONG)), how=How.RESUME, attempts=2) as session:
        stored = session.bench.artifacts.put(text.encode())
        session.bench.book.record(e.InjectionQueued(injection=1, change=stored, description="mine", on="1"))
        await session.run()
        [mine] = [node for node in session.nodes.values() if node.role is Role.INJECTED]
        assert mine.ending is Ending.SCORED


async def test_a_resume_knows_the_same(tmp_path: Path) -> None:
    """What was tried before a stop is known after it, from the ledger alone."""
    folder = write(tmp_path / "task")
    offers = act(offer(LONG)), act(offer(LONG))
    await ran(folder, None, *offers, attempts=3, novelty="0.9", stop=(e.AttemptEnded, 2))
    near = LONG.replace("call7(", "call77(")
    others = [act(offer(it)) for it in (LONG, near, SAME[1])]
    session = await ran(folder, None, *others, act(offer(OTHER, 2)), how=How.RESUME, attempts=2)
    assert session.charged == 2
    assert session.state.campaign.alike == 16


def variants(count: int, *, same: bool) -> list[Act]:
    """Each like the first, with one line of its own; scored alike, or not."""
    changed = (LONG.replace(f"call{at}(", f"call{at}x(") for at in range(count))
    return [act(offer(LONG))] + [act(offer(note, 1 if same else at + 2)) for at, note in enumerate(changed)]


async def test_a_threshold_is_learnt(tmp_path: Path) -> None:
    """Where changes so much alike had the same score again and again, later ones are not run; else all are."""
    folder = write(tmp_path / "same")
    session = await run_on(folder, *variants(30, same=True), novelty="learn")
    assert session.bench.novelty
    assert 0.7 <= session.bench.novelty.threshold.value < 1.0
    assert 8 <= len(tried(session)) < 25
    async with scripted(folder, None, act(), how=How.RESUME) as again:
        assert again.bench.novelty
        assert again.bench.novelty.threshold.pairs == session.bench.novelty.threshold.pairs
    unlike = await run_on(write(tmp_path / "unlike"), *variants(11, same=False), novelty="learn")
    assert unlike.bench.novelty
    assert unlike.bench.novelty.threshold.value == 1.0
    assert len(tried(unlike)) == 12


async def test_a_point_in_another_writing_is_the_same_point(tmp_path: Path) -> None:
    """The same parameters in params.json, otherwise formatted, are not measured twice; no key is needed for that."""
    folder = write_task(tmp_path / "task", low=0)
    (folder / "workspace/params.json").write_text(json.dumps({"value": 0}))
    written = '{{\n    "value":   {}\n}}\n\n'
    texts = [whole_file("params.json", written.format(value)) for value in (3, 0)]
    offers = [Proposal(operator="scripted", description="by text", text=text) for text in texts]
    points = [Proposal(operator="scripted", description="a point", params={"value": value}) for value in (3, 0, 4)]
    session = await run_on(folder, *(act(it) for it in (offers[0], points[0], points[1], offers[1], points[2])))
    assert [node.ending for node in session.nodes.values()][1:] == [
        Ending.SCORED,
        Ending.CANCELLED,
        Ending.CANCELLED,
        Ending.CANCELLED,
        Ending.SCORED,
    ]
    assert session.charged == 2
