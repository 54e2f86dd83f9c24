"""The rows of the threat table that a change can try: each is refused, and the honest twin of each is taken."""

from collections.abc import Callable

import pytest

import orchestrator.change.forms
from orchestrator.change import Caps, File, Policy, Reason, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.edits import Form
from tests.orchestrator.change.samples import POLICY, SECRET, TREE, block, created, reason, refusal, whole

ANYTHING = Policy(editable=("**",))
WAYS = [created, whole, lambda path: block(f"`{path}`", "", "x\n")]


@pytest.fixture(params=WAYS, ids=["diff", "whole", "blocks"])
def new_file(request: pytest.FixtureRequest) -> Callable[[str], str]:
    way: Callable[[str], str] = request.param
    return way


def test_honest_twin(new_file: Callable[[str], str]) -> None:
    """What is refused below for its name is taken under a good one, in each form."""
    assert apply_text(TREE, new_file("src/good.py"), ANYTHING)["src/good.py"].data == b"x\n"


OUTSIDE = ["../x.py", "src/../../x.py", "/etc/passwd", "//x", "src/..", "..", "C:/x.py", "C:x.py", "~/../x", "./x.py"]
# A separator somewhere, so it is refused everywhere; names that only some file system takes for `.git`.
OUTSIDE += ["src\\x.py", "..\\x.py", "\\\\host\\share"]
DISGUISED = [".git ", ".git.", ".git/ x", ".g\u200cit/x", ".git\u200b", "\ufeff.git", ".g\u00adit"]
DISGUISED += [".git::$INDEX_ALLOCATION"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_t64_outside_the_tree(path: str, new_file: Callable[[str], str]) -> None:
    """A change to `..` or an absolute path is refused, though everything is editable."""
    assert reason(new_file(path), ANYTHING) is Reason.NAME_UNSAFE


@pytest.mark.parametrize("path", DISGUISED)
def test_t66_repository_in_disguise(path: str) -> None:
    """Such names are none at all."""
    assert reason(created(path), ANYTHING) is Reason.NAME_UNSAFE


def test_t65_symlink_then_a_file_behind_it() -> None:
    """The link is refused, so nothing can be written behind it; a tree cannot even hold one."""
    link = "diff --git a/src/l b/src/l\nnew file mode 120000\n--- /dev/null\n+++ b/src/l\n@@ -0,0 +1 @@\n+/etc\n"
    assert reason(link + created("src/l/passwd"), ANYTHING) is Reason.SYMLINK
    assert reason(created("src/solve.py/behind"), ANYTHING) is Reason.FILE_AND_FOLDER


REPOSITORY = [".git/hooks/pre-commit", ".GIT/config", "src/.git", "src/.Git/x"]
REPOSITORY += ["GIT~1/config", "git~2", "GI7EBA~1", "GITMOD~1"]


@pytest.mark.parametrize("path", REPOSITORY)
def test_t66_repository(path: str, new_file: Callable[[str], str]) -> None:
    """`.git` in any spelling is refused, even where it is declared editable by a glob."""
    assert reason(new_file(path), ANYTHING) is Reason.NAME_RESERVED


@pytest.mark.parametrize("name", [".gitattributes", ".gitmodules", ".gitignore", "src/.GitIgnore"])
def test_t66_companions(name: str, new_file: Callable[[str], str]) -> None:
    """What git reads unasked is editable by its exact path only."""
    assert reason(new_file(name), ANYTHING) is Reason.NAME_RESERVED
    assert name in apply_text(TREE, new_file(name), Policy(("**", name)))


@pytest.mark.parametrize("line", ["* filter=lfs", "*.c -filter", "[attr]x FILTER=y", "a diff=z", "* merge=ours"])
def test_t66_attributes_with_filters(line: str) -> None:
    """Attributes that run programs are never taken, not even where the file is editable by name."""
    policy = Policy((".gitattributes",))
    assert reason(whole(".gitattributes", f"{line}\n"), policy) is Reason.ATTRIBUTE_FILTER
    assert apply_text(TREE, whole(".gitattributes", "*.txt text eol=lf\n*.png -diff\n"), policy)


MODES = {
    "120000": Reason.SYMLINK,
    "160000": Reason.SUBMODULE,
    "104755": Reason.MODE,
    "102755": Reason.MODE,
    "100777": Reason.MODE,
    "040000": Reason.MODE,
    "": Reason.MODE,
    "0100644": Reason.MODE,
}
MODE_LINES = ["new file mode {}", "deleted file mode {}", "old mode {}\nnew mode 100644", "new mode {}"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("line", [*MODE_LINES, "index 1234567..89abcde {}"])
def test_t67_modes(line: str, mode: str) -> None:
    """Links, submodules, setuid and every other mode are refused wherever a header can name them."""
    if line.startswith("index") and not mode:
        line += "0"
        mode_reason = Reason.MODE
    else:
        mode_reason = MODES[mode]
    text = f"diff --git a/src/solve.py b/src/solve.py\n{line.format(mode)}\n"
    assert reason(text, Policy(("**",), mode_may_change=True)) is mode_reason


def test_t67_subproject() -> None:
    """A submodule's commit is refused even under a plain mode."""
    text = created("src/lib.py", f"Subproject commit {'a' * 40}")
    assert reason(text) is Reason.SUBMODULE
    assert apply_text(TREE, created("src/lib.py", "Subproject commit is a phrase"), POLICY)


def test_t67_executable_bit() -> None:
    """The executable bit changes only where the task says so."""
    text = "diff --git a/src/solve.py b/src/solve.py\nold mode 100644\nnew mode 100755\n"
    assert reason(text) is Reason.MODE
    assert reason(created("src/new.py").replace("100644", "100755")) is Reason.MODE
    allowed = Policy(POLICY.editable, mode_may_change=True)
    assert apply_text(TREE, text, allowed)["src/solve.py"] == File(TREE["src/solve.py"].data, executable=True)


BINARY = [
    "diff --git a/src/x.py b/src/x.py\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZ\n",
    "diff --git a/src/x.py b/src/x.py\nBinary files a/src/x.py and b/src/x.py differ\n",
    "--- a/src/solve.py\n+++ b/src/solve.py\nBinary files a/src/solve.py and b/src/solve.py differ\n",
    "GIT binary patch\nliteral 3\n",
]


@pytest.mark.parametrize("text", BINARY)
def test_t68_binary(text: str) -> None:
    """Binary patches are refused."""
    assert reason(text) is Reason.BINARY


class Untouchable(str):
    """Text whose length may be asked, and nothing else."""

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise AssertionError("it was copied")


HUGE: dict[str, Callable[[], str | bytes]] = {
    "a gigabyte": lambda: bytes(1 << 30),
    "a million hunks": lambda: "--- a/src/solve.py\n+++ b/src/solve.py\n" + "@@ -1 +1 @@\n-a\n+b\n" * 1_000_000,
    "few characters, many bytes": lambda: "\U0001f600" * (Caps().text_bytes // 4 + 1),
    "not even copied": lambda: Untouchable("x" * (Caps().text_bytes + 1)),
}


@pytest.mark.parametrize("name", HUGE)
def test_t68_capped_before_parsing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text over its cap is refused by its length; no parser sees it."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a parser was called")

    for parser in ("parse_unified", "parse_blocks", "parse_whole"):
        monkeypatch.setattr(orchestrator.change.forms, parser, never)
    text = HUGE[name]()
    for form in Form:
        assert reason(text, form=form) is Reason.TEXT_TOO_LONG
    with pytest.raises(AssertionError):
        reason("short", form=Form.WHOLE)


@pytest.mark.parametrize("numbers", ["-1,1000000000000 +1,9", "-1,999999999 +1,999999999", f"-{'9' * 5000} +1"])
def test_t68_claims_of_size(numbers: str) -> None:
    """A hunk that claims a gigabyte of lines costs nothing: only lines that are there count."""
    text = f"--- a/src/solve.py\n+++ b/src/solve.py\n@@ {numbers} @@\n-    return x\n+    return 2\n"
    assert b"return 2" in apply_text(TREE, text, POLICY)["src/solve.py"].data


@pytest.mark.parametrize("kind", ["rename", "copy"])
@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("/etc/passwd", Reason.NAME_UNSAFE),
        ("../outside.py", Reason.NAME_UNSAFE),
        ("judge.py", Reason.NOT_EDITABLE),
        ("src/hidden.py", Reason.NOT_EDITABLE),
        ("src/absent.py", Reason.FILE_MISSING),
        ("src/solve.py", None),
    ],
)
def test_t69_both_sides_are_checked(kind: str, source: str, why: Reason | None) -> None:
    """A rename or copy needs both its sides inside the tree and editable."""
    there = f"diff --git a/{source} b/src/n.py\nsimilarity index 100%\n{kind} from {source}\n{kind} to src/n.py\n"
    back = f"diff --git a/src/solve.py b/{source}\n{kind} from src/solve.py\n{kind} to {source}\n"
    if why is None:
        result = apply_text(TREE, there, POLICY)
        assert result["src/n.py"] == TREE[source]
        assert (source in result) is (kind == "copy")
        return
    assert reason(there) is why
    if why is not Reason.FILE_MISSING:
        assert reason(back) is why


LIES = [
    "diff --git a/src/solve.py b/src/solve.py\n--- a/judge.py\n+++ b/judge.py\n@@ -1 +1 @@\n-a\n+b\n",
    "diff --git a/judge.py b/judge.py\n--- a/src/solve.py\n+++ b/src/solve.py\n@@ -1 +1 @@\n-a\n+b\n",
    "diff --git a/judge.py b/src/n.py\nrename from src/solve.py\nrename to src/n.py\n",
    "diff --git a/src/solve.py b/src/n.py\nrename from src/solve.py\nrename to src/n.py\n"
    "--- a/judge.py\n+++ b/src/n.py\n",
    "--- a/judge.py\n+++ b/src/solve.py\n@@ -1 +1 @@\n-a\n+b\n",
    "diff --git a/src/solve.py b/src/n.py\n",
    "diff --git a/src/solve.py b/src/n.py\nrename from src/solve.py\n",
    "diff --git a/src/solve.py b/src/n.py\nrename from src/solve.py\ncopy to src/n.py\n",
]


@pytest.mark.parametrize("text", LIES)
def test_t69_headers_that_disagree(text: str) -> None:
    """A header that names one file for the reader and another for the machine is refused."""
    assert reason(text) is Reason.MALFORMED


@pytest.mark.parametrize("path", ["judge.py", "README.md", "absent.py", "src/deeper/x.py", "src/x.txt", "SRC/x.py"])
def test_t70_not_editable(path: str, new_file: Callable[[str], str]) -> None:
    """An edit outside the editable paths is refused, and the agent is told what it may edit."""
    found = refusal(new_file(path))
    assert found.reason is Reason.NOT_EDITABLE
    assert str(found) == f"not editable: {path}; you may edit: src/*.py, src/deep/**"


HIDDEN = ["src/hidden.py", "src/Hidden.py", "src/HIDDEN.PY/x.py"]
HIDDEN += ["src/deep/secret/x", "src/deep/secret", "src/deep/SECRET"]


@pytest.mark.parametrize("path", HIDDEN)
@pytest.mark.parametrize("there", [True, False])
def test_t70_hidden(path: str, there: bool, new_file: Callable[[str], str]) -> None:
    """A hidden path is not editable, in the same words whether it exists or not, and in any spelling."""
    files = dict(TREE) if there else {name: file for name, file in TREE.items() if name != "src/hidden.py"}
    secret = {"src/deep/secret/x": File(SECRET.encode())} if there else {}
    tree = Tree({**files, **secret})
    policy = Policy((*POLICY.editable, "src/**"), POLICY.hidden)
    editable = "src/*.py, src/deep/**, src/**"
    assert str(refusal(new_file(path), policy, tree=tree)) == f"not editable: {path}; you may edit: {editable}"


def test_t70_collision_with_hidden() -> None:
    """A name that clashes with a hidden file is just not editable."""
    tree = Tree.of({"src/a/b/secret.txt": SECRET, "src/x.py": "x\n"})
    policy = Policy(("src/**",), hidden=("src/**/secret.txt",))
    for path in ("src/a", "src/A/new.py"):
        assert reason(created(path), policy, tree=tree) is Reason.NOT_EDITABLE
    assert reason(created("src/X.py"), policy, tree=tree) is Reason.CASE_COLLISION


METACHARACTERS = ["src/$(touch x).py", "src/`id`.py", "src/a;b.py", "src/a|b&c.py"]
METACHARACTERS += ["src/it's.py", 'src/"q".py', "src/*?.py"]


@pytest.mark.parametrize("path", METACHARACTERS)
def test_t71_shell_metacharacters(path: str) -> None:
    """Such a name is a name and nothing else: it comes out as it went in, and is shown in one line."""
    text = created(path) if '"' not in path else whole(path)
    assert apply_text(TREE, text, POLICY)[path].data == b"x\n"


@pytest.mark.parametrize("path", ["-rf", "src/--help", "src/-", "src/a\nb.py", "src/a\tb.py"])
def test_t71_options_and_controls(path: str) -> None:
    """A name that a command could take for an option, or a terminal for a command, is refused."""
    quoted = path.replace("\n", "\\n").replace("\t", "\\t")
    name = f'"a/{quoted}" "b/{quoted}"' if quoted != path else f"a/{path} b/{path}"
    assert reason(f"diff --git {name}\nnew file mode 100644\n", ANYTHING) is Reason.NAME_UNSAFE


PLANTED = ["conftest.py", "src/conftest.py", "src/ConfTest.py", "sitecustomize.py", "usercustomize.py", "x.pth"]
PLANTED += ["src/pytest.ini", "tox.ini", "setup.cfg", "src/pyproject.toml"]
PLANTED += ["sitecustomize/__init__.py", "sitecustomize.cpython-311.so"]


@pytest.mark.parametrize("path", PLANTED)
def test_t32_planted_files(path: str, new_file: Callable[[str], str]) -> None:
    """What Python and pytest load unasked is editable by its exact path only."""
    assert reason(new_file(path), ANYTHING) is Reason.NAME_RESERVED
    assert path in apply_text(TREE, new_file(path), Policy((path,)))


def test_t57_messages_are_escaped() -> None:
    """Control characters of an agent's text reach nobody, and a long text is shortened."""
    nasty = "src/\x1b[2J\u202e\u200b\U000e0041" + "x" * 500
    message = str(refusal(f"--- a/{nasty}\n+++ b/{nasty}\n", Policy(("**",), caps=Caps(path_bytes=9999))))
    assert "\\x1b[2J\\u202e\\u200b\\U000e0041xxx" in message
    assert len(message) < 400
    line = "\x1b]0;title\x07" + "y" * 500
    message = str(refusal(f"--- a/src/solve.py\n+++ b/src/solve.py\n@@ -1 +1 @@\n-{line}\n+z\n"))
    assert "\\x1b]0;title\\x07yyy" in message
    assert len(message) < 400
