"""The canonical diff takes the old tree to the new one, here and in git's own hands."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.change import File, Policy, Reason, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.canonical import Size, compare, difference
from orchestrator.change.comparison import common_runs
from orchestrator.change.edits import Form
from tests.orchestrator.change.samples import reason

ALL = Policy(("**",), mode_may_change=True)
WORDS = "a|b|c| d|-- a/x|++ b/x|@@ -1 +1 @@|```|x.py|\r|e\r|f  |\\ No newline|ü\u2028|\x0c\x1c|--- a|+++ b|-|+||"
MARKERS = ["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "diff --git a/x b/x"]
LINES = st.sampled_from([*WORDS.split("|"), *MARKERS])
ENDS = st.sampled_from(["", "\n"])
TEXTS = st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), st.lists(LINES, max_size=14), ENDS)
FILES = st.builds(File, TEXTS, st.booleans())
PATHS = st.sampled_from(["a", "b.py", "with space.txt", "d/e", "d/ü.py", 'q"uote', "d/f b/g"])
TREES = st.dictionaries(PATHS, FILES, max_size=5).map(Tree)


@given(old=TREES, new=TREES)
@settings(max_examples=2 * settings().max_examples)
def test_round_trip(old: Tree, new: Tree) -> None:
    """Applied to the old tree, the difference gives the new one exactly, whatever the lines look like."""
    text = difference(old, new)
    if old == new:
        assert text == ""
        return
    assert apply_text(old, text, ALL, Form.UNIFIED) == new
    assert apply_text(old, text, ALL) == new
    assert apply_text(old, text.encode(), ALL) == new


def test_canonical_form() -> None:
    """Three lines of context; hunks are apart where more than six lines stay between them."""
    lines = [f"{number}\n" for number in range(12)]
    changed = lines.copy()
    changed[1], changed[9] = "one\n", "nine\n"
    text = difference(Tree.of({"f": "".join(lines)}), Tree.of({"f": "".join(changed)}))
    first = "@@ -1,5 +1,5 @@\n 0\n-1\n+one\n 2\n 3\n 4\n"
    second = "@@ -7,6 +7,6 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n"
    assert text == f"diff --git a/f b/f\n--- a/f\n+++ b/f\n{first}{second}"
    changed[8] = "eight\n"
    assert difference(Tree.of({"f": "".join(lines)}), Tree.of({"f": "".join(changed)})).count("@@ -") == 1


def numbered(count: int) -> list[str]:
    return [f"line {number}\n" for number in range(count)]


@given(seed=st.integers(0, 2**32), edits=st.integers(1, 8))
def test_mutated_numbers(seed: int, edits: int) -> None:
    """Where every line of a file is its own, hunks find their place under any numbers."""
    rng = random.Random(seed)
    lines = numbered(60)
    for number in range(edits):
        at = rng.randrange(len(lines))
        lines[at : at + rng.randrange(3)] = [f"new {number}\n"] * rng.randrange(1, 3)
    old, new = Tree.of({"f": "".join(numbered(60))}), Tree.of({"f": "".join(lines)})
    text = "\n".join(mutated(line, rng) for line in difference(old, new).split("\n"))
    assert apply_text(old, text, ALL) == new


def mutated(line: str, rng: random.Random) -> str:
    if not line.startswith("@@"):
        return line.rstrip() if line == " " else line
    if rng.random() < 0.3:
        return "@@ @@"
    return f"@@ -{rng.randrange(99)},{rng.randrange(20)} +{rng.randrange(99)},{rng.randrange(20)} @@"


@given(old=st.lists(st.sampled_from("abc"), max_size=9), new=st.lists(st.sampled_from("abc"), max_size=9))
def test_shortest(old: list[str], new: list[str]) -> None:
    """No other edit script keeps more lines; runs are in order and really common."""
    a, b = [line.encode() for line in old], [line.encode() for line in new]
    runs = common_runs(a, b)
    assert sum(run.length for run in runs) == longest_common(a, b)
    assert (runs[0].old, runs[0].new) == (0, 0)
    assert (runs[-1].old + runs[-1].length, runs[-1].new + runs[-1].length) == (len(a), len(b))
    for run in runs:
        assert a[run.old : run.old + run.length] == b[run.new : run.new + run.length]


def longest_common(a: list[bytes], b: list[bytes]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_budget_of_the_comparison() -> None:
    """Files that are hard to compare are replaced as a whole between their common ends, and still round."""
    rng = random.Random(1)
    a, b = ([rng.choice("ab") + "\n" for _ in range(10_000)] for _ in range(2))
    old, new = Tree.of({"f": "".join(["s\n", *a, "e\n"])}), Tree.of({"f": "".join(["s\n", *b, "e\n"])})
    text = difference(old, new)
    assert text.count("@@") == 2
    assert text.startswith("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,10002 +1,10002 @@\n s\n")
    assert apply_text(old, text, ALL) == new


@pytest.mark.parametrize("data", [b"\0", b"\xff", b"a\nb\xe9\n"])
def test_binary_is_recorded_only(data: bytes) -> None:
    """A file that is no text is named with both digests, and that form is refused when applied."""
    tree = Tree({"x": File(data)})
    text = difference(Tree(), tree)
    assert text.startswith("diff --git a/x b/x\nnew file mode 100644\nindex e3b0c442")
    assert text.endswith("Binary files /dev/null and b/x differ\n")
    assert reason(text, ALL) is Reason.BINARY
    assert difference(tree, tree) == ""


def git(folder: Path, *words: str, text: str = "") -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", "-c", "core.autocrlf=false", "-c", "user.name=t", "-c", "user.email=t@t", *words]
    done = subprocess.run(command, cwd=folder, env=environment, input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode()


def written(tree: Tree, folder: Path) -> None:
    for path, file in tree.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        target.chmod(0o755 if file.executable else 0o644)


def read(folder: Path) -> Tree:
    found = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return Tree(
        {str(path.relative_to(folder)): File(path.read_bytes(), bool(path.stat().st_mode & 0o100)) for path in found}
    )


BODY = "".join(numbered(40))
ROWS = BODY.replace("line", "row")
OLD = Tree.of({"keep": "k\n", "edit me.py": BODY, "open": "a\nb", "gone": "g\n", "empty": "", "mode": "m\n"})
OLD = Tree({**OLD, **Tree.of({"moved/ü.py": ROWS, "cr": "a\r\nb\r\n"})})
NEW = Tree.of(
    {
        "keep": "k\n",
        "edit me.py": BODY.replace("line 3\n", "").replace("line 30\n", "30\n31\n"),
        "open": "a\nc",
        "born": "-- x\n++ y\n",
        "moved to/ü.py": ROWS.replace("row 5\n", "five\n"),
        "copy": "k\n",
        "cr": "a\r\nc\r\n",
        "new empty": "",
    }
)
NEW = Tree({**NEW, "mode": File(b"m\n", executable=True)})


def test_git_takes_our_diff(tmp_path: Path) -> None:
    """Git applies the canonical diff, and gets the same tree."""
    written(OLD, tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "apply", "--whitespace=nowarn", text=difference(OLD, NEW))
    assert read(tmp_path) == NEW


@pytest.mark.parametrize("options", [[], ["-M"], ["-C", "--find-copies-harder"], ["-U1"], ["-M", "--no-prefix"]])
def test_we_take_the_diff_of_git(tmp_path: Path, options: list[str]) -> None:
    """What git writes, with renames, copies, quoted names and modes, gives the same tree here."""
    git(tmp_path, "init", "-q")
    written(OLD, tmp_path)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "old")
    for path in OLD.keys() - NEW.keys():
        (tmp_path / path).unlink()
    written(NEW, tmp_path)
    git(tmp_path, "add", "-A")
    text = git(tmp_path, "diff", "--cached", *options)
    assert apply_text(OLD, text, ALL) == NEW


ROOT = Tree.of({"a.py": "one\ntwo\nthree\n", "b.txt": "b\n"})


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        ({}, 0),
        ({"a.py": "one\n2\nthree\n"}, 2),
        ({"a.py": "one\ntwo\nthree\nfour\n"}, 1),
        ({"a.py": "one\n"}, 2),
        ({"c.py": "1\n2\n3\n"}, 3),
        ({"c.py": ""}, 1),
        ({"a.py": "one\ntwo\nthree\n", "b.txt": "b"}, 2),
    ],
)
def test_lines(files: dict[str, str], lines: int) -> None:
    """Every line that is not shared counts once on its side; an empty new file is still a change."""
    assert compare(ROOT, Tree({**ROOT, **Tree.of(files)})).size().lines == lines


def test_other_differences() -> None:
    """A file that is gone counts with its lines, a change of mode as one."""
    assert compare(ROOT, Tree({"a.py": ROOT["a.py"]})).size() == Size(1, 2)
    assert compare(ROOT, Tree({**ROOT, "b.txt": File(b"b\n", executable=True)})).size() == Size(1, 0)


def test_bytes() -> None:
    """A line of 200 kB is one line, and 200,000 bytes; what both sides share is none."""
    assert compare(ROOT, Tree.of({"a.py": "one\n2\nthree\n", "b.txt": "b\n"})).size() == Size(2, 6)
    assert compare(ROOT, Tree({**ROOT, "c.py": File(b"x" * 200_000)})).size() == Size(1, 200_000)


def test_what_is_too_much_to_compare_counts_as_a_whole() -> None:
    """A candidate differs from the root by all the changes above it, so its size is never refused."""
    many = Tree({f"d/{number:03}": File((b"%03d" % number * 100 + b"\n") * 1000) for number in range(60)})
    size = compare(Tree({**ROOT, "d/000": File(b"same\n")}), Tree({**ROOT, **many})).size()
    assert size.lines == 60 * 1000 + 1
