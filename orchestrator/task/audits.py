"""Where a task's last audit is kept, beside its campaign, and how such a file is read: whole, within bounds, or not."""

import os
import secrets
import stat
from pathlib import Path

from pydantic import ValidationError

from orchestrator.bounded_json import JsonRefused, loads
from orchestrator.domain.audit import AuditRecord
from orchestrator.task.errors import AUDIT

_LARGEST = 16 << 20
_DEPTH = 50
_DIGITS = 400


class NoAudit(Exception):
    """A file is no record of an audit; the message says why."""


def place_of(task_folder: Path) -> Path:
    return task_folder / AUDIT


def read_audit(path: Path) -> tuple[AuditRecord, bytes]:
    """The record, and the bytes that it was read from. Raises NoAudit."""
    data = _bytes_of(path)
    try:
        loads(data, max_bytes=_LARGEST, max_depth=_DEPTH, max_digits=_DIGITS)
        return AuditRecord.model_validate_json(data), data
    except JsonRefused as refused:
        raise NoAudit(str(refused)) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NoAudit(f"{where}: {first['msg']}" if where else str(first["msg"])) from None


def _bytes_of(path: Path) -> bytes:
    """Of a plain file only: a page that shows many folders must not wait for a pipe in one of them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NoAudit(error.strerror or "it cannot be read") from None
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NoAudit("it is no plain file")
        return stream.read(_LARGEST + 1)


def kept_audit(task_folder: Path) -> AuditRecord | None:
    """The one that was kept last; None where there is none that can be read."""
    try:
        return read_audit(place_of(task_folder))[0]
    except NoAudit:
        return None


def keep_audit(task_folder: Path, record: AuditRecord, text: str) -> None:
    """In place of the last one, unless that says more about the same judge. Raises OSError."""
    before = kept_audit(task_folder)
    if before and not before.other_parts(record.digests) and _says_more(before, record):
        return
    path = place_of(task_folder)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, text)


def _says_more(before: AuditRecord, record: AuditRecord) -> bool:
    """A part of an audit hides neither a whole one nor what is not good; one that is not good itself is told."""
    if record.asked.covers(before.asked):
        return False
    return not before.good or (record.good and not before.asked.part)


def write_whole(path: Path, text: str) -> None:
    """Whole or not at all: half a report could be taken for a good one. Raises OSError."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
