"""Which ledger a campaign has: the file in its folder, or a place in a PostgreSQL database that the folder remembers.

The folder keeps the campaign's name in the database and which database that was, never how to get in: where to
connect comes from the user's settings alone, so that a folder from elsewhere can send nobody's password anywhere.
"""

import json
import os
import secrets
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from orchestrator.files import open_plain, sync
from orchestrator.ledger import (
    START,
    Address,
    CampaignLock,
    Ledger,
    LedgerError,
    Missing,
    NotALedger,
    Replaced,
    Where,
    read_head,
    write_head,
)
from orchestrator.settings import Settings
from orchestrator.text import printable

FILE = "ledger.sqlite3"
NOTE = "ledger.toml"
HEAD = "head.json"
_LONGEST_NOTE = 1 << 16
_TEXT = """# The ledger of this campaign is in a PostgreSQL database. Its URL is the setting `ledger`, not kept here.
campaign = "{campaign}"
database = {database}
made = {made}
"""


class Note(BaseModel):
    """`database` is for people; `made` is false until the campaign is known to be in there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    campaign: str
    database: str
    made: bool

    @field_validator("database")
    @classmethod
    def _is_shown(cls, value: str) -> str:
        return printable(value)


@dataclass(frozen=True)
class Place:
    where: Where
    note: Note | None = None


@dataclass(frozen=True)
class Identity:
    """`place` is another one where the ledger was replaced; its bytes may be others where `written` is."""

    place: str = ""
    written: str = ""


def identity_of(folder: Path) -> Identity:
    try:
        found = (folder / FILE).stat()
    except FileNotFoundError:
        note = _read_note(folder)
        return Identity(note.campaign if note else "")
    return Identity(f"{found.st_dev} {found.st_ino}", f"{found.st_mtime_ns} {found.st_size}")


def has_ledger(folder: Path) -> bool:
    note = _read_note(folder)
    return note.made if note else (folder / FILE).exists()


def has_records(folder: Path) -> bool:
    """Whether anything was begun here: a file that was only made counts as none, a place in a database counts."""
    if not (folder / FILE).exists():
        return has_ledger(folder)
    with Ledger.open(folder / FILE, read_only=True) as ledger:
        return ledger.head().seq > 0


def open_ledger(
    folder: Path, settings: Settings | None = None, *, read_only: bool = False, waits_to_read: bool = True
) -> Ledger:
    """Of the campaign in this folder, wherever it is. Raises LedgerErrors; Missing where none was begun.

    Without settings, those of the user count.
    """
    place = _found(folder, settings)
    if place is None:
        raise Missing(f"there is no ledger in {folder}; start a campaign first")
    try:
        return Ledger.open(place.where, read_only=read_only, waits_to_read=waits_to_read)
    except Missing:
        if place.note and place.note.made:
            raise NotALedger(
                f"the database that the setting `ledger` names has no campaign {place.note.campaign[:8]}; it is in"
                f" {place.note.database}, says {folder / NOTE}: name that one"
            ) from None
        raise


def take_ledger(folder: Path, settings: Settings, *, make: bool) -> Ledger:
    """For a worker of the campaign: made where it is missing and `make` says so, and held. Raises LedgerErrors."""
    try:
        ledger = open_ledger(folder, settings)
    except Missing:
        if not make:
            raise
        ledger = Ledger.create((_found(folder, settings) or _chosen(folder, settings)).where)
    try:
        ledger.hold()
        if (note := _read_note(folder)) and not note.made:
            # What was begun in one database may have been made in another.
            made_in = _name_of(ledger.where) if isinstance(ledger.where, Address) else note.database
            _write_note(folder, note.model_copy(update={"made": True, "database": made_in}))
    except BaseException:
        ledger.close()
        raise
    return ledger


def forget_ledger(folder: Path, ledger: Ledger) -> None:
    """A campaign that ended before its first record leaves nothing in its database either. Raises LedgerErrors.

    The note tells first that nothing was made: an answer that is lost then leaves a name, and nothing behind it.
    """
    note = _read_note(folder)
    if note is None or not isinstance(ledger.where, Address):
        return
    _write_note(folder, note.model_copy(update={"made": False}))
    if not ledger.forget():
        _write_note(folder, note)


def check_head(folder: Path, ledger: Ledger) -> None:
    """Whether the ledger still has the last record that is known here. Raises Replaced: one that was put back to an
    earlier day lacks what was done since, and candidates and bytes of it are in the folder. Raises NotALedger for a
    record that cannot be read.
    """
    path = folder / HEAD
    if not path.is_file() or ledger.head() == START:  # one who opens a pipe that another laid there would wait for ever
        return
    try:
        head = read_head(path)
    except LedgerError:
        raise NotALedger(f"{path} is not what blastdoor kept there; remove it to go on from this ledger") from None
    if not ledger.has(head):
        raise Replaced(
            f"the ledger lacks record {head.seq}, which was written from here: an older one was put back, or another"
            f" one; put back the newest, or, to go on from this one, remove {path} and, in candidates.git, the branches"
            " of nodes that it lacks"
        )


def keep_head(folder: Path, ledger: Ledger) -> None:
    """The last record of this session, as far as the folder can be written."""
    if (head := ledger.last) and head != START:
        with suppress(LedgerError):
            write_head(folder / HEAD, head)


@contextmanager
def campaign_lock(folder: Path, settings: Settings | None = None) -> Iterator[None]:
    """Nobody else works on the campaign meanwhile, here or elsewhere. Raises Held."""
    with CampaignLock(folder / "lock"), open_ledger(folder, settings) as ledger:
        ledger.hold()
        yield


def _found(folder: Path, settings: Settings | None) -> Place | None:
    note = _read_note(folder)
    if note is None:
        return Place(folder / FILE) if (folder / FILE).exists() else None
    if (folder / FILE).exists():
        raise LedgerError(f"{folder} has both {FILE} and {NOTE}; move away the one that is not this campaign's")
    url = (settings or Settings()).ledger
    if url is None and not note.made:
        return None
    if url is None:
        raise LedgerError(
            f"the ledger of this campaign is in the database {note.database}: set BLASTDOOR_LEDGER, or ledger in"
            f" settings.toml, to its URL; {folder / NOTE} says so"
        )
    return Place(Address(url, note.campaign), note)


def _chosen(folder: Path, settings: Settings) -> Place:
    """Where a new one goes. The folder knows it first: a process killed now leaves a name, and nothing behind it."""
    if settings.ledger is None:
        # Of a database that never was reached, or was left before anything was recorded in it.
        (folder / NOTE).unlink(missing_ok=True)
        return Place(folder / FILE)
    address = Address(settings.ledger, uuid.uuid4().hex)
    note = Note(campaign=address.campaign, database=_name_of(address), made=False)
    _write_note(folder, note)
    return Place(address, note)


def _name_of(address: Address) -> str:
    from orchestrator.ledger.postgres import database_name  # who keeps a file never loads it

    return database_name(address)


def _read_note(folder: Path) -> Note | None:
    path = folder / NOTE
    try:
        with open_plain(path) as file:
            return Note.model_validate(tomllib.loads(file.read(_LONGEST_NOTE).decode()))
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError):
        raise NotALedger(f"{path} does not say where the ledger is; put back the one that blastdoor wrote") from None
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error


def _write_note(folder: Path, note: Note) -> None:
    made = str(note.made).lower()
    text = _TEXT.format(campaign=note.campaign, database=json.dumps(note.database, ensure_ascii=False), made=made)
    write_durably(folder / NOTE, text)


def write_durably(path: Path, text: str) -> None:
    """Whole or not at all, and on disk for good. Raises LedgerError."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        sync(path.parent)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}; check rights and free space") from error
    finally:
        beside.unlink(missing_ok=True)
