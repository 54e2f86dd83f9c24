"""A person's corrections: added and removed by people alone, and in every version that follows."""

import pytest

from orchestrator.playbook import PlaybookError, carried, corrected, corrections_of, pinned

PAGES = {"notes.md": "x\n"}


def test_add_and_remove() -> None:
    """One line each, in the order in which they came."""
    pages = corrected(corrected(PAGES, "never use  numba"), "- be brief")
    assert corrections_of(pages) == ["never use numba", "be brief"]
    assert corrections_of(corrected(pages, "never use numba", drop=True)) == ["be brief"]


@pytest.mark.parametrize("text", ["", "  \n", "# a heading", "x" * 501, "a\x1b[2Jb"])
def test_no_correction(text: str) -> None:
    """What is no line of plain words is refused."""
    with pytest.raises(PlaybookError, match="one line of 1 to 500 characters"):
        corrected(PAGES, text)


def test_twice() -> None:
    """One that is there cannot be added, and one that is not cannot be removed."""
    pages = corrected(PAGES, "be brief")
    with pytest.raises(PlaybookError, match="is a correction already"):
        corrected(pages, "be brief")
    with pytest.raises(PlaybookError, match="there is no correction"):
        corrected(pages, "be nice", drop=True)


def test_carried_to_new_pages() -> None:
    """Of what the present pages have, that which a person pinned since follows; the folder's own lines are its own."""
    before = {**PAGES, "corrections.md": "- of the folder\n"}
    present = corrected(before, "pinned")
    assert corrections_of(carried({**PAGES, "corrections.md": "- new\n"}, present, before)) == ["new", "pinned"]
    assert carried(before, before, before) == before


def test_pinned_on_older_pages() -> None:
    """Older pages that are used again have the corrections of now, also where there were more of them."""
    older = corrected(PAGES, "too much")
    present = corrected({**PAGES, "notes.md": "y\n"}, "be brief")
    assert pinned(older, present) == {"notes.md": "x\n", "corrections.md": "- be brief\n"}
    assert pinned(PAGES, {"notes.md": "y\n"}) == PAGES
