"""A branch is found in a file of its own or in the one file for many, by git as by libgit2."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.change import Tree
from orchestrator.git import Candidates, branches
from orchestrator.git.branches import pack_branches
from tests.orchestrator.git.genuine import full, git

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NODES = [f"1.{number}" for number in range(1, 25)]


def listed(repository: Path) -> dict[str, str]:
    told = git(repository, "for-each-ref", "--format=%(refname:short) %(objectname)").splitlines()
    return dict(map(str.split, told))


def loose(repository: Path) -> set[str]:
    return {path.name for path in (repository / "refs/heads").iterdir()}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    candidates = Candidates(tmp_path / "c.git")
    for node in NODES:
        candidates.write(node, Tree.of({"a": node}), None, node, AT)
    return tmp_path / "c.git"


def test_packed_and_found(repository: Path) -> None:
    """All are found as before, by one who had the repository open, too; new ones can be made, and packed again."""
    reader, writer = Candidates(repository, make=False), Candidates(repository)
    before = listed(repository)
    pack_branches(repository, len(NODES) + 1)
    assert loose(repository) == set(NODES), "few stay as they are"
    assert reader.commit_of("1.1") == before["1.1"]
    pack_branches(repository, 1)
    assert loose(repository) == set()
    assert listed(repository) == before
    assert {node: reader.commit_of(node) for node in NODES} == before
    assert reader.read("1.7") == Tree.of({"a": "1.7"})
    assert writer.write("1.7", Tree.of({"a": "1.7"}), None, "again", AT) == before["1.7"]
    assert loose(repository) == set()
    before["2"] = writer.write("2", Tree.of({"a": "2"}), None, "new", AT)
    assert loose(repository) == {"2"}
    pack_branches(repository, 1)
    assert listed(repository) == before
    assert reader.commit_of("2") == before["2"]
    assert git(repository, "fsck", "--full", "--strict") == ""
    assert not list(repository.glob("packed-refs.*"))


def test_a_campaign_packs_its_branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes there are, few files are left, and each node is still written once."""
    monkeypatch.setattr("orchestrator.git.repository.TIDIED_AT", 4)
    monkeypatch.setattr("orchestrator.git.repository.LOOSE_BRANCHES", 8)
    candidates = Candidates(tmp_path / "c.git")
    made = {node: candidates.write(node, Tree.of({"a": node}), None, node, AT) for node in NODES * 2}
    assert {node: candidates.commit_of(node) for node in NODES} == made == listed(tmp_path / "c.git")
    assert len(loose(tmp_path / "c.git")) < 12


def test_what_others_packed_stays(repository: Path) -> None:
    """A tag that a person made keeps what it stands for; their branches in folders, and links, are left alone."""
    git(repository, "tag", "--annotate", "--message", "mine", "mine", "1.3")
    git(repository, "branch", "feature/x", "1.4")
    git(repository, "pack-refs", "--all")
    git(repository, "branch", "feature/y", "1.5")
    git(repository, "symbolic-ref", "refs/heads/alias", "refs/heads/1.6")
    before = listed(repository)
    pack_branches(repository, 1)
    assert listed(repository) == before
    assert git(repository, "rev-parse", "mine^{commit}") == before["1.3"]
    assert b"\n^" in (repository / "packed-refs").read_bytes()
    assert loose(repository) == {"feature", "alias"}
    assert git(repository, "fsck", "--full", "--strict") == ""


def test_locks_of_others(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody else packs branches, we do not; who was killed at it long ago bars nobody. A branch that somebody
    is about to move keeps its own file.
    """
    lock = repository / "packed-refs.lock"
    lock.touch()
    pack_branches(repository, 1)
    assert loose(repository) == set(NODES)
    os.utime(lock, (1, 1))
    (repository / "refs/heads/1.2.lock").touch()
    pack_branches(repository, 1)
    assert loose(repository) == {"1.2", "1.2.lock"}
    assert not lock.exists()
    assert set(listed(repository)) == set(NODES)


def test_a_branch_that_moves_meanwhile(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its new commit stands."""
    other = git(repository, "rev-parse", "1.9")
    remove = branches.remove_loose

    def moved(path: Path, value: bytes) -> None:
        if path.name == "1.2":
            path.write_text(f"{other}\n")
        remove(path, value)

    monkeypatch.setattr(branches, "remove_loose", moved)
    pack_branches(repository, 1)
    assert loose(repository) == {"1.2"}
    assert listed(repository)["1.2"] == other


def test_what_fails_changes_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(repository)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            pack_branches(repository, 1)
    assert (loose(repository), listed(repository)) == (set(NODES), before)
    assert not list(repository.glob("packed-refs*"))
