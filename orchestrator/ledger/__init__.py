"""What is kept of a campaign: events in a chain, what they add up to, and the bytes that they name.

This is the package's face; everything else is private to it.
"""

from orchestrator.ledger.address import Address
from orchestrator.ledger.artifacts import Artifacts, Collected, Stored, Usage
from orchestrator.ledger.chain import GENESIS, START, Entry, Head, Record, Verified, canonical, check, seal, verify
from orchestrator.ledger.errors import (
    Away,
    Busy,
    ChainBroken,
    Corrupt,
    Exists,
    Fenced,
    Forged,
    Full,
    Held,
    LedgerError,
    Missing,
    NewerVersion,
    NotALedger,
    ReadOnly,
    Replaced,
)
from orchestrator.ledger.export import read_head, to_csv, to_jsonl, verify_jsonl, write_head
from orchestrator.ledger.lock import CampaignLock, Holder, held_by
from orchestrator.ledger.store import Ledger, Request, Snapshot, Where

__all__ = [
    "GENESIS",
    "START",
    "Address",
    "Artifacts",
    "Away",
    "Busy",
    "CampaignLock",
    "ChainBroken",
    "Collected",
    "Corrupt",
    "Entry",
    "Exists",
    "Fenced",
    "Forged",
    "Full",
    "Head",
    "Held",
    "Holder",
    "Ledger",
    "LedgerError",
    "Missing",
    "NewerVersion",
    "NotALedger",
    "ReadOnly",
    "Record",
    "Replaced",
    "Request",
    "Snapshot",
    "Stored",
    "Usage",
    "Verified",
    "Where",
    "canonical",
    "check",
    "held_by",
    "read_head",
    "seal",
    "to_csv",
    "to_jsonl",
    "verify",
    "verify_jsonl",
    "write_head",
]
