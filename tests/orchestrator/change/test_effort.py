"""T82: a change made to be slow to read, find, compare or measure has one budget, however it is spread."""

import pytest

from orchestrator.change import Caps, Effort, File, Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.canonical import compare
from orchestrator.change.comparison import common_runs
from orchestrator.change.effort import FILE_STEPS, STEPS
from orchestrator.change.forms import parse
from tests.lag import least_time

POLICY = Policy(editable=("src/**",))


def scrambled(letter: bytes, files: int = 64, lines: int = 1_500) -> Tree:
    """Files that share no line with those of another letter, and repeat their own."""
    text = b"".join(b"%s%d\n" % (letter, at * 7 % 997) for at in range(lines))
    return Tree({f"src/f{number:02}": File(text) for number in range(files)})


def test_t82_one_budget_for_all_files() -> None:
    """A rewrite of 64 files takes no more steps than one budget has, and the diff of it is right all the same."""
    old, new = scrambled(b"a", lines=300), scrambled(b"b", lines=300)
    effort = Effort(steps=STEPS // 5)
    compared = compare(old, new, effort)
    text = compared.text()
    assert STEPS // 6 < effort.steps_used <= STEPS // 5 + 20_000
    assert apply_text(old, text, Policy(editable=("src/**",), caps=Caps(text_bytes=1 << 24, text_lines=1 << 20))) == new
    assert compared.size().lines == 2 * 64 * 300


def test_t82_what_is_compared_once_is_not_compared_again() -> None:
    """The diff and the size of one change are taken from one comparison."""
    effort = Effort()
    compared = compare(scrambled(b"a", 2, 100), scrambled(b"b", 2, 100), effort)
    compared.text()
    used = effort.steps_used
    assert used
    compared.size()
    assert effort.steps_used == used


def test_t82_the_same_answer_on_any_machine() -> None:
    """What is left out when the steps are used up depends on the files alone."""
    old, new = scrambled(b"a", 8, 300), scrambled(b"b", 8, 300)
    quick, slow = Effort(steps=50_000), Effort(steps=50_000, clock=iter(range(10**9)).__next__, seconds=1e12)
    assert compare(old, new, quick).text() == compare(old, new, slow).text()
    assert quick.steps_used > 40_000


def test_one_file_cannot_use_up_what_all_may_use() -> None:
    """The hardest file leaves steps for the next ones."""
    effort = Effort()
    lines = [b"%d\n" % at for at in range(5_000)]
    assert len(common_runs(lines, lines[::-1], effort)) <= 2
    assert effort.steps_used <= FILE_STEPS + 5_000 < STEPS


def test_t82_processor_time_is_the_backstop() -> None:
    """A comparison that takes too much of the processor is refused with a reason that an agent is told."""
    ticks = iter(range(0, 10_000_000, 3))
    with pytest.raises(Refusal, match=r"too costly: .*send a smaller change") as refused:
        compare(scrambled(b"a"), scrambled(b"b"), Effort(clock=ticks.__next__, seconds=5)).text()
    assert refused.value.reason is Reason.TOO_COSTLY


MANY_LINES = {
    "newlines": b"src/a\n```\n" + b"\n" * 1_000_000 + b"```\n",
    "fences": b"```\n" * 250_000,
    "context": b"--- a/src/a\n+++ b/src/a\n@@ -1,500000 +1,500000 @@\n" + b" \n" * 500_000,
    "headers": b"diff --git a/x b/x\n" * 40_000 + b"\n" * 120_000,
}


@pytest.mark.parametrize("of", MANY_LINES)
def test_t82_a_text_of_too_many_lines(of: str) -> None:
    """Lines are counted before one of them is looked at."""

    def read() -> None:
        with pytest.raises(Refusal) as refused:
            parse(MANY_LINES[of])
        assert refused.value.reason is Reason.TOO_MANY_LINES

    assert least_time(read, 0.5) < 0.5


def test_t82_files_of_too_many_lines() -> None:
    """So are those of the files that a change writes or replaces."""
    tree = Tree({"src/a": File(b"\n" * 900_000), "src/b": File(b"b\n")})
    for text in (
        "--- a/src/b\n+++ b/src/b\n@@ -1 +1 @@\n-b\n+c\n--- a/src/a\n+++ b/src/a\n@@ -1 +1 @@\n-\n+c\n",
        "src/a\n```\nshort\n```\n",
        "diff --git a/src/a b/src/a\ndeleted file mode 100644\n--- a/src/a\n+++ /dev/null\n",
    ):
        with pytest.raises(Refusal) as refused:
            apply_text(tree, text, POLICY)
        assert refused.value.reason is Reason.TOO_MANY_LINES


def test_t82_a_large_file_in_its_place() -> None:
    """A text file that is replaced or deleted is compared as well, so it may not be too large to be compared."""
    tree = Tree({"src/a": File(b"x" * (20 << 20)), "src/b": File(b"\0" * (20 << 20))})
    with pytest.raises(Refusal) as refused:
        apply_text(tree, "src/a\n```\nshort\n```\n", POLICY)
    assert refused.value.reason is Reason.TOO_MANY_BYTES
    assert apply_text(tree, "src/b\n```\nshort\n```\n", POLICY)["src/b"].data == b"short\n"


def test_t82_one_effort_for_finding_places() -> None:
    """Hunks in many files that are hard to find share one budget, too."""
    tree = Tree({f"src/f{number:02}": File((b"\n" * 99 + b"x\n") * 40) for number in range(64)})
    blocks = "".join(
        f"src/f{number:02}\n" + ("<<<<<<< SEARCH\n" + "\n" * 90 + "=======\ny\n>>>>>>> REPLACE\n") * 8
        for number in range(64)
    )
    effort = Effort(places=100_000)
    with pytest.raises(Refusal) as refused:
        apply_text(tree, blocks, POLICY, effort=effort)
    assert refused.value.reason is Reason.CONTEXT_AMBIGUOUS
    assert effort.places_used <= 110_000


def test_a_whole_rewrite_of_a_large_file_passes() -> None:
    """The control: an honest change of 5,000 lines is taken, compared line by line and measured."""
    old = Tree({"src/a.py": File(b"".join(b"value_%d = %d\n" % (at, at) for at in range(5_000)))})
    text = "".join(f"value_{at} = {at * 2 if at % 20 == 0 else at}\n" for at in range(5_000))
    new = apply_text(old, f"src/a.py\n```\n{text}```\n", POLICY)
    size = compare(old, new).size()
    assert size.lines == 2 * 249
    assert compare(old, new).text().count("@@ -") == 249
