"""The site is built from the pages without a warning: no broken link or heading, no page that the navigation lacks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# Reads every page, and makes one of them: that is enough to see the theme and the search, and all take twice the time.
# One process for both, which looks for no garbage, takes two thirds of the time of two.
BUILD = """
import gc, sys
from sphinx.cmd.build import main
gc.disable()
root, folder = sys.argv[1:]
common = ["--quiet", "--conf-dir", f"{root}/docs", "--doctree-dir", f"{folder}/parsed", root]
sys.exit(
    main(["--builder", "dummy", "--fail-on-warning", "--keep-going", *common, f"{folder}/none"])
    or main([*common, f"{folder}/site", f"{root}/docs/index.md"])
)
"""


@pytest.mark.touching("docs")
@pytest.mark.long
def test_the_site(tmp_path: Path) -> None:
    """Every page is read and every link in it found; what a page is made into asks nobody else for anything."""
    line = [sys.executable, "-c", BUILD, str(ROOT), str(tmp_path)]
    built = subprocess.run(line, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = tmp_path / "site"
    assert (site / "index.html").exists()
    assert (site / "searchindex.js").exists()
    for page in ("docs/index.html", "search.html"):
        text = (site / page).read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"([^\"]*)", text)
        assert loaded
        assert not [it for it in loaded if re.match(r"(?:[a-z]+:)?//", it)], page
