"""The site: the same pages as in the repository, sorted by need, with search. make docs builds it.

Pages are read where they lie, so that a link works in both places; a link to a file of code becomes a download.
"""

import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
HOME, DECISIONS = "docs/index", "docs/adr/README"

project = "Blastdoor"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
html_title = f"Blastdoor {release}"

extensions = ["myst_parser"]
root_doc = HOME
include_patterns = [
    *("docs/*.md", "docs/adr/*.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("deploy/README.md", "images/README.md", "examples/*/README.md", "tests/modal_emulator/README.md"),
]
exclude_patterns = [".*", "build", "orchestrator", "sandbox", "scripts", "benchmarks"]
myst_heading_anchors = 4
smartquotes = False  # an option is written with two hyphens
highlight_language = "text"
html_theme = "furo"
html_copy_source = False
html_show_sourcelink = False


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _add_front_door)


def _add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """The sections of the first page, and what they link, are the navigation."""
    del app
    if page in (HOME, DECISIONS):
        _, *parts = re.split(r"^#+ (.*)$", source[0], flags=re.MULTILINE)
        source[0] += "".join(map(_tree, parts[::2], parts[1::2]))


def _tree(caption: str, text: str) -> str:
    pages = dict.fromkeys(re.findall(r"\]\(([^)#:]+)\.md\)", text))
    return "\n".join(["\n```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"]) if pages else ""


def _add_front_door(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        to_home = (
            f'<!doctype html><meta http-equiv="refresh" content="0; url={HOME}.html"><a href="{HOME}.html">Docs</a>\n'
        )
        (Path(app.outdir) / "index.html").write_text(to_home, encoding="utf-8")
