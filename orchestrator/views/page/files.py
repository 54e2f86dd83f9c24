"""What the browser is given beside data: the files of the page, read once."""

import gzip
from importlib import resources
from pathlib import Path

from orchestrator.views.page.bundle import LINKED, one_script

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def static_files() -> dict[str, bytes]:
    folder = resources.files(__package__) / "static"
    return {it.name: it.read_bytes() for it in folder.iterdir() if Path(it.name).suffix in TYPES}


def served_files() -> dict[str, bytes]:
    """Those that a server gives away: its modules in one script, since each of twenty would be asked for apart."""
    files = static_files()
    first = '<link rel="stylesheet" href="static/page.css">\n<script src="static/page.js" defer></script>\n</head>'
    index = LINKED.sub("", files["index.html"].decode()).replace("</head>", first)
    others = {name: body for name, body in files.items() if not name.endswith(".js")}
    return {**others, "index.html": index.encode(), "page.js": one_script(files).encode()}


def packed_files(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: gzip.compress(body, 9, mtime=0) for name, body in files.items()}
