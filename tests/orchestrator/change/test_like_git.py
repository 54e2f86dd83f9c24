"""What a gate takes and git takes, too, becomes the same files: a reviewer may apply it with either."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from orchestrator.change import Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.effort import Effort
from orchestrator.change.tree import File

FILES = {
    "a.txt": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n",
    "b.txt": b"x\ny",
    "crlf.txt": b"p\r\nq\r\nr\r\n",
    "mixed.txt": b"p\r\nq\nr\r\n",
    "empty.txt": b"",
    "d/e.txt": b"in\nfolder\n",
    "a/a.txt": b"one\ntwo\n",
    "sp ace.txt": b"s\n",
    "B.TXT": b"upper\n",
    "only-nl": b"\n\n\n",
    "dup.txt": b"k\nv\nk\nv\nk\nv\n",
    "b/dup.txt": b"k\nv\nk\nv\nk\nv\n",
    "d/a.txt": b"one\ntwo\nthree\n",
    "day": b"one\n",
    "day 2020-01-01": b"one\n",
}
TREE = Tree.of(FILES)
POLICY = Policy(("**",), mode_may_change=True)
HEAD = "--- a/a.txt\n+++ b/a.txt\n"
DIFFS = [
    HEAD + "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    HEAD + "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n@@ -5,3 +5,4 @@\n five\n six\n+6.5\n seven\n",
    HEAD + "@@ -7 +7 @@\n-seven\n+seven\n\\ No newline at end of file\n",
    "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n",
    "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n"
    "\\ No newline at end of file\n",
    "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n",
    "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,3 +1,3 @@\n p\r\n-q\r\n+Q\r\n r\r\n",
    "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,3 +1,3 @@\n p\n-q\n+Q\n r\n",
    "--- a/crlf.txt\r\n+++ b/crlf.txt\r\n@@ -1,3 +1,3 @@\r\n p\r\n-q\r\n+Q\r\n r\r\n",
    "--- a/mixed.txt\n+++ b/mixed.txt\n@@ -1,3 +1,3 @@\n p\r\n-q\n+Q\n r\r\n",
    "diff --git a/a.txt b/c.txt\nsimilarity index 100%\nrename from a.txt\nrename to c.txt\n",
    "diff --git a/a.txt b/c.txt\nsimilarity index 80%\nrename from a.txt\nrename to c.txt\n--- a/a.txt\n"
    "+++ b/c.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    "diff --git a/a.txt b/c.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to c.txt\n",
    "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n",
    "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n"
    + HEAD
    + "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    "diff --git a/n.txt b/n.txt\nnew file mode 100644\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+n\n+m\n",
    "diff --git a/n.txt b/n.txt\nnew file mode 100755\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n"
    "\\ No newline at end of file\n",
    "diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex 0000000..e69de29\n",
    "diff --git a/empty.txt b/empty.txt\ndeleted file mode 100644\nindex e69de29..0000000\n",
    "diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n"
    "-y\n\\ No newline at end of file\n",
    "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n",
    "--- a/empty.txt\n+++ b/empty.txt\n@@ -0,0 +1 @@\n+n\n",
    "--- a/empty.txt\n+++ /dev/null\n",
    "diff --git a/a/a.txt b/a/a.txt\n--- a/a/a.txt\n+++ b/a/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
    "--- a/a.txt\n+++ a/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
    "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
    "--- a/sp ace.txt\t\n+++ b/sp ace.txt\t\n@@ -1 +1 @@\n-s\n+S\n",
    "--- a/sp ace.txt\n+++ b/sp ace.txt\n@@ -1 +1 @@\n-s\n+S\n",
    'diff --git "a/sp ace.txt" "b/sp ace.txt"\n--- "a/sp ace.txt"\n+++ "b/sp ace.txt"\n@@ -1 +1 @@\n-s\n+S\n',
    "diff --git a/b.TXT b/b.TXT\nnew file mode 100644\n--- /dev/null\n+++ b/b.TXT\n@@ -0,0 +1 @@\n+n\n",
    "diff --git a/A.txt b/A.txt\nnew file mode 100644\n--- /dev/null\n+++ b/A.txt\n@@ -0,0 +1 @@\n+n\n",
    'diff --git "a/e\\314\\201.txt" "b/e\\314\\201.txt"\nnew file mode 100644\n--- /dev/null\n'
    '+++ "b/e\\314\\201.txt"\n@@ -0,0 +1 @@\n+n\n',
    'diff --git "a/\\303\\251.txt" "b/\\303\\251.txt"\nnew file mode 100644\n--- /dev/null\n'
    '+++ "b/\\303\\251.txt"\n@@ -0,0 +1 @@\n+n\n',
    "diff --git a/é.txt b/é.txt\nnew file mode 100644\n--- /dev/null\n+++ b/é.txt\n@@ -0,0 +1 @@\n+n\n",
    HEAD + "@@ -2,3 +2,3 @@\n two\n-three\n+THREE\n four\n" + HEAD + "@@ -5 +5 @@\n-five\n+FIVE\n",
    HEAD + "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n" + HEAD + "@@ -1,2 +1,2 @@\n-ONE\n+one!\n two\n",
    "--- a/dup.txt\n+++ b/dup.txt\n@@ -3,2 +3,2 @@\n k\n-v\n+V\n",
    "--- a/dup.txt\n+++ b/dup.txt\n@@ -3 +3,2 @@\n k\n+n\n",
    "--- a/dup.txt\n+++ b/dup.txt\n@@ -4,2 +4,2 @@\n-k\n+K\n v\n",
    "--- a/only-nl\n+++ b/only-nl\n@@ -1,3 +1,4 @@\n \n \n+x\n \n",
    "--- a/only-nl\n+++ b/only-nl\n@@ -1,3 +1,4 @@\n\n\n+x\n\n",
    "diff --git a/a.txt b/a.txt\nindex 1..2 120000\n" + HEAD + "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
    "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n"
    "\\ No newline at end of file\n",
    "diff --git a/a.txt b/a.txt\nGIT binary patch\nliteral 3\nKcmZQzU|?VX00IC20RR91\n\nliteral 0\nHcmV?d00001\n\n",
    "Some words\n\n" + HEAD + "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n-- \n2.30.0\n",
    HEAD + "@@ -1,2 +1,2 @@ def f():\n-one\n+ONE\n two\n",
    HEAD + "@@ -1,0 +2 @@\n+zero context\n",
    HEAD + "@@ -0,0 +1 @@\n+at start\n",
    HEAD + "@@ -3 +2,0 @@\n-three\n",
    "diff --git a/d/e.txt b/d\nsimilarity index 100%\nrename from d/e.txt\nrename to d\n",
    "diff --git a/a.txt b/d/e.txt/x\nsimilarity index 100%\nrename from a.txt\nrename to d/e.txt/x\n",
    "diff --git a/a.txt b/b.txt\nsimilarity index 100%\nrename from a.txt\nrename to b.txt\n"
    "diff --git a/b.txt b/a.txt\nsimilarity index 100%\nrename from b.txt\nrename to a.txt\n",
    "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+n\n",
    "diff --git a/.git/config b/.git/config\nnew file mode 100644\n--- /dev/null\n+++ b/.git/config\n"
    "@@ -0,0 +1 @@\n+n\n",
]


def applied_by_git(text: str, folder: Path) -> dict[str, File] | None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    if subprocess.run(command, cwd=folder, env=alone, input=text.encode(), capture_output=True, check=False).returncode:
        return None
    found = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return {str(path.relative_to(folder)): File(path.read_bytes(), bool(path.stat().st_mode & 0o100)) for path in found}


def applied_by_us(text: str) -> dict[str, File] | None:
    try:
        return dict(apply_text(TREE, text, POLICY, exact=True))
    except Refusal:
        return None


def same(text: str, folder: Path) -> bool:
    ours = applied_by_us(text)
    theirs = None if ours is None else applied_by_git(text, folder)
    assert theirs is None or ours == theirs, text
    return theirs is not None


def test_git_makes_the_same_of_a_diff(tmp_path: Path) -> None:
    """Names, modes, renames, line ends, no newline at the end, one file twice, case and other normal forms."""
    assert sum(same(text, tmp_path / "tree") for text in DIFFS) > len(DIFFS) // 2


def test_git_makes_the_same_of_a_damaged_diff(tmp_path: Path) -> None:
    """Lines that are left out, doubled, swapped or of another kind."""
    dice = random.Random(7)
    for _ in range(8 * settings().max_examples):
        lines = dice.choice(DIFFS).splitlines(keepends=True)
        at = dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[at])
            case 2:
                lines.insert(dice.randrange(len(lines)), lines.pop(at))
            case 3:
                lines[at] = dice.choice(" +-@\\") + lines[at][1:]
            case _:
                lines[at] = lines[at].rstrip("\n") + dice.choice(["\r", "\t", " "]) + "\n"
        same("".join(lines), tmp_path / "tree")


OTHERWISE = [
    "--- a/a.txt\n+++ a/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n",
    "diff --git a/a.txt a/a.txt\nold mode 100644\nnew mode 100755\n",
    "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n\\ No newline at end of file\n",
    "--- a/empty.txt\n+++ /dev/null\n",
    "--- /dev/null\n+++ b/n.txt\n",
    "--- /dev/null\n+++ d/n.txt\n@@ -0,0 +1 @@\n+n\n",
    "diff --git d/n.txt d/n.txt\nnew file mode 100644\n--- /dev/null\n+++ d/n.txt\n@@ -0,0 +1 @@\n+n\n",
    "--- d/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n",
    "--- a/d/a.txt\n+++ d/a.txt\n@@ -1,3 +1,3 @@\n-one\n+ONE\n two\n three\n",
    "--- a/day 2020-01-01\n+++ b/day 2020-01-01\n@@ -1 +1 @@\n-one\n+ONE\n",
    "--- /dev/null\n+++ b/n.txt\twords\t2020-01-01\n@@ -0,0 +1 @@\n+n\n",
    "--- a/B.TXT\n+++ b/B.TXT\t1970-01-01 00:00:00 +0000\n@@ -1 +0,0 @@\n-upper\n",
    "--- B.TXT\n+++ B.TXT\n@@ -1 +1 @@\n-upper\n+UPPER\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n",
    "--- B.TXT\n+++ B.TXT\n@@ -1 +1 @@\n-upper\n+UPPER\n--- a/dup.txt\n+++ b/dup.txt\n@@ -1,2 +1,2 @@\n-k\n+K\n v\n",
    "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\nrename old b.txt\nrename new q.txt\n",
    "--- a/dup.txt\n+++ b/dup.txt\n@@ -1,2 +1,4 @@\n+k\n+v\n k\n v\n"
    "--- a/dup.txt\n+++ b/dup.txt\n@@ -1,2 +1,2 @@\n-k\n+K\n v\n",
]
AT_THE_END = "--- a/dup.txt\n+++ b/dup.txt\n@@ -3,2 +3,2 @@\n k\n-v\n+V\n"
BY_ITS_NEW_LINE = "--- a/dup.txt\n+++ b/dup.txt\n@@ -2,3 +4,3 @@\n v\n-k\n+K\n v\n"
WITHIN = f"day\n<<<<<<< SEARCH\none\n=======\n{HEAD}@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n>>>>>>> REPLACE\n"
SHIFTED = "--- a/dup.txt\n+++ b/dup.txt\n@@ -1,2 +1,4 @@\n+v\n+k\n k\n v\n@@ -2,3 +6,3 @@\n v\n-k\n+K\n v\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # Another file than the one that is named, a file that is called dev/null, a header that is passed over.
        *((text, Reason.MALFORMED) for text in OTHERWISE),
        # What follows a quoted name: git leaves it away, and writes another file.
        ('--- /dev/null\n+++ "b/n.txt"x\n@@ -0,0 +1 @@\n+n\n', Reason.NAME_UNSAFE),
        ('--- /dev/null\n+++ "b/n.txt" x"\n@@ -0,0 +1 @@\n+n\n', Reason.NAME_UNSAFE),
        # Git knows no blocks.
        (WITHIN, Reason.AMBIGUOUS),
        # A hunk that git puts by its new line, or at the end, which it tries first where no unchanged line follows.
        (BY_ITS_NEW_LINE, Reason.CONTEXT_AMBIGUOUS),
        (SHIFTED, Reason.CONTEXT_AMBIGUOUS),
        (AT_THE_END, Reason.CONTEXT_AMBIGUOUS),
    ],
)
def test_what_git_reads_otherwise_is_refused(text: str, reason: Reason) -> None:
    with pytest.raises(Refusal) as caught:
        apply_text(TREE, text, POLICY, exact=True)
    assert caught.value.reason is reason


def test_a_day_in_a_name_is_taken_where_git_takes_it(tmp_path: Path) -> None:
    name = "day 2020-01-01"
    hunk = "@@ -1 +1 @@\n-one\n+ONE\n"
    assert same(f"diff --git a/{name} b/{name}\n--- a/{name}\t\n+++ b/{name}\t\n{hunk}", tmp_path / "tree")


def test_a_mark_of_byte_order_hides_the_first_header_from_git() -> None:
    mode = "\ufeffdiff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n"
    text = mode + "--- a/B.TXT\n+++ b/B.TXT\n@@ -1 +1 @@\n-upper\n+UPPER\n"
    after = apply_text(TREE, text, POLICY, exact=True)
    assert not after["a.txt"].executable
    assert after["B.TXT"].data == b"UPPER\n"


def test_no_effort_left_is_no_agreement_with_git() -> None:
    with pytest.raises(Refusal) as caught:
        apply_text(TREE, BY_ITS_NEW_LINE, POLICY, exact=True, effort=Effort(places=3))
    assert caught.value.reason is Reason.TOO_COSTLY


def drawn(dice: random.Random) -> str:
    """A section with names, days and modes of all kinds, and hunks with any numbers among lines that are alike."""
    name = dice.choice([*FILES, "n.txt", "d/n.txt"])
    letters = dice.choice([("a/", "b/")] * 6 + [("", ""), ("a/", ""), ("", "b/"), ("d/", "d/")])
    old, new = (letter + name for letter in letters)
    head = f"diff --git {old} {new}\n" * dice.choice([0, 0, 1])
    match dice.randrange(8):
        case 0:
            old, head = "/dev/null", head and f"{head}new file mode 100644\n"
        case 1:
            new, head = "/dev/null", head and f"{head}deleted file mode 100644\n"
        case 2:
            head = head and f"{head}rename old {name}\nrename new {dice.choice([*FILES])}\n"
    days = [""] * 12 + ["\t2020-01-01 00:00:00", "\t1970-01-01 00:00:00 +0000", " 20-01-01", "\t", "\r", " ", '"']
    text = f"{head}--- {old}{dice.choice(days)}\n+++ {new}{dice.choice(days)}\n"
    lines = FILES.get(name, b"").decode().splitlines() if old != "/dev/null" else []
    for _ in range(dice.choice([1, 1, 2])):
        start = dice.randrange(len(lines) + 1)
        sides = [dice.choice([f" {it}\n", f" {it}\n", f"-{it}\n", f"-{it}\n+k\n"]) for it in lines[start : start + 3]]
        body = "".join(sides) + "+k\n" * (not sides or dice.random() < 0.3)
        was, now = (sum(line[:1] in signs for line in body.splitlines()) for signs in (" -", " +"))
        first = max(0, start + bool(was) + dice.choice([0, 0, 0, 1, -1, 2]))
        text += f"@@ -{first},{was} +{max(0, first + dice.choice([0, 0, 1, 2, -1]))},{now} @@\n{body}"
    return text


def test_git_makes_the_same_of_any_diff(tmp_path: Path) -> None:
    dice = random.Random(3)
    texts = ("".join(drawn(dice) for _ in range(dice.choice([1, 1, 2]))) for _ in range(60 * settings().max_examples))
    assert sum(same(text, tmp_path / "tree") for text in texts) > settings().max_examples


WHOLE = (
    "diff --git a/a.txt b/a.txt\nindex 1111111..2222222 100644\n" + HEAD + "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
    "diff --git a/d/e.txt b/d/f.txt\nsimilarity index 60%\nrename from d/e.txt\nrename to d/f.txt\n"
    "index 1111111..2222222 100644\n--- a/d/e.txt\n+++ b/d/f.txt\n@@ -1,2 +1,2 @@\n in\n-folder\n+file\n"
    "diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/n.txt\n"
    "@@ -0,0 +1,2 @@\n+n\n+m\n"
    "diff --git a/crlf.txt b/crlf.txt\nold mode 100644\nnew mode 100755\n"
    "diff --git a/dup.txt b/dup.txt\nold mode 100644\nnew mode 100755\nindex 1111111..2222222\n--- a/dup.txt\n"
    "+++ b/dup.txt\n@@ -1,2 +1,2 @@\n-k\n+K\n v\n"
    "diff --git a/B.TXT b/B.TXT\ndeleted file mode 100644\nindex 1111111..0000000\n--- a/B.TXT\n+++ /dev/null\n"
    "@@ -1 +0,0 @@\n-upper\n"
    "diff --git a/empty.txt b/empty.txt\ndeleted file mode 100644\nindex e69de29..0000000\n"
    "diff --git a/m.txt b/m.txt\nnew file mode 100644\nindex 0000000..e69de29\n"
    "diff --git a/a/a.txt b/a/a.txt\nindex 1111111..2222222 100644\n--- a/a/a.txt\n+++ b/a/a.txt\n"
    "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"
).splitlines(keepends=True)


def test_a_diff_that_is_cut_off(tmp_path: Path) -> None:
    """Of one that ends too early, git's answer is ours, or a refusal; one that lost nothing of a file is taken."""
    taken = []
    for end in range(1, len(WHOLE) + 1):
        text = "".join(WHOLE[:end])
        ours, theirs = applied_by_us(text), applied_by_git(text, tmp_path / "tree")
        assert ours is None or ours == theirs, text
        if ours is not None:
            taken.append(WHOLE[end - 1])
    assert [line for line in taken if line.startswith(("index ", "--- ", "+++ ", "@@ "))] == [
        "index e69de29..0000000\n",
        "index 0000000..e69de29\n",
    ]
    assert taken[-1] == WHOLE[-1]
