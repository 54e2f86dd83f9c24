"""A combination that calls its members. Standard library only, Python 3.9 up.

    from blastdoor_members import MemberFailed, members

    with members() as pool:                            # what is in $BLASTDOOR_OUT is handed over when it is left
        for name in pool.names:                        # the one that was chosen first, first
            bins = pool.call(name, "packed", sizes, capacity)

Each member is in a chamber of its own, which is opened at the first call and stays until the end. Only plain values
cross. A call that fails, whatever the member did, raises MemberFailed; other members can still be called. The values
are a member's own words: trust them no more than any input.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blastdoor_frames import Frames
from blastdoor_values import decode, encode

__all__ = ["MemberFailed", "Pool", "members"]


class MemberFailed(Exception):
    """There is no such member, it has no such function, it raised an error, or its time is used up."""


class Pool:
    def __init__(self) -> None:
        self._frames = Frames()
        self._nonce, begin = self._frames.receive()
        self.names: list[str] = decode(begin[1:])["members"]

    def call(self, member: str, function: str, *arguments: Any) -> Any:
        """What a member's function returns."""
        name = member.encode()
        self._frames.send(self._nonce, b"C", len(name).to_bytes(2, "big"), name, encode([function, *arguments]))
        self._nonce, answer = self._frames.receive()
        kind, value = bytes(answer[:1]), answer[1:]
        if kind == b"V":
            return decode(value)
        told = decode(value)
        raise MemberFailed(f"{member}: {told[1] if isinstance(told, list) and len(told) > 1 else told}")

    def _finish(self) -> None:
        out = Path(os.environ["BLASTDOOR_OUT"])
        files = {it.relative_to(out).as_posix(): it.read_bytes() for it in sorted(out.rglob("*")) if it.is_file()}
        looks_on = getattr(sys.modules.get("sitecustomize"), "profile", None)
        if looks_on and os.environ.get("BLASTDOOR_PROFILE"):  # it would write at the exit, when all is handed over
            files[f"{Path(os.environ['BLASTDOOR_PROFILE']).name}/members.json"] = looks_on()
        self._frames.send(self._nonce, b"F", encode(files))


@contextlib.contextmanager
def members() -> Iterator[Pool]:
    """The pool, whose members wait to be called. An error that leaves the block hands nothing over."""
    pool = Pool()
    yield pool
    pool._finish()
