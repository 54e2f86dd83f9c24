"""Repositories of others are bytes: they are read within bounds, and what cannot be is refused in one line."""

import os
from pathlib import Path

import pytest

from orchestrator.change import File, Tree
from orchestrator.git import GitError, read_tree
from tests.orchestrator.git.genuine import git, hashed


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit on main, tagged v1: a file, a program, a folder, a file with the line ends of Windows."""
    folder = tmp_path / "repository"
    (folder / "sub/deep").mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "plain.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "sub/run").write_bytes(b"#!/bin/sh\n")
    (folder / "sub/run").chmod(0o755)
    (folder / "sub/deep/data").write_bytes(b"\x00\xff")
    commit(folder)
    git(folder, "tag", "--annotate", "--message", "first", "v1")
    return folder


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


def test_read_whole(repository: Path) -> None:
    """Bytes and executable bits are as they were committed, whatever the revision is called; of a folder, paths are
    relative to it.
    """
    inner = {"run": File(b"#!/bin/sh\n", executable=True), "deep/data": File(b"\x00\xff")}
    whole = {"plain.txt": File(b"one\r\ntwo\r\n"), **{f"sub/{name}": file for name, file in inner.items()}}
    head = git(repository, "rev-parse", "HEAD")
    for revision in ("main", "v1", "HEAD", head, head[:10]):
        assert read_tree(repository, revision) == (head, Tree(whole))
    for folder in ("sub", "sub/", "./sub"):
        assert read_tree(repository, "main", folder) == (head, Tree(inner))


def test_read_committed_only(repository: Path) -> None:
    """What is in the work tree or the index, but in no commit, is not seen."""
    (repository / "plain.txt").write_bytes(b"changed")
    (repository / "new.txt").write_bytes(b"new")
    git(repository, "add", "new.txt")
    assert read_tree(repository, "main")[1]["plain.txt"].data == b"one\r\ntwo\r\n"
    assert "new.txt" not in read_tree(repository, "main")[1]


def test_read_bare_packed_and_linked(repository: Path, tmp_path: Path) -> None:
    """Bare repositories, packed ones, clones that borrow objects and linked work trees are read alike."""
    expected = read_tree(repository, "main")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"), "-b", "other")
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    git(tmp_path, "clone", "--quiet", "--shared", str(repository), "shared")
    git(tmp_path / "bare.git", "gc", "--quiet")
    for name in ("linked", "bare.git", "shared"):
        assert read_tree(tmp_path / name, "HEAD") == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_owner_does_not_matter(repository: Path) -> None:
    """A repository of another user is read without a word about dubious ownership."""
    for path in [repository, *repository.rglob("*")]:
        os.chown(path, 12345, 12345)
    assert len(read_tree(repository, "main")[1]) == 3


@pytest.mark.parametrize(
    ("revision", "folder", "words"),
    [
        ("nowhere", "", "no commit 'nowhere'"),
        ("", "", "is no revision"),
        ("main\0x", "", "is no revision"),
        ("\udcff", "", "is no revision"),
        ("0" * 40, "", "no commit"),
        ("main:plain.txt", "", "no commit"),
        ("main", "nope", "no folder 'nope'"),
        ("main", "plain.txt", "no folder"),
        ("main", "../..", "no folder"),
        ("main", "/etc", "no folder"),
        ("main", "\udcff", "not UTF-8"),
    ],
)
def test_refused_in_one_line(repository: Path, revision: str, folder: str, words: str) -> None:
    """A revision or a folder that is not there is refused with a line that says what to name instead."""
    with pytest.raises(GitError, match=words) as caught:
        read_tree(repository, revision, folder)
    assert "\n" not in str(caught.value)


def test_no_repository(tmp_path: Path) -> None:
    """A folder that is no repository is refused, also beneath one."""
    for name in ("missing", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(GitError, match=name):
            read_tree(tmp_path / name, "main")


@pytest.mark.parametrize("kind", ["symbolic link", "submodule"])
def test_t67_links_and_submodules_are_refused(repository: Path, kind: str) -> None:
    """Each is named, with what to do; a folder without it can still be read."""
    if kind == "submodule":
        head = git(repository, "rev-parse", "HEAD")
        git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},sub/odd")
        git(repository, "commit", "--quiet", "--message", "module")
    else:
        (repository / "sub/odd").symlink_to("/etc/passwd")
        commit(repository)
    with pytest.raises(GitError, match=rf"^sub/odd is a {kind}; ") as caught:
        read_tree(repository, "main", "sub")
    assert "\n" not in str(caught.value)
    assert len(read_tree(repository, "main", "sub/deep")[1]) == 1


def committed(folder: Path, tree: str) -> str:
    return git(folder, "commit-tree", "-m", "made by hand", tree)


@pytest.mark.parametrize("name", [b"..", b".", b".git", b".GIT", b"a/b", b"\xff"])
def test_hostile_names(repository: Path, name: bytes) -> None:
    """A tree made by hand cannot name a path outside of itself."""
    blob = bytes.fromhex(hashed(repository, "blob", b"x"))
    tree = hashed(repository, "tree", b"100644 %s\0%s" % (name, blob))
    with pytest.raises(GitError, match=r"rename it|damaged"):
        read_tree(repository, committed(repository, tree))


def test_bomb_of_folders(repository: Path) -> None:
    """Trees that name each other many times over stand for a billion folders; reading them ends early."""
    tree = hashed(repository, "tree", b"")
    for _ in range(9):
        below = bytes.fromhex(tree)
        tree = hashed(repository, "tree", b"".join(b"40000 %d\0%s" % (number, below) for number in range(10)))
    with pytest.raises(GitError, match="more than 20000 files and folders"):
        read_tree(repository, committed(repository, tree))


def test_deep_folders(repository: Path) -> None:
    """Depth is capped too."""
    tree = hashed(repository, "tree", b"")
    for _ in range(150):
        tree = hashed(repository, "tree", b"40000 d\0" + bytes.fromhex(tree))
    with pytest.raises(GitError, match="more than 100 deep"):
        read_tree(repository, committed(repository, tree))


def test_caps(repository: Path) -> None:
    """Bytes and files are counted before they are read."""
    assert len(read_tree(repository, "main", entries=5, size=22)[1]) == 3
    with pytest.raises(GitError, match="too many bytes"):
        read_tree(repository, "main", size=21)
    with pytest.raises(GitError, match="more than 4 files and folders"):
        read_tree(repository, "main", entries=4)
