"""The site is built from the pages without a warning: no broken link or heading, no page that the navigation lacks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


def sphinx(*words: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "sphinx", "--conf-dir", ROOT / "docs", "--quiet", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_the_site(tmp_path: Path) -> None:
    """Every page is read and every link in it found; what a page is made into asks nobody else for anything."""
    parsed, site = tmp_path / "parsed", tmp_path / "site"
    read = sphinx("--builder", "dummy", "--fail-on-warning", "--doctree-dir", parsed, ROOT, tmp_path / "none")
    assert (read.returncode, read.stderr) == (0, "")
    # One page is enough to see the theme and the search; all of them take twice the time.
    made = sphinx("--doctree-dir", parsed, ROOT, site, ROOT / "docs" / "index.md")
    assert made.returncode == 0, made.stderr
    assert (site / "index.html").exists()
    assert (site / "searchindex.js").exists()
    for page in ("docs/index.html", "search.html"):
        text = (site / page).read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"([^\"]*)", text)
        assert loaded
        assert not [it for it in loaded if re.match(r"(?:[a-z]+:)?//", it)], page
