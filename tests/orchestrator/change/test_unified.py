"""Unified diffs as git writes them, and as language models do."""

import subprocess
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from orchestrator.change import Effort, Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.forms import parse
from orchestrator.change.places import Page
from tests.orchestrator.change.samples import edited, reason

FILE = "".join(f"line {number}\n" for number in range(1, 21))
RIGHT = "@@ -9,3 +9,3 @@\n line 9\n-line 10\n+ten\n line 11\n"
WANTED = FILE.replace("line 10\n", "ten\n")
ALL = Policy(("**",), mode_may_change=True)


def diff(hunks: str, path: str = "f.py") -> str:
    return f"diff --git a/{path} b/{path}\nindex 1234567..89abcde 100644\n--- a/{path}\n+++ b/{path}\n{hunks}"


def only_hunks(hunks: str, file: str = FILE) -> str:
    return edited(diff(hunks), "f.py", file)


def why_not(hunks: str, file: str = FILE) -> Reason:
    return reason(diff(hunks), ALL, tree=Tree.of({"f.py": file}))


SLIPS = {
    "nothing": diff(RIGHT),
    "wrong line number": diff(RIGHT.replace("-9,3 +9,3", "-3,3 +400,3")),
    "wrong counts": diff(RIGHT.replace("-9,3 +9,3", "-9,30 +9,1")),
    "counts too small": diff(RIGHT.replace("-9,3 +9,3", "-9,1 +9,1")),
    "no numbers": diff(RIGHT.replace("-9,3 +9,3", "...")),
    "bare hunk header": diff(RIGHT.replace("@@ -9,3 +9,3 @@", "@@")),
    "trailing blanks": diff(RIGHT.replace(" line 9\n", " line 9  \n").replace("-line 10", "-line 10\t")),
    "fence": f"Here it is:\n\n```diff\n{diff(RIGHT)}```\n\n- I changed a line.\n- That is all.\n",
    "fence that nobody closed": f"```diff\n{diff(RIGHT)}",
    "prose": f"I suggest this - or not.\n\n{diff(RIGHT)}\nIt makes it better.\n",
    "prose with bullets": f"{diff(RIGHT)}\n- one\n- two\n",
    "windows": diff(RIGHT).replace("\n", "\r\n"),
    "no prefixes": f"--- f.py\n+++ f.py\n{RIGHT}",
    "one prefix": f"--- f.py\n+++ b/f.py\n{RIGHT}",
    "no git line": f"--- a/f.py\n+++ b/f.py\n{RIGHT}",
    "dates": f"--- a/f.py\t2024-01-01 00:00:00\n+++ b/f.py\t2024-01-01\n{RIGHT}",
    "byte order mark": "\ufeff" + diff(RIGHT),
    "signature": f"From 123\nSubject: x\n\n{diff(RIGHT)}-- \n2.40.1\n",
    "blank lines behind, counts wrong": diff(RIGHT.replace("9,3 +9,3", "9,8 +9,8")) + "\n\n",
    "two sections": diff(RIGHT) + diff("@@ -20 +20 @@\n-line 20\n+line 20\n"),
    "hunks that share context": diff(RIGHT + "@@ -11,2 +11,2 @@\n line 11\n-line 12\n+line 12\n"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_are_repaired(slip: str) -> None:
    """Where a slip leaves one meaning only, the change is taken, and always means the same."""
    assert edited(SLIPS[slip], "f.py", FILE) == WANTED


def test_blank_context_without_its_space() -> None:
    """A blank context line that lost its space is still context."""
    hunk = "@@ -1,4 +1,4 @@\n a\n\n-b\n+c\n\n"
    for header in ("@@ -1,4 +1,4 @@", "@@ -7,9 +7,1 @@"):
        assert only_hunks(hunk.replace("@@ -1,4 +1,4 @@", header), "a\n\nb\n\nz\n") == "a\n\nc\n\nz\n"
        assert only_hunks(hunk.replace("@@ -1,4 +1,4 @@", header), "a\n\nb\nz\n") == "a\n\nc\nz\n"


TWICE = "x\nsame\ny\n" * 2


def test_twice_found_is_ambiguous() -> None:
    """Context that stands in two places is refused, unless the line number says which."""
    hunk = "@@ -{} +2 @@\n-same\n+other\n"
    assert why_not(hunk.format(3), TWICE) is Reason.CONTEXT_AMBIGUOUS
    assert only_hunks(hunk.format(2), TWICE) == "x\nother\ny\nx\nsame\ny\n"
    assert only_hunks(hunk.format(5), TWICE) == "x\nsame\ny\nx\nother\ny\n"


def test_numbers_that_were_wrong_once_decide_nothing() -> None:
    """Where one hunk shows that the agent cannot count, its other numbers do not choose among places."""
    file = TWICE + "end\n"
    hunks = "@@ -2 +2 @@\n-same\n+other\n@@ -{} +1 @@\n-end\n+END\n"
    assert why_not(hunks.format(3), file) is Reason.CONTEXT_AMBIGUOUS
    assert only_hunks(hunks.format(7), file) == "x\nother\ny\nx\nsame\ny\nEND\n"


def test_no_context_is_ambiguous() -> None:
    """New lines without any old line beside them are placed by numbers alone, which is not enough."""
    assert why_not("@@ -5,0 +6 @@\n+new\n") is Reason.CONTEXT_AMBIGUOUS
    assert only_hunks("@@ -0,0 +1 @@\n+new\n", "") == "new\n"


LEFT_OVERS = [
    RIGHT + "line 12 lost its blank\n-line 13\n+thirteen\n",
    RIGHT + "\n+thirteen\n",
    RIGHT.replace(" line 11\n", "line 11\n") + "+more\n",
    "+no hunk header\n",
]


@pytest.mark.parametrize("hunks", LEFT_OVERS)
def test_half_a_hunk_is_never_applied(hunks: str) -> None:
    """Lines that look like part of a hunk, but are in none, refuse the whole change."""
    assert why_not(hunks) in (Reason.MALFORMED, Reason.CONTEXT_MISSING)


MALFORMED = {
    "combined diff": "@@@ -1,2 -1,2 +1,3 @@@\n  a\n",
    "hunk without lines": "@@ -1 +1 @@\n",
    "blank lines only": "@@ -1,2 +1,2 @@\n\n\n",
    "starts with the end": "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n",
    "goes on after the end": "@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n",
    "context after the end": "@@ -1,2 +1,3 @@\n+a\n\\ No newline at end of file\n b\n c\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    """What cannot be read is refused as such, and so is a hunk that names no file."""
    assert why_not(MALFORMED[name]) is Reason.MALFORMED
    assert reason(RIGHT, ALL) is Reason.MALFORMED


HEADERS = [
    "--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+x\n",
    "diff --git a/f.py b/f.py\nnew file mode 100644\n--- a/f.py\n+++ b/f.py\n@@ -0,0 +1 @@\n+x\n",
    "diff --git a/f.py b/f.py\nnew file mode 100644\ndeleted file mode 100644\n",
    "diff --git a/f.py b/f.py\nnew mode 100644\nnew mode 100755\n",
    "diff --git a/f.py b/f.py\nnew file mode 100644\nnew mode 100755\n",
    "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n",
]


@pytest.mark.parametrize("text", HEADERS)
def test_headers_that_contradict_the_tree_or_themselves(text: str) -> None:
    """A header that says two things, or creates what is there, is refused."""
    refused = (Reason.FILE_EXISTS, Reason.MALFORMED, Reason.NAME_UNSAFE)
    assert reason(text, ALL, tree=Tree.of({"f.py": "x\n"})) in refused


ENDS = {
    ("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n"): "a\nc\n",
    ("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"): "a\nc",
    ("a\nb\n", "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n"): "a\nc",
    ("a\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"): "c\nb",
    ("a\nb", "@@ -2 +2 @@\n-b\n+c\n"): "a\nc",
    ("b\nb\n", "@@ -9 +9 @@\n-b\n+c\n\\ No newline at end of file\n"): "b\nc",
    ("a", "@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n"): "",
    ("\n", "@@ -1 +1 @@\n-\n+a\n"): "a\n",
}


@pytest.mark.parametrize(("file", "hunk"), ENDS)
def test_last_line(file: str, hunk: str) -> None:
    """The marker decides whether the file ends in a newline; without a marker it stays as it was."""
    assert only_hunks(hunk, file) == ENDS[file, hunk]


def test_marker_away_from_the_end() -> None:
    """A hunk that says the file ends here fits nowhere else."""
    assert why_not("@@ -1 +1 @@\n-line 1\n+x\n\\ No newline at end of file\n") is Reason.CONTEXT_MISSING


def test_line_ends_of_the_file_win() -> None:
    """A hunk with other line ends than the file takes the file's own."""
    windows = "a\r\nb\r\nc\r\n"
    assert only_hunks("@@ -1,2 +1,2 @@\n a\n-b\n+x\n", windows) == "a\r\nx\r\nc\r\n"
    assert only_hunks("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+x\r\n", windows) == "a\r\nx\r\nc\r\n"
    assert only_hunks("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+x\r\n", "a\nb\nc\n") == "a\nx\nc\n"


def test_context_keeps_the_blanks_of_the_file() -> None:
    """Trailing blanks of the file survive where the agent left them out of its context."""
    assert only_hunks("@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a  \nb\t\nc \n") == "a  \nx\nc \n"


def test_lines_that_look_like_headers() -> None:
    """Removed lines that start with dashes and added ones with pluses are lines, where the counts say so."""
    hunk = "@@ -1,2 +1,2 @@\n--- a/q\n+++ b/q\n x\n"
    assert only_hunks(hunk, "-- a/q\nx\n") == "++ b/q\nx\n"


def test_new_file_without_saying_so() -> None:
    """New lines only, for a file that is not there, can only mean a new file."""
    assert apply_text(Tree(), "--- a/n.py\n+++ b/n.py\n@@ -0,0 +1 @@\n+x\n", ALL) == Tree.of({"n.py": "x\n"})


@pytest.mark.parametrize("hunks", ["", "@@ -1,3 +0,0 @@\n-a\n-b\n-c\n"])
def test_deletion(hunks: str) -> None:
    """A file is deleted with its lines or without them."""
    end = f"--- a/f.py\n+++ /dev/null\n{hunks}" if hunks else ""
    text = f"diff --git a/f.py b/f.py\ndeleted file mode 100644\n{end}"
    assert apply_text(Tree.of({"f.py": "a\nb\nc\n", "g": ""}), text, ALL) == Tree.of({"g": ""})
    assert reason(text, ALL, tree=Tree.of({"g": ""})) is Reason.FILE_MISSING


def test_folder_named_like_a_prefix() -> None:
    """Equal names on both sides are taken as they are: there may be a folder a."""
    text = "--- a/f.py\n+++ a/f.py\n@@ -1 +1 @@\n-x\n+y\n"
    assert edited(text, "a/f.py", "x\n") == "y\n"


def test_quoted_names() -> None:
    """Names as git quotes them are read, and what the quotes hold must be good text."""
    name = '"{}/\\303\\274 x.py"'
    head = f"diff --git {name.format('a')} {name.format('b')}\n"
    text = f"{head}--- {name.format('a')}\n+++ {name.format('b')}\n@@ -1 +1 @@\n-x\n+y\n"
    assert edited(text, "ü x.py", "x\n") == "y\n"
    for bad in ('"a/\\377"', '"a/\\9"', '"a/\\777"', '"a/\\', '"a/\\"'):
        assert reason(f"--- {bad}\n+++ {bad}\n@@ -1 +1 @@\n-x\n+y\n", ALL) is Reason.NAME_UNSAFE


def test_insertions_at_one_place_overlap() -> None:
    """Two hunks that add lines at the same place do not say which come first."""
    assert why_not("@@ -1 +1,2 @@\n line 1\n+x\n@@ -1 +1,2 @@\n line 1\n+y\n") is Reason.OVERLAP


def test_signature_after_a_line_like_it() -> None:
    """The signature of a mailed patch ends the hunk, even where a removed line looks the same."""
    hunk = "@@ -1,2 +1,1 @@\n-- \n x\n-- \n2.40.1\n"
    assert only_hunks(hunk, "- \nx\n") == "x\n"


def test_search_has_a_budget() -> None:
    """A search that costs too much ends without an answer; the same search with more effort has one."""
    lines, wanted = [b"a"] * 100 + [b"b"] * 100, [b"a", b"b", b"b"]
    assert Page(lines, Effort()).places(wanted) == [99]
    assert Page(lines, Effort(places=1000)).places(wanted) is None


def test_hard_to_search() -> None:
    """A file made of common lines ends the search in a refusal, and soon."""
    file = "a\n" * 200_000
    hunks = ("@@ -1 +1 @@\n" + "-a\n" * 3000 + "-b\n+c\n") + "@@ -1 +1 @@\n-b\n+c\n"
    assert why_not(hunks, file) is Reason.CONTEXT_MISSING
    periodic = ("a\n" * 99 + "b\n") * 2000
    refused = (Reason.CONTEXT_MISSING, Reason.CONTEXT_AMBIGUOUS)
    assert why_not("@@ -1 +1 @@\n" + "-a\n" * 98 + "-b\n-b\n+c\n", periodic) in refused


def test_what_git_refuses_was_cut_off(tmp_path: Path) -> None:
    """Read exactly, a diff that was cut off anywhere is refused where git refuses it, and else means what it says."""
    (tmp_path / "f.py").write_text(FILE)
    whole = diff(RIGHT + "@@ -18,3 +18,3 @@\n line 18\n-line 19\n+nineteen\n line 20\n")
    lines = whole.splitlines(keepends=True)
    cuts = ["".join(lines[:count]) for count in range(5, len(lines) + 1)] + [whole[:-1], whole[:-4]]
    for cut in cuts:
        command = ["git", "apply", "--check", "-"]
        git = subprocess.run(command, cwd=tmp_path, input=cut.encode(), capture_output=True, check=False)
        with suppress(Refusal) if git.returncode else nullcontext():
            parse(cut, exact=True)
            assert not git.returncode, cut
