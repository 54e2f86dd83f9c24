"""Trees that were made to be hard to remove."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.trees import remove_tree
from tests.conftest import Deep

# Beyond Python's stack, and a path that the kernel takes from nobody.
DEEP = 3_000


@contextmanager
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = max(int(it) for it in os.listdir("/proc/self/fd"))  # noqa: PTH208  names alone
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + 6, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_t96_a_deep_tree_is_removed(deep: Deep, tmp_path: Path) -> None:
    """With a handful of descriptors, however deep it is."""
    folder = deep(tmp_path / "tree", DEEP)
    (folder / "beside").mkdir()
    (folder / "beside/link").symlink_to("/")
    with few_descriptors():
        remove_tree(folder)
    assert list(tmp_path.iterdir()) == []
    remove_tree(folder)


def test_t96_no_link_is_followed(tmp_path: Path) -> None:
    """Neither one that is in the tree, nor one that takes the place of a folder, nor one in place of the tree."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "whole").write_text("x")
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/link").symlink_to(outside)
    (tree / "a/b/link").symlink_to(outside)
    remove_tree(tree)
    tree.symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        remove_tree(tree)
    assert (outside / "whole").read_text() == "x"


def test_t96_a_folder_that_becomes_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a folder and its opening somebody puts a link there: it is not gone through."""
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "whole").write_text("x")
    (tree / "a").mkdir(parents=True)
    scan = os.scandir

    def swapped(where: int) -> object:
        found = list(scan(where))
        (tree / "a").rename(tmp_path / "away")
        (tree / "a").symlink_to(outside)
        monkeypatch.undo()
        return _Listed(found)

    monkeypatch.setattr(os, "scandir", swapped)
    with pytest.raises(NotADirectoryError):
        remove_tree(tree)
    assert (outside / "whole").read_text() == "x"


class _Listed(list[os.DirEntry[str]]):
    def __enter__(self) -> "_Listed":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


def test_two_remove_the_same(tmp_path: Path) -> None:
    """Whatever one of them finds gone was removed by the other."""
    tree = tmp_path / "tree"
    for number in range(60):
        (tree / f"{number}/a/b").mkdir(parents=True)
        (tree / f"{number}/a/file").write_text("x")
    failed: list[BaseException] = []

    def remove() -> None:
        try:
            remove_tree(tree)
        except OSError as error:
            failed.append(error)

    both = [threading.Thread(target=remove) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert failed == []
    assert not tree.exists()
