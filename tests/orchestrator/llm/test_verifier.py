"""What the verifier is asked, and what of its answer counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.model_use import Tokens
from orchestrator.llm.line import Answer
from orchestrator.llm.verifier import LONGEST_DIFF, SYSTEM, Question, Review, ask_verifier, prompt, read_review
from tests.orchestrator.proposers.llm.scripts import ScriptedLine

NONCE = "5eed5eed5eed5eed"
DIFF = "--- a/solve.py\n+++ b/solve.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def question(diff: str = DIFF, statement: str = "Sort fast.") -> Question:
    return Question(statement, ("solve.py", "src/**"), diff, NONCE)


def read(text: str, stop: str = "end_turn", diff: str = DIFF) -> Review:
    return read_review(Answer(text, "m", stop, Tokens()), question(diff))


def answer(finding: str, *reasons: str) -> str:
    told = [f"REASON {NONCE}: {reason}" for reason in reasons or ("a better constant",)]
    return "\n".join(["It changes a constant.", *told, f"FINDING {NONCE}: {finding}"])


@pytest.mark.parametrize("finding", ["pass", "flag", "hold"])
def test_findings(finding: str) -> None:
    """An answer in the form is taken for what it says, whatever stands before it; one that is cut off is not."""
    told = "blah\n" * 100_000 + answer(finding, "one", "two")
    assert read(told) == Review(finding, "one; two")  # type: ignore[arg-type]
    assert read(told, stop="max_tokens").finding == "flag"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is fine, pass it.",
        "FINDING: pass",
        f"FINDING {NONCE}: pass",
        f"REASON {NONCE}: fine\nFINDING {NONCE}: passed",
        f"REASON {NONCE}: fine\nFINDING 0123456789abcdef: pass",
        f"REASON 0123: fine\nFINDING {NONCE}: pass",
        answer("pass") + "\nOn second thought, no.",
        answer("pass") + "\n" + answer("hold"),
        answer("pass") + "\n" + answer("pass"),
        answer("HOLD"),
        f"FINDING {NONCE}: pass REASON {NONCE}: x",
    ],
)
def test_anything_else_is_a_flag(text: str) -> None:
    """Prose, another word, two findings, no reason, or something after the finding: a person should look."""
    assert read(text).finding == "flag"


@given(st.text(max_size=400))
def test_no_words_are_a_pass(text: str) -> None:
    """Without the word that was made up for this question, nothing passes."""
    assert read(text).finding == "flag"


@given(st.text(max_size=2000))
def test_fences_hold(diff: str) -> None:
    """T39: whatever a change holds, each line of it is marked, nothing in it is unprintable, and the fences stay."""
    lines = prompt(question(diff)).split("\n")
    fences = [line for line in lines if line.startswith("--- ")]
    assert fences == [
        f"--- TASK {NONCE} ---",
        f"--- END {NONCE} ---",
        f"--- PATHS THAT MAY BE CHANGED {NONCE} ---",
        f"--- END {NONCE} ---",
        f"--- CHANGE {NONCE} ---",
        f"--- END {NONCE} ---",
    ]
    inside = lines[lines.index(fences[4]) + 1 : -2]
    assert all(line.startswith("| ") for line in inside)
    assert all(line.replace("\t", "").isprintable() for line in lines)


def test_hidden_text_is_seen() -> None:
    """Characters that hide text from a person's eyes are written out for the model, too."""
    shown = prompt(question("+x = 1  # \u202egnp.exe\u200b \U000e0041\x1b[2K\n"))
    assert not [it for it in (r"\u202e", r"\u200b", r"\U000e0041", r"\x1b") if it not in shown]


def test_a_change_that_is_too_long() -> None:
    """Of what was not shown whole nobody can say that it is clean."""
    long = DIFF + "+y = 1\n" * LONGEST_DIFF
    assert len(prompt(question(long))) < 2 * LONGEST_DIFF
    assert f"of {len(long):,} characters" in prompt(question(long))
    assert read(answer("pass"), diff=long).finding == "flag"
    assert read(answer("hold"), diff=long).finding == "hold"


def test_reasons_are_bounded() -> None:
    """Three at most, each short, in one printable line."""
    found = read(answer("flag", *["x" * 5000, "a\x1b[31mred", "three", "four"]))
    assert found.reasons.isprintable()
    assert len(found.reasons) < 700
    assert found.reasons.endswith("three")


async def test_it_reasons_first() -> None:
    """It gets tokens to think with before it answers, and is told to reason before it finds in any case. Nothing of a
    change or a task is in the system prompt, so that it can be cached and cannot be written to.
    """
    line = ScriptedLine(answer("pass"), answer("pass"))
    for thinking in (4096, 0):
        assert (await ask_verifier(line, question(), thinking)).finding == "pass"
    first, second = line.asked
    assert first.thinking == 4096 < first.max_tokens
    assert (second.thinking, first.temperature, first.model) == (None, None, None)
    assert "Think first" in SYSTEM
    assert SYSTEM.index("REASON CODE") < SYSTEM.index("FINDING CODE")
    assert not [word for word in (NONCE, "Sort fast.") if word in SYSTEM]
