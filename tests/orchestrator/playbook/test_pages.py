"""What a playbook may consist of, and what a person is told about one that cannot be used."""

import os
from pathlib import Path

import pytest

from orchestrator.playbook import PROMPTS, PlaybookError, checked, default_pages, load_pages
from orchestrator.playbook.pages import PAGE_BYTES, SKILLS, TOTAL_BYTES, VARIANTS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A playbook's, with nothing in it."""
    (tmp_path / "playbook").mkdir()
    return tmp_path / "playbook"


def write(folder: Path, name: str, content: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_what_ships() -> None:
    """Every prompt is there, and all of it fits its own bounds."""
    shipped = default_pages()
    assert set(PROMPTS) <= set(shipped)
    assert checked(shipped) == shipped


def test_a_folder_lies_over_what_ships(folder: Path) -> None:
    """A page of the task replaces that of the same name; the others stay."""
    write(folder, "notes.md", "mine\r\n")
    write(folder, "skills/think-first.md", "Think.\n")
    pages = load_pages(folder)
    assert pages["notes.md"] == "mine\n"
    assert pages["skills/think-first.md"] == "Think.\n"
    assert pages["prompts/draft.md"] == default_pages()["prompts/draft.md"]


def test_what_tools_leave_is_left_out(folder: Path) -> None:
    """Names that begin with a dot are nobody's page."""
    write(folder, ".DS_Store", b"\x00")
    write(folder, ".git/config", "x")
    assert load_pages(folder) == load_pages(None)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("prompts/sytem.md", b"x", "did you mean prompts/system.md?"),
        ("notes.txt", b"x", "did you mean notes.md?"),
        ("anything.bin", b"x", "pages are prompts/system.md"),
        ("skills/No Way.md", b"x", "call it skills/name.md"),
        ("skills/deep/er.md", b"x", "no folders but prompts and skills"),
        ("notes.md", b"\xff\xfe", "is not UTF-8 text"),
        ("notes.md", b"a\x1b[2Jb", "which nobody sees"),
        ("notes.md", "a\u202eb".encode(), "which nobody sees"),
        ("notes.md", b"x" * (PAGE_BYTES + 1), "more than 16KiB"),
        ("prompts/draft.md", b" \n", "prompts/draft.md is empty"),
        ("prompts/draft-bold.md", b" \n", "prompts/draft-bold.md is empty"),
        ("prompts/system-bold.md", b"x", "is not a page of a playbook; did you mean"),
        ("prompts/draft-Bold.md", b"x", "is not a page of a playbook; did you mean"),
    ],
)
def test_refused(folder: Path, name: str, content: bytes, said: str) -> None:
    """Each in one line that names the page and what to do."""
    write(folder, name, content)
    with pytest.raises(PlaybookError) as refused:
        load_pages(folder)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_too_much() -> None:
    """Pages are counted and weighed together, too."""
    many = {f"skills/s{number}.md": "x" for number in range(SKILLS + 1)}
    with pytest.raises(PlaybookError, match="at most 32 are read"):
        checked(many)
    variants = {f"prompts/draft-{number}.md": "x" for number in range(VARIANTS + 1)}
    with pytest.raises(PlaybookError, match="17 variants of prompts, at most 16 are read"):
        checked(variants)
    large = {f"skills/s{number}.md": "x" * PAGE_BYTES for number in range(TOTAL_BYTES // PAGE_BYTES + 1)}
    with pytest.raises(PlaybookError, match="96KiB in all"):
        checked(large)


def test_links_and_pipes(folder: Path, tmp_path: Path) -> None:
    """What is no plain file is refused, and never opened: a link could lead to the gold."""
    (tmp_path / "gold.txt").write_text("42")
    (folder / "notes.md").symlink_to(tmp_path / "gold.txt")
    with pytest.raises(PlaybookError, match="is a link"):
        load_pages(folder)
    (folder / "notes.md").unlink()
    os.mkfifo(folder / "notes.md")
    with pytest.raises(PlaybookError, match="not a plain file"):
        load_pages(folder)
    with pytest.raises(PlaybookError, match="is not a folder"):
        load_pages(tmp_path / "missing")
