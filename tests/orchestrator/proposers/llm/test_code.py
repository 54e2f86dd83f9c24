"""Changes to code by a model: what is read of its answer, what is told back, and what it costs when nothing comes."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.change import Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.ending import Ending
from orchestrator.llm.line import NoAnswer, Unusable
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Stalled, Tried, Unanswered
from orchestrator.proposers.base import Playbook
from orchestrator.proposers.llm import LlmCode
from orchestrator.proposers.llm.code import read_changes
from orchestrator.proposers.llm.modes import Mode, choose
from tests.lag import least_time
from tests.orchestrator.proposers.llm.scripts import (
    ROOT,
    SOLVE,
    TREE,
    Past,
    ScriptedLine,
    answer,
    brief_of,
    change,
    make_task,
    tried,
)

TASK = make_task()
POLICY = TASK.policy()
GOOD = change("use sum", "    total = 0", "    total = sum(x)")
OTHER = change("count down", "    return total", "    return -total")
BAD = change("change what is not there", "    nothing like it", "    something")


def code(**model: object) -> LlmCode:
    task = make_task(model=model)
    return LlmCode(task, task.policy())


async def test_several_changes_of_one_answer() -> None:
    """Each has its own description, and applies to the files as they were shown. More than was asked for is
    cut short; equal ones are handed in both, for whoever counts the share of distinct ones; one without a heading is
    taken where it is the only one.
    """
    line = ScriptedLine(f"Here are two.\n\n{GOOD}{OTHER}", GOOD + OTHER, GOOD + GOOD, GOOD.split("\n", 1)[1])
    found = await code().propose(brief_of(TASK, line, count=3))
    assert [(it.description, it.operator, it.model) for it in found] == [
        ("use sum", "draft", "claude-test"),
        ("count down", "draft", "claude-test"),
    ]
    made = [apply_text(TREE, it.text or "", POLICY)["solve.py"].data for it in found]
    assert [b"sum(x)" in made[0], b"-total" in made[0], b"sum(x)" in made[1], b"-total" in made[1]] == [1, 0, 0, 1]
    for count, said in ((1, ["use sum"]), (3, ["use sum"] * 2), (1, ["a change without a description"])):
        assert [it.description for it in await code().propose(brief_of(TASK, line, count=count))] == said
    assert len(line.asked) == 4


FORMS = {
    "diff": "=== change: a diff\n--- a/solve.py\n+++ b/solve.py\n@@ -2,1 +2,1 @@\n-    total = 0\n+    total = 1\n",
    "whole": "=== change: a file\nsolve.py\n```python\ndef solve(x):\n    return sum(x)\n```\n",
    "blocks": GOOD,
}


@pytest.mark.parametrize("form", FORMS)
async def test_every_form(form: str) -> None:
    """The form that the task asks for is explained to the model, and what it then writes applies."""
    line = ScriptedLine(FORMS[form])
    [found] = await code(form=form).propose(brief_of(TASK, line))
    assert apply_text(TREE, found.text or "", POLICY) != TREE
    explained = {"diff": "unified diff", "whole": "whole new file", "blocks": "<<<<<<< SEARCH"}[form]
    assert explained in line.asked[0].system[0]


async def test_what_does_not_apply_is_told_back_once() -> None:
    """With its reason, in the same conversation, beside what was good; what is wrong twice is on record with it."""
    line = ScriptedLine(GOOD + BAD, OTHER)
    found = await code().propose(brief_of(TASK, line, count=3))
    assert [it.description for it in found] == ["use sum", "count down"]
    first, second = line.asked
    assert second.system == first.system
    assert second.messages[0] == first.messages[0]
    assert [it["role"] for it in second.messages] == ["user", "assistant", "user"]
    assert '"change what is not there": lines not found' in second.last
    assert "use sum" not in second.last
    twice = ScriptedLine(BAD, BAD)
    [wrong] = await code().propose(brief_of(TASK, twice))
    assert (wrong.description, len(twice.asked)) == ("change what is not there", 2)


async def test_a_diff_against_the_wrong_file() -> None:
    """The model is told which paths it may edit, and nothing of what is hidden."""
    hidden = change("peek", "GOLD = 42", "GOLD = 43", "secret_answers.py")
    line = ScriptedLine(hidden, GOOD)
    found = await code().propose(brief_of(TASK, line))
    assert found[0].description == "use sum"
    assert "not editable" in line.asked[1].last
    assert "you may edit: *.py" in line.asked[1].last


async def test_prose_is_told_back_once_and_then_costs_the_attempt() -> None:
    """Something was answered, so it is charged, in one line; the second chance is a real one, also after silence."""
    line = ScriptedLine("I would rather talk about it.", "Let us think\nabout sums.")
    with pytest.raises(Unanswered, match="asked twice and gave nothing to try: there is no change in its answer"):
        await code().propose(brief_of(TASK, line))
    assert "There is no change in your answer" in line.asked[1].last
    for first in ("I would rather talk about it.", "", "   \n"):
        line = ScriptedLine(first, GOOD)
        [found] = await code().propose(brief_of(TASK, line))
        assert found.description == "use sum"
        assert line.asked[1].messages[1]["content"].strip()


async def test_an_answer_that_was_cut_off() -> None:
    """Its last change may look complete and not be; it is asked for again and never handed in as it was."""
    line = ScriptedLine(answer(GOOD + OTHER, "max_tokens"), answer(OTHER, "max_tokens"))
    found = await code().propose(brief_of(TASK, line, count=3))
    assert [it.description for it in found] == ["use sum"]
    assert "cut off" in line.asked[1].last
    with pytest.raises(Unanswered, match="cut off"):
        await code().propose(brief_of(TASK, ScriptedLine(*[answer(GOOD, "max_tokens")] * 2)))


async def test_who_pays_for_no_answer() -> None:
    """The provider's failure is free, a used-up allowance is not, and a refused key ends everything."""
    with pytest.raises(Stalled, match="overloaded"):
        await code().propose(brief_of(TASK, ScriptedLine(NoAnswer("overloaded", charged=False))))
    with pytest.raises(Unanswered, match="used up"):
        await code().propose(brief_of(TASK, ScriptedLine(NoAnswer("the allowance is used up", charged=True))))
    with pytest.raises(Unusable, match="key"):
        await code().propose(brief_of(TASK, ScriptedLine(Unusable("the key is refused"))))


@pytest.mark.parametrize("charged", [True, False])
async def test_what_was_good_stays_when_the_second_question_fails(charged: bool) -> None:
    """It was paid for; only where there is nothing does the failure decide."""
    failure = NoAnswer("no more", charged=charged)
    found = await code().propose(brief_of(TASK, ScriptedLine(BAD + GOOD, failure), count=2))
    assert [it.description for it in found] == ["use sum", "change what is not there"]
    with pytest.raises(Unanswered if charged else Stalled):
        await code().propose(brief_of(TASK, ScriptedLine("prose", failure)))


async def test_the_playbook_is_used_and_named() -> None:
    """Its prompts replace ours, its notes and corrections are told, and its version is part of the proposal."""
    files = {
        "prompts/system.md": "You are the system prompt of a person.",
        "prompts/draft.md": "Draft as I say.",
        "skills/loops.md": "Unroll loops.",
        "notes.md": "Caching did not help.",
        "corrections.md": "Never use threads.",
    }
    line = ScriptedLine(GOOD)
    [found] = await code().propose(brief_of(TASK, line, playbook=Playbook(7, files)))
    assert found.playbook == 7
    told = line.asked[0]
    assert told.system[0].startswith("You are the system prompt of a person.")
    assert told.last.startswith("Draft as I say.")
    order = [told.system[1].index(text) for text in ("Unroll loops.", "Caching did not help.", "Never use threads.")]
    assert order == sorted(order)


async def test_a_search_that_learns_chooses() -> None:
    """Which of several models is asked, in which mode, and with or without what else was tried: each is drawn and
    noted. Without learning, the preferred model is asked as ever, and nothing is drawn.
    """
    past = Past(tried(1, "a loop", 5.0), trees={"1": TREE})
    meta, seen = Meta(Learnt(Learning.GRADIENT)), set()
    for number in range(1, 30):
        line = ScriptedLine(GOOD)
        line.models = ("claude-one", "claude-two")
        chooser = meta.chooser((), 1, number, 0)
        brief = replace(brief_of(TASK, line, past=past), step=1, chooser=chooser)
        (made,) = await code().propose(brief)
        assert chooser.drawn
        arms = {slot: arm.option for slot, arm in chooser.drawn.arms.items()}
        assert (line.asked[0].model, made.operator) == (arms["model"], arms["mode"])
        assert ("a loop" in line.asked[0].text) == (arms["inspirations"] == "others")
        seen |= set(arms.values())
    assert seen == {"claude-one", "claude-two", "draft", "improve", "others", "none"}
    line = ScriptedLine(GOOD)
    brief = brief_of(TASK, line, past=past)
    await code().propose(brief)
    assert (line.asked[0].model, brief.chooser.drawn) == (None, None)


def test_headings() -> None:
    """Only a line of its own begins a change; a description is one plain line, and an empty change is none."""
    text = f"=== Change 2: **bold** \x1b[31m and red ===\n{GOOD.split(chr(10), 1)[1]}\n=== change: nothing\n\n"
    [(said, body)] = read_changes(text, POLICY)
    assert said == "**bold** \\x1b[31m and red"
    assert body.startswith("solve.py\n<<<<<<< SEARCH")
    assert read_changes("a === change: b\n", POLICY) == []
    inside = change("a", "    total = 0", "    # === change: not a heading")
    assert len(read_changes(inside, POLICY)) == 1


SCORED = tried(1, merit=-3.0)
BROKEN = tried(2, ending=Ending.TIMED_OUT)
FAILING = [tried(number, operator="debug") for number in (1, 2)]
REFUSED = tried(1, ending=Ending.INVALID, fault="change refused: no change found")
DEEPER = {"parent": "1.2", "node": "1.2.1"}


@pytest.mark.parametrize(
    ("brief", "ended", "mode"),
    [
        ({"step": 1}, [], Mode.DRAFT),
        ({"step": 1}, [SCORED], Mode.DRAFT),
        ({"step": 2}, [SCORED], Mode.IMPROVE),
        ({"step": 1, **DEEPER}, [], Mode.IMPROVE),
        ({"step": 2}, [REFUSED], Mode.DRAFT),
        ({"step": 2}, FAILING[:1], Mode.DEBUG),
        ({"step": 2}, FAILING, Mode.DRAFT),
        ({**DEEPER, "lineage": [ROOT, BROKEN]}, [], Mode.DEBUG),
    ],
)
def test_modes(brief: dict[str, Any], ended: list[Tried], mode: Mode) -> None:
    """What is asked for follows from the past alone. A refused change was told back already, and there is no candidate
    to look at; two in a row that were meant to mend and did not are enough.
    """
    past = Past(*ended, trees={it.node: TREE for it in ended if not it.fault})
    chosen, failed = choose(brief_of(TASK, past=past, **brief))
    assert chosen is mode
    assert failed is (None if mode is not Mode.DEBUG else BROKEN if "lineage" in brief else ended[-1])


MENDED = (Ending.FAILED, Ending.BUILD_FAILED, Ending.TIMED_OUT, Ending.OUT_OF_MEMORY, Ending.INVALID)


@pytest.mark.parametrize("ending", [*MENDED, Ending.TAMPERED, Ending.PRUNED, Ending.SCORED])
def test_mode_after_an_ending(ending: Ending) -> None:
    """Debugged is what could be mended; never what cheated or was merely slow to get better."""
    past = Past(SCORED, tried(2, ending=ending), trees={"1.2": TREE})
    assert choose(brief_of(TASK, step=2, past=past))[0] is (Mode.DEBUG if ending in MENDED else Mode.IMPROVE)


async def test_debugging_shows_the_change_and_the_code_of_what_went_wrong() -> None:
    """The failed change as a diff against the files that are shown; the ending as a fixed code. Asked again, it is told
    that all was known; and half a character does not lose the answer.
    """
    broken = Tree.of({"solve.py": SOLVE.replace("total = 0", "total = [0] * 10**9"), "notes.txt": "x"})
    past = Past(tried(1, "allocate", ending=Ending.OUT_OF_MEMORY), trees={"1.1": broken})
    line = ScriptedLine(GOOD, GOOD.replace("use sum", "use \ud800 sum"))
    [found] = await code().propose(brief_of(TASK, line, past=past, step=2))
    assert found.operator == "debug"
    assert "+    total = [0] * 10**9" in line.asked[0].last
    assert "It ended with: no score: out of memory" in line.asked[0].last
    [again] = await code().propose(brief_of(TASK, line, again=1))
    assert again.description == "use ? sum"
    assert "known already" in line.asked[1].last


def test_t82_headings_that_are_none() -> None:
    """A heading with a flood of blanks in it is a line like any other: to look at it must not take its square."""
    long = "=== change " + "a" + " " * 200_000 + "b"
    assert least_time(lambda: read_changes(f"{long}\n{GOOD}", POLICY), 5) < 5
    assert read_changes(f"{long}\n{GOOD}", POLICY) == read_changes(GOOD, POLICY)


async def test_a_search_that_learns_draws_a_prompt_and_a_temperature() -> None:
    """Of the variants that the playbook has of the prompt that is due, and between the bounds of the task; both are
    noted. Without learning, the usual prompt is asked with, and no temperature is sent.
    """
    texts = {
        "draft": "Draft.",
        "draft-bold": "Dare.",
        "improve": "Mend.",
        "improve-x": "Polish.",
        "debug-y": "Breathe.",
    }
    files = {f"prompts/{page}.md": text for page, text in texts.items()}
    meta, seen = Meta(Learnt(Learning.GRADIENT)), set()
    for number in range(1, 20):
        line, chooser = ScriptedLine(GOOD), meta.chooser((), 1, number, 0)
        brief = replace(brief_of(TASK, line, playbook=Playbook(7, files)), step=1, chooser=chooser)
        await code(temperature=[0.3, 0.9]).propose(brief)
        assert chooser.drawn
        knob, asked = chooser.drawn.knobs["temperature"], line.asked[0]
        assert 0.3 <= knob.value <= 0.9
        assert asked.temperature == pytest.approx(knob.value, abs=1e-4)
        page = chooser.drawn.arms["prompt"].option
        assert asked.last.startswith(texts[page])
        seen.add(page)
    assert seen == {"draft", "draft-bold", "improve", "improve-x"}
    line = ScriptedLine(GOOD)
    await code(temperature=[0.3, 0.9]).propose(brief_of(TASK, line, playbook=Playbook(7, files)))
    assert (line.asked[0].temperature, line.asked[0].last[:6]) == (None, "Draft.")


@pytest.mark.parametrize("bounds", [[0.9, 0.3], [0.5, 0.5], [0.0, 1.0], [0.5, 1.5], [0.5]])
def test_bounds_of_a_temperature(bounds: list[float]) -> None:
    """Two numbers above 0 and up to 1 that rise."""
    with pytest.raises(ValueError, match="temperature"):
        make_task(model={"temperature": bounds})
