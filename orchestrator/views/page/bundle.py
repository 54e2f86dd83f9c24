"""The page as one file: a browser loads no module from a disk, so its modules become one script.

They are our own, and written in one way: each import is a line of its own at the top, each export is a declaration.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{ ([^}]*) \} from "(\./\w+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_LOADER = """const modules = {}, made = {};
const load = (name) => (made[name] ??= modules[name]());
"""
# Lines of the page by which it loads its parts.
LINKED = re.compile(r'^<(?:link rel="(?:modulepreload|stylesheet)"|script ).*\n', re.MULTILINE)


def one_script(files: Mapping[str, bytes]) -> str:
    """All modules, each made when it is first asked for."""
    parts = [_module(name, body.decode()) for name, body in sorted(files.items()) if name.endswith(".js")]
    return f'"use strict";\n(() => {{\n{_LOADER}{"".join(parts)}load("./app.js");\n}})();\n'


def _module(name: str, body: str) -> str:
    names = [found[1] for found in _EXPORT.findall(body)]
    body = _IMPORT.sub(r'const { \1 } = load("\2");', body)
    body = _EXPORT.sub(r"\1", body)
    body = re.sub(r"\bimport\(", "load(", body)
    if re.search(r"^(?:import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name} imports or exports in a way that is not known here")
    return f'modules["./{name}"] = () => {{\n{body}return {{ {", ".join(names)} }};\n}};\n'


def one_page(files: Mapping[str, bytes], data: str) -> str:
    """The page with all that it needs in it; `data` stands before its script. The policy names both by their digests,
    so nothing else that may ever get into the file is run.
    """
    script, style = one_script(files), files["page.css"].decode()
    if "</script" in script or "</style" in style:
        raise ValueError("a script or style that would end its own element")
    icon = f"data:image/svg+xml;base64,{base64.b64encode(files['icon.svg']).decode()}"
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    page = LINKED.sub("", files["index.html"].decode()).replace("static/icon.svg", icon)
    first = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n</head>'
    return page.replace("</head>", first).replace("</body>", f"{data}<script>{script}</script>\n</body>")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def as_block(name: str, value: object) -> tuple[str, int]:
    """An element that holds data and is never run, and how long it is. In it are letters and digits alone."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    made = base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()
    return f'<script type="text/plain" data-part="{name}">{made}</script>\n', len(made)
