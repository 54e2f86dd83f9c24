"""The engine that `blastdoor up` started: where it is, kept in the user's own state folder for later commands."""

import contextlib
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OwnEngine:
    """`folder` has its data."""

    host: str
    folder: str

    def listens(self) -> bool:
        """Whether somebody takes calls there; a killed daemon leaves its socket behind."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(self.host.removeprefix("unix://"))
            return True
        return False


def state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "blastdoor"


def _file() -> Path:
    return state_folder() / "engine.json"


def own_engine() -> OwnEngine | None:
    """The one that was started last and not ended; whether it still runs is another question."""
    try:
        return OwnEngine(**json.loads(_file().read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # none, or a file that we did not write


def remember(engine: OwnEngine) -> None:
    state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    written = _file().with_suffix(".new")
    written.write_text(json.dumps(asdict(engine)) + "\n", "utf-8")
    written.replace(_file())


def forget() -> None:
    _file().unlink(missing_ok=True)
