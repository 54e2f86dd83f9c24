"""One error for everything that can be wrong with a task: a line that says where, what, and what to do."""

import re
from pathlib import Path

from orchestrator.change import shown

Key = tuple[str | int, ...]

FILE = "blastdoor.toml"
# What runs and audits left, in the folder of the task.
STATE = ".blastdoor"
AUDIT = f"{STATE}/audit.json"
LINE_CHARACTERS = 600


class TaskError(ValueError):
    """The task cannot be used as it is. The message is one line, for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(shown(message, LINE_CHARACTERS))


class Wrong(Exception):
    """What is wrong at a key. A caller that knows the file turns it into a TaskError."""

    def __init__(self, key: Key, text: str) -> None:
        super().__init__(text)
        self.key = key
        self.text = text


def refuse_unnameable(folder: Path) -> None:
    """Ledgers, commits and JSON name folders as text, which some names are not. Raises TaskError."""
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise TaskError(f"{folder.absolute()}: its name is not UTF-8; rename the folder") from None


def dotted(key: Key) -> str:
    """A key as people write it: trial.command, metrics[1].goal, env."A B"."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            word = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"'
            text += f".{word}" if text else word
    return text
