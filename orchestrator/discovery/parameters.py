"""Numbers that a search chooses, in a task: the point, the space around what they are now, and the module of ours that
puts them in their places when the repository is loaded.
"""

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from orchestrator.discovery.repository import Parameter
from orchestrator.discovery.targets import PARAMETERS_FILE, name_of
from orchestrator.importing.called import toml_text

PARAMETERS_FOLDER = str(PurePosixPath(PARAMETERS_FILE).parent)
_GUEST = Path(__file__).parent / "guest" / "blastdoor_parameters.py"
_PLACES = b"PLACES: dict[str, tuple[str, str, str]] = {}"
# How many times less or more than it is now.
_FAR = 8


def parameter_files(space: Sequence[Parameter]) -> dict[str, bytes]:
    places = {name_of(it): (it.path, it.of, it.name) for it in space}
    point = {name_of(it): it.value for it in space}
    text = _GUEST.read_bytes().replace(_PLACES, _PLACES.replace(b"{}", repr(places).encode()), 1)
    return {
        f"workspace/{PARAMETERS_FOLDER}/sitecustomize.py": text,
        f"workspace/{PARAMETERS_FILE}": json.dumps(point, indent=1).encode() + b"\n",
    }


def parameter_lines(space: Sequence[Parameter]) -> list[str]:
    """For the task file."""
    found = [
        "",
        "[parameters] # they are put in their places when the code is loaded",
        f"file = {toml_text(PARAMETERS_FILE)}",
    ]
    found += ["", "[parameters.space]"]
    for it in space:
        value = it.value
        if isinstance(value, int):
            bounds = f'type = "int", low = {max(1, value // _FAR)}, high = {max(value, 1) * _FAR}'
        else:
            bounds = f'type = "float", low = {value / _FAR!r}, high = {value * _FAR!r}, log = true'
        found.append(f"{name_of(it)} = {{{bounds}}} # {it}")
    return found
