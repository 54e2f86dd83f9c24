"""Patterns, names and what the agent is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.change import Caps, File, Policy, Reason, Refusal, Tree, shown
from orchestrator.change.names import check_name
from orchestrator.change.patterns import matches

# What each matches, and what it does not.
MATCHES = {
    "src/a.py": ("src/a.py", "src/A.py src/a.pyc"),
    "src/*.py": ("src/a.py src/.py", "src/b/a.py src/a.py/b"),
    "src/?.py": ("src/a.py", "src/ab.py"),
    "src/**": ("src/a.py src/a/b/c", "src source/a"),
    "**": ("a a/b/c", ""),
    "**/x.py": ("x.py a/b/x.py", "a/b/y.py"),
    "a/**/b/**/c": ("a/b/x/b/c", "a/x/c"),
    "*a*b*c": ("xaxbxc", "xaxcxb"),
    "[ab].py": ("[ab].py", "a.py"),
    "*": ("a", "a/b"),
}


@pytest.mark.parametrize("pattern", MATCHES)
def test_patterns(pattern: str) -> None:
    """A star stays within one name, two stars cross folders, everything else is itself."""
    those, others = map(str.split, MATCHES[pattern])
    assert [path for path in (*those, *others) if matches(pattern, path)] == those


def by_definition(pattern: str, text: str) -> bool:
    """What a glob within one name means, written down without any thought of speed."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return by_definition(pattern[1:], text) or (bool(text) and by_definition(pattern, text[1:]))
    return bool(text) and pattern[0] in ("?", text[0]) and by_definition(pattern[1:], text[1:])


@given(pattern=st.text("ab*?", min_size=1, max_size=7), text=st.text("ab", min_size=1, max_size=8))
def test_patterns_mean_what_they_mean(pattern: str, text: str) -> None:
    """The fast match agrees with the definition."""
    pattern = pattern.replace("**", "*")
    if "**" not in pattern:
        assert matches(pattern, text) is by_definition(pattern, text)


def test_patterns_are_fast() -> None:
    """A pattern of many stars against a name that nearly fits takes no time to speak of."""
    assert not matches("*a" * 100 + "b", "a" * 250)
    assert not matches("**/a/" * 30 + "b", "a/" * 100 + "c")


@pytest.mark.parametrize(
    "pattern", ["", "/abs", "../x", "a//b", "src/", "a**b", "a\\b", "./a", ".git/*", "a\0", "u\u0308x"]
)
def test_patterns_that_mean_nothing(pattern: str) -> None:
    """A pattern that could never match is an error of the task, and says so."""
    with pytest.raises(ValueError, match="write"):
        Policy(("src/*.py", pattern))
    with pytest.raises(ValueError, match="write"):
        Policy((), hidden=(pattern,))


GOOD = ["a", "a/b/c.py", "with space.py", "ümlaut.py", "日本/語.txt", ".hidden", "a..b", "git", "x.git", "x" * 255]
BAD = [
    *("", "a//b", "a/", "/a", ".", "a/.", "a/../b", "a.", "a ", " a", "a./b", "a /b", "a:b", "a\\b", "-a", "a/-b"),
    *("nul", "NUL.txt", "con", "aux.c", "com1", "LPT9.log", "com¹", "con .txt", "conin$"),
    *("a\x7f", "a\u0085", "a\u2028", "u\u0308x", "\u212b", "a\u200b", "a\ufe0f", "a\u3164", "a\u00a0", "a\ue000"),
    *("\udcff", "x" * 256),
]


def test_good_names() -> None:
    """Plain names in any language are fine."""
    for path in GOOD:
        check_name(path)


@pytest.mark.parametrize("path", BAD)
def test_bad_names(path: str) -> None:
    """Names that could be another one, or nothing, on any machine are refused."""
    with pytest.raises(Refusal) as caught:
        check_name(path)
    assert caught.value.reason is Reason.NAME_UNSAFE
    assert str(caught.value).isprintable()


def test_special_names_need_an_exact_pattern() -> None:
    """A file whose name looks like the pattern is not the exact path of it."""
    with pytest.raises(Refusal) as caught:
        Policy(("*.pth",)).check("*.pth")
    assert caught.value.reason is Reason.NAME_RESERVED


def test_told() -> None:
    """The agent is told its paths and caps, and nothing of what is hidden."""
    policy = Policy(("src/*.py", "a.txt"), ("src/secret.py",), Caps(files=7, hunks=77, path_bytes=99))
    told = policy.told()
    assert "A change has at most 1MiB and " in told
    assert "only these paths: src/*.py, a.txt\n" in told
    assert "7 files and 77 hunks" in told
    assert "secret" not in told
    assert "may not change" in told
    assert "bit may change" in Policy(("a",), mode_may_change=True).told()


def test_long_lists_are_shortened_in_refusals_only() -> None:
    """The prompt has every path; a refusal has the first ones and the number of the rest."""
    policy = Policy(tuple(f"f{number}.py" for number in range(50)))
    assert "f49.py" in policy.told()
    message = str(policy.not_editable("x"))
    assert message.endswith("f19.py and 30 more")
    assert str(Policy(()).not_editable("x")).endswith("you may edit: nothing")


def test_only() -> None:
    """There is one editable file where one exact path is editable."""
    assert Policy(("a.py",)).only == "a.py"
    assert Policy(("*.py",)).only is None
    assert Policy(("a.py", "b.py")).only is None


@given(st.text(max_size=300))
def test_shown_is_harmless(text: str) -> None:
    """Whatever is shown is one printable line, and short."""
    for given_text in (text, text.encode("utf-8", "surrogatepass")):
        result = shown(given_text)
        assert result.isprintable()
        assert len(result) <= 10 * 120 + 1


def test_tree_digest() -> None:
    """Equal trees have equal digests; a name, a mode or a byte makes another. None changes with its mapping."""
    tree = Tree.of({"a": "x", "b": "y"})
    same = Tree.of({"b": "y", "a": "x"})
    assert (tree, tree.digest, hash(tree)) == (same, same.digest, hash(same))
    files = {"a": File(b"x", executable=True), "b": File(b"y")}
    others = [Tree(), Tree.of({"a": "x"}), Tree.of({"a": "y", "b": "x"}), Tree.of({"a": "x", "c": "y"}), Tree(files)]
    files["c"] = File(b"z")
    assert list(others[-1]) == ["a", "b"]
    assert len({tree, *others}) == 6


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("s\u043elve.py", "(character 2 is not ASCII: U+043E, CYRILLIC SMALL LETTER O); you may edit: solve.py"),
        ("solve.p\u1e8f", "(character 8 is not ASCII: U+1E8F, LATIN SMALL LETTER Y WITH DOT ABOVE); you may edit"),
        ("solve2.py", "not editable: solve2.py; you may edit"),
    ],
)
def test_a_path_that_only_looks_right(path: str, told: str) -> None:
    """A refused path says which of its characters is another than it looks."""
    with pytest.raises(Refusal) as refusal:
        Policy(("solve.py",)).check(path)
    assert told in str(refusal.value)
