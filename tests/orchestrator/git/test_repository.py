"""Repositories are bytes: nothing in them runs, and a candidate is a commit on the branch of its node."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.change import File, Tree
from orchestrator.git import Candidates, GitError, NoSpace, packs, read_tree
from tests.orchestrator.git.genuine import full, git, git_bytes, hashed

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_ZERO = "0" * 40


@pytest.fixture
def candidates(tmp_path: Path) -> Candidates:
    return Candidates(tmp_path / "candidates.git")


def test_t66_nothing_in_a_repository_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, filters, helpers and line-end rules of repository, user and system change no byte and run nothing."""
    marker = tmp_path / "marker"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    settings = f"""
[core]
  hooksPath = {tmp_path}/hooks
  fsmonitor = {program}
  sshCommand = {program}
  pager = {program}
  editor = {program}
  autocrlf = true
  eol = crlf
  attributesFile = {tmp_path}/attributes
  alternateRefsCommand = {program}
  logAllRefUpdates = true
[filter "evil"]
  clean = {program}
  smudge = {program}
  process = {program}
  required = true
[diff]
  external = {program}
[diff "evil"]
  textconv = {program}
[commit]
  gpgSign = true
[gpg]
  program = {program}
[user]
  name = somebody
  email = else@example.org
[include]
  path = {tmp_path}/more
"""
    (tmp_path / "more").write_text("[core]\n  hooksPath = hooks\n")
    (tmp_path / "attributes").write_text("* text=auto eol=crlf filter=evil diff=evil ident\n")
    hooks = ("pre-commit", "post-commit", "post-checkout", "reference-transaction", "post-index-change", "update")
    home = tmp_path / "home"
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/config").write_text(settings)
    (home / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    written = Candidates(tmp_path / "candidates.git").write("1", Tree.of({"a": "1"}), None, "first", AT)
    repository = tmp_path / "candidates.git"
    (tmp_path / "hooks").mkdir()
    for folder in (repository / "hooks", tmp_path / "hooks"):
        for hook in hooks:
            shutil.copy(program, folder / hook)
    with (repository / "config").open("a") as file:
        file.write(settings)
    (repository / "info").mkdir(exist_ok=True)
    shutil.copy(tmp_path / "attributes", repository / "info/attributes")

    content = {".gitattributes": "* text eol=crlf filter=evil ident\n", "a": "$Id$ one\n", "b": "two\r\n"}
    again = Candidates(repository)
    second = again.write("1.1", Tree.of(content), written, "second", AT)
    assert again.read(second) == Tree.of(content)
    assert read_tree(repository, "1.1") == (second, Tree.of(content))
    assert not marker.exists()
    monkeypatch.undo()
    assert git(repository, "cat-file", "-p", f"{second}:a") == "$Id$ one"
    assert git(repository, "log", "-1", "--format=%an %ae %cn %at", second) == (
        "blastdoor blastdoor@localhost blastdoor 1767323045"
    )


def test_c4_branch_per_node(candidates: Candidates, tmp_path: Path) -> None:
    """Every node is a branch of its own name, on its parent's commit, and git finds nothing to complain about."""
    root = candidates.write("1", Tree.of({"a": "1", "d/b": "2"}), None, "baseline", AT)
    child = candidates.write("1.3", Tree({"a": File(b"9", executable=True), "d/b": File(b"2")}), root, "third", AT)
    candidates.write("1.3.2", Tree.of({"a.b": "x", "a/b": "y", "a0": "z"}), child, "second\n\nmore", AT)
    repository = tmp_path / "candidates.git"
    branches = git(repository, "for-each-ref", "--format=%(refname:short) %(subject)").splitlines()
    assert branches == ["1 baseline", "1.3 third", "1.3.2 second"]
    assert git(repository, "log", "--format=%H", "1.3").splitlines() == [child, root]
    assert git(repository, "fsck", "--strict", "--full") == ""
    assert git(repository, "show", "1.3.2:a/b") == "y"
    assert "old mode 100644" in git(repository, "diff", "1", "1.3")
    assert candidates.read("1.3")["a"] == File(b"9", executable=True)
    assert candidates.commit_of("1.3") == child
    assert candidates.commit_of("1.4") is None


def test_written_twice(candidates: Candidates, tmp_path: Path) -> None:
    """The same again gives the same commit, in a new process too; anything else under that name is refused."""
    tree = Tree.of({"a": "1"})
    root = candidates.write("1", tree, None, "baseline", AT)
    first = candidates.write("1.1", tree, root, "one", AT)
    again = Candidates(tmp_path / "candidates.git")
    assert again.write("1.1", Tree.of({"a": "1"}), root, "one", AT) == first
    assert again.write("1.1", Tree.of({"a": "1"}), root, "in other words", AT) == first
    later = datetime(2027, 1, 1, tzinfo=UTC)
    for changed, parent, message, at in (
        (Tree.of({"a": "2"}), root, "one", AT),
        (tree, None, "one", AT),
        (tree, root, "one", later),
    ):
        with pytest.raises(GitError, match=r"node 1\.1 has another candidate already"):
            candidates.write("1.1", changed, parent, message, at)
    assert again.commit_of("1.1") == first


@pytest.mark.parametrize(
    "node", ["", "0", "1.", "../1", "1/2", "refs/heads/1", "HEAD", "main", "1" * 40, "1" + ".1" * 63]
)
def test_only_nodes_are_names(candidates: Candidates, node: str) -> None:
    """A branch can be called by a node's id and by nothing else; the deepest id fits too."""
    if node.count(".") == 63:
        assert candidates.write(node, Tree.of({"a": "1"}), None, "deep", AT)
        return
    with pytest.raises(GitError):
        candidates.write(node, Tree.of({"a": "1"}), None, "one", AT)
    with pytest.raises(GitError):
        candidates.read(node)


@pytest.mark.parametrize("parent", ["1", "main", _ZERO, "--help", "A" * 40])
def test_parent_must_be_there(candidates: Candidates, parent: str) -> None:
    """A parent is the whole id of a commit that is there, and no branch is made without it."""
    candidates.write("1", Tree.of({"a": "1"}), None, "one", AT)
    with pytest.raises(GitError):
        candidates.write("1.1", Tree.of({"a": "1"}), parent, "one", AT)
    assert candidates.commit_of("1.1") is None


@pytest.mark.parametrize(
    ("files", "words"),
    [
        *(({path: ""}, "rename it") for path in ("../a", "/a", "a//b", ".git/hooks/pre-commit", "x/.Git/config")),
        *(({path: ""}, "rename it") for path in ("\udcff", "a\0b", ".")),
        ({"a": "1", "a/b": "2"}, "a file and a folder"),
        ({"d/" * 101 + "f": "1"}, "deep"),
    ],
)
def test_t64_trees_that_git_can_not_hold(candidates: Candidates, files: dict[str, str], words: str) -> None:
    """A name that leaves the tree or reaches into a repository, that is a file and a folder, or deeper than we read:
    the tree is refused whole.
    """
    with pytest.raises(GitError, match=words):
        candidates.write("1", Tree({path: File(text.encode()) for path, text in files.items()}), None, "one", AT)
    assert candidates.commit_of("1") is None


def test_deep_tree(candidates: Candidates) -> None:
    """The deepest that is written is read."""
    assert candidates.write("1", Tree.of({"d/" * 100 + "f": "1"}), None, "one", AT)
    assert len(candidates.read("1")) == 1


def test_t57_message(candidates: Candidates, tmp_path: Path) -> None:
    """Control characters in a description are escaped; nothing is cut off behind a NUL."""
    candidates.write("1", Tree.of({}), None, "first\x1b[2J\0second\r\n\nmore\udcff", AT)
    shown = git(tmp_path / "candidates.git", "log", "-1", "--format=%B", "1")
    assert shown == "first\\x1b[2J\\x00second\\r\n\n    more\\udcff"


def test_read_what_is_not_there(candidates: Candidates) -> None:
    """A node without a candidate and an unknown commit say so."""
    with pytest.raises(GitError, match=r"node 7\.7 has no candidate"):
        candidates.read("7.7")
    with pytest.raises(GitError, match="no commit"):
        candidates.read(_ZERO)


def test_two_threads_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one thread is about to take from the cache stays in it until it has been taken."""
    monkeypatch.setattr("orchestrator.git.repository.CACHE_BYTES", 40)
    watched: list[threading.Thread] = []

    class Crowded(OrderedDict[tuple[int, bytes], bytes]):
        def get(self, *arguments: Any) -> Any:
            found = super().get(*arguments)
            if found is not None and watched and watched[0].ident is None:
                watched[0].start()
                watched[0].join(0.1)
            return found

    monkeypatch.setattr("orchestrator.git.repository.OrderedDict", Crowded)
    candidates = Candidates(tmp_path / "candidates.git")
    candidates.write("1", Tree.of({"a": "short"}), None, "first", AT)
    much = Tree.of({"b": "x" * 100})
    watched.append(threading.Thread(target=candidates.write, args=["2", much, None, "other", AT]))
    candidates.write("3", Tree.of({"a": "short"}), None, "again", AT)
    watched[0].join()
    assert (candidates.read("3"), candidates.read("2")) == (Tree.of({"a": "short"}), much)


def pack_names(repository: Path) -> set[str]:
    return {path.name for path in (repository / "objects/pack").glob("*.pack")}


def test_the_same_commit_as_git_makes(candidates: Candidates, tmp_path: Path) -> None:
    """Bytes and name of a commit are those that git itself makes of the same tree, parent, words and time."""
    repository = tmp_path / "candidates.git"
    root = candidates.write("1", Tree.of({"a": "1"}), None, "baseline", AT)
    child = candidates.write("1.1", Tree.of({"a": "2", "d/b": "\xe9"}), root, "caf\xe9\n\nmore", AT)
    date = f"{int(AT.timestamp())} +0000"
    who = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": "blastdoor", f"GIT_{role}_EMAIL": "blastdoor@localhost"}
    words = tmp_path / "words"
    words.write_bytes("caf\xe9\n\n    more".encode())
    tree = git(repository, "rev-parse", "1.1^{tree}")
    assert git(repository, "commit-tree", "-p", root, "-F", str(words), tree, environment=who) == child


class Gate:
    """Holds up the writing of objects, which is seen to begin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        real = packs.write_packs

        def write(*arguments: Any) -> Any:
            self.begun.set()
            assert self.go_on.wait(30)
            return real(*arguments)

        monkeypatch.setattr(packs, "write_packs", write)


def test_those_who_wait_share_a_pack(candidates: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is submitted while another is written goes into one pack, and waits for the disk once."""
    gate = Gate(monkeypatch)
    made = {f"{number}": Tree.of({"a": str(number), "same": "x"}) for number in range(1, 10)}
    ready = [candidates.prepare(node, tree, None, node, AT) for node, tree in made.items()]
    first = candidates.submit(ready[0])
    assert gate.begun.wait(30)
    others = [candidates.submit(candidate) for candidate in ready[1:]]
    assert not any(it.done() for it in (first, *others))
    gate.go_on.set()
    assert [it.result() for it in (first, *others)] == [candidates.commit_of(node) for node in made]
    assert len(pack_names(tmp_path / "candidates.git")) == 2
    assert {node: candidates.read(node) for node in made} == made
    assert "missing" not in git(tmp_path / "candidates.git", "fsck", "--full", "--strict")


def test_one_node_twice_in_a_pack(candidates: Candidates, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those who wait with one node, the first makes it; the same again gets its commit, another is refused."""
    gate = Gate(monkeypatch)
    trees = [Tree.of({"a": text}) for text in ("0", "1", "1", "2")]
    one, *rest = [candidates.prepare(node, tree, None, "m", AT) for node, tree in zip("1222", trees, strict=True)]
    candidates.submit(one)
    assert gate.begun.wait(30)
    first, same, other = [candidates.submit(candidate) for candidate in rest]
    gate.go_on.set()
    assert first.result() == same.result() == candidates.commit_of("2")
    with pytest.raises(GitError, match="node 2 has another candidate already"):
        other.result()
    assert candidates.read("2") == trees[1]


def test_who_gives_up_in_time_writes_nothing(candidates: Candidates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that has not begun when it is taken back never begins."""
    gate = Gate(monkeypatch)
    one, other = [candidates.prepare(node, Tree.of({"a": node}), None, "m", AT) for node in "12"]
    first = candidates.submit(one)
    assert gate.begun.wait(30)
    second = candidates.submit(other)
    assert second.cancel()
    gate.go_on.set()
    first.result()
    candidates.write("3", Tree.of({"a": "3"}), None, "m", AT)
    assert [candidates.commit_of(node) is None for node in "123"] == [False, True, False]


def test_no_branch_without_its_objects(candidates: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch is made when all that it names is on disk; what could not be written is written by the next one."""
    tree = Tree.of({"a": "1", "d/b": "2"})
    for writes in ("orchestrator.git.packs.write_packs", "orchestrator.git.repository.write_branches"):
        with monkeypatch.context() as patched:
            patched.setattr(writes, full)
            with pytest.raises(NoSpace, match="no space left"):
                candidates.write("1", tree, None, "one", AT)
        assert candidates.commit_of("1") is None
    candidates.write("1", tree, None, "one", AT)
    assert Candidates(tmp_path / "candidates.git").read("1") == tree
    assert git(tmp_path / "candidates.git", "fsck", "--full", "--strict") == ""


def test_what_is_there_is_not_written_again(candidates: Candidates, tmp_path: Path) -> None:
    """A new process finds an object in a pack, or in a file of its own as git and earlier versions write them."""
    repository = tmp_path / "candidates.git"
    loose, old, new = (os.urandom(4000) for _ in range(3))
    hashed(repository, "blob", loose)
    candidates.write("1", Tree({"old": File(old)}), None, "one", AT)
    before = pack_names(repository)
    again = Candidates(repository)
    again.write("2", Tree({"loose": File(loose), "old": File(old), "new": File(new)}), None, "two", AT)
    (added,) = pack_names(repository) - before
    assert 4000 < (repository / "objects/pack" / added).stat().st_size < 5000
    assert dict(again.read("2")) == {"loose": File(loose), "old": File(old), "new": File(new)}


_READER = """
import sys
from pathlib import Path
from orchestrator.git import Candidates
candidates = Candidates(Path(sys.argv[1]), make=False)
for line in sys.stdin:
    print(candidates.read(line.strip())["a"].data.decode(), flush=True)
"""


def test_readers_of_other_processes(candidates: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One who has the repository open sees what comes later, also when packs that it has read from were joined."""
    monkeypatch.setattr("orchestrator.git.repository.TIDIED_AT", 4)
    repository = tmp_path / "candidates.git"
    root = candidates.write("1", Tree.of({"a": "root"}), None, "root", AT)
    command = [sys.executable, "-c", _READER, str(repository)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def read(node: str) -> str:
            print(node, file=reader.stdin, flush=True)
            return reader.stdout.readline().strip()  # type: ignore[union-attr]  # it is a pipe

        assert read("1") == "root"
        gone: set[str] = set()
        for number in range(1, 41):
            before = pack_names(repository)
            commit_id = candidates.write(f"1.{number}", Tree.of({"a": str(number), "b": "b"}), root, "m", AT)
            assert read(commit_id if number % 2 else f"1.{number}") == str(number)
            gone |= before - pack_names(repository)
        assert len(gone) > 20
        assert [read(f"1.{number}") for number in range(1, 41)] == [str(number) for number in range(1, 41)]
        reader.stdin.close()
    candidates.write("1", Tree.of({"a": "root"}), None, "root", AT)  # nothing is being joined any more
    assert candidates.read("1.17") == Tree.of({"a": "17", "b": "b"})
    assert len(pack_names(repository)) <= 10
    assert "missing" not in git(repository, "fsck", "--full", "--strict")
    git(tmp_path, "clone", "--quiet", "--branch", "1.40", str(repository), "cloned")
    assert (tmp_path / "cloned/a").read_text() == "40"


def test_packs_that_can_not_be_joined(candidates: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's candidate fails for it."""
    monkeypatch.setattr("orchestrator.git.repository.TIDIED_AT", 1)
    monkeypatch.setattr(packs, "join_packs", full)
    for number in range(1, 4):
        candidates.write(f"{number}", Tree.of({"a": str(number)}), None, "m", AT)
    assert len(pack_names(tmp_path / "candidates.git")) == 3
    assert candidates.read("3") == Tree.of({"a": "3"})


def test_folder_that_is_something_else(tmp_path: Path) -> None:
    """A folder that is no repository is left alone, and a pipe is not waited for."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/precious").write_text("x")
    with pytest.raises(GitError, match="folder"):
        Candidates(tmp_path / "folder")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["precious"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GitError, match="cannot be used"):
        Candidates(tmp_path / "pipe")


def test_made_by_several(tmp_path: Path) -> None:
    """Those who make the repository at the same time get the same one, nothing is left over, and it is private."""
    place, tree = tmp_path / "candidates.git", Tree.of({"a": "1"})

    def make(number: int) -> str:
        return Candidates(place).write(f"{number}", tree, None, "one", AT)

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(make, range(1, 5)))
    assert [Candidates(place).commit_of(str(number)) for number in range(1, 5)] == made
    assert [path.name for path in tmp_path.iterdir() if "candidates" in path.name] == ["candidates.git"]
    assert place.stat().st_mode & 0o777 == 0o700


def test_stale_lock(candidates: Candidates, tmp_path: Path) -> None:
    """The lock of a branch, left by a killed process, does not bar the node for ever."""
    (tmp_path / "candidates.git/refs/heads/1.lock").touch()
    assert candidates.write("1", Tree.of({"a": "1"}), None, "one", AT) == candidates.commit_of("1")


_WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from orchestrator.change import Tree
from orchestrator.git import Candidates
candidates = Candidates(Path(sys.argv[1]))
at = datetime(2026, 1, 1, tzinfo=UTC)
number = 1
while candidates.commit_of(f"1.{number}"):
    number += 1
while True:
    commit = candidates.write(f"1.{number}", Tree.of({"a": str(number), "d/b": "x"}), None, str(number), at)
    print(number, commit, flush=True)
    number += 1
"""


@pytest.mark.crash
def test_killed_while_writing(tmp_path: Path) -> None:
    """Whoever was told of a commit finds it after a SIGKILL, on its branch; the next one goes on from there."""
    told: dict[str, str] = {}
    for _ in range(15):
        command = [sys.executable, "-c", _WRITER, str(tmp_path / "c.git")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(3):
                number, commit_id = writer.stdout.readline().split()
                told[f"1.{number}"] = commit_id
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                if line.endswith("\n"):
                    told[f"1.{line.split()[0]}"] = line.split()[1]
    candidates = Candidates(tmp_path / "c.git")
    assert len(told) >= 45
    assert {node: candidates.commit_of(node) for node in told} == told
    assert all(candidates.read(node)["a"].data.decode() == node.removeprefix("1.") for node in told)
    assert "missing" not in git(tmp_path / "c.git", "fsck", "--full")


_FILLER = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from orchestrator.change import File, Tree
from orchestrator.git import Candidates, NoSpace
candidates = Candidates(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    candidates.write("1", Tree({"a": File(__import__("os").urandom(60_000))}), None, "large", datetime.now(UTC))
except NoSpace as error:
    print(error)
print(candidates.write("2", Tree.of({"a": "small"}), None, "small", datetime.now(UTC)))
"""


def test_no_space(tmp_path: Path) -> None:
    """A write that does not fit says so, leaves no branch, and a smaller one still goes through."""
    run = subprocess.run(
        [sys.executable, "-c", _FILLER, str(tmp_path / "c.git")], check=True, capture_output=True, text=True
    )
    said, commit_id = run.stdout.splitlines()
    assert said.startswith("no space left in ")
    assert said.endswith("free some and resume; nothing was lost")
    candidates = Candidates(tmp_path / "c.git")
    assert (candidates.commit_of("1"), candidates.commit_of("2")) == (None, commit_id)
    assert issubclass(NoSpace, GitError)


@pytest.mark.parametrize(
    "name", ["HEAD", "config", "packed-refs", "objects/info/alternates", "objects/pack/pack-1.idx"]
)
def test_a_pipe_in_a_repository_is_refused(candidates: Candidates, tmp_path: Path, name: str) -> None:
    """One who opens it would wait for ever; so would one who follows a link to it."""
    del candidates
    place, pipe = tmp_path / "candidates.git" / name, tmp_path / "pipe"
    os.mkfifo(pipe)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    for put in (place.symlink_to, lambda pipe: pipe.replace(place)):
        put(pipe)
        with pytest.raises(GitError, match="neither a file nor a folder"):
            Candidates(tmp_path / "candidates.git")


@pytest.mark.parametrize("end", ["", "^{tree}", ":a.py"], ids=["commit", "tree", "file"])
def test_t99_an_object_with_other_bytes(candidates: Candidates, tmp_path: Path, end: str) -> None:
    """What lies under the name of an object, and is not what the name says, is no candidate."""
    commits = [candidates.write(name, Tree({"a.py": File(name.encode())}), None, name, AT) for name in ("1", "2")]
    repository = tmp_path / "candidates.git"
    old, new = (git(repository, "rev-parse", f"{commit}{end}") for commit in commits)
    objects = {}
    for line in git(repository, "cat-file", "--batch-all-objects", "--batch-check").splitlines():
        oid, word, _ = line.split()
        taken = new if oid == old else oid
        data = git_bytes(repository, "cat-file", word, taken)
        kind = {"commit": packs.COMMIT, "tree": packs.TREE, "blob": packs.BLOB}[word]
        objects[bytes.fromhex(oid)] = packs.packed(kind, data)
    shutil.rmtree(repository / "objects/pack")
    (repository / "objects/pack").mkdir()
    packs.write_packs(repository / "objects/pack", objects)
    found = Candidates(repository)
    assert found.read(commits[1]) == Tree({"a.py": File(b"2")})
    with pytest.raises(GitError):
        found.read(commits[0])
