"""Frames between us and a serving chamber: four bytes of length, eight of nonce, then the payload.

A reply echoes the nonce of its request, which is random, so that nothing can be answered before it was asked. The
elapsed time is ours: the chamber's clock is never looked at.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.units import format_size
from sandbox.wire.faults import Fault, WireFault

NONCE_BYTES = 8
HEADER_BYTES = 4 + NONCE_BYTES
_FIRST_BYTES = 16


def encode_header(nonce: bytes, length: int) -> bytes:
    return length.to_bytes(4, "big") + nonce


@dataclass(frozen=True, slots=True)
class Reply:
    """A frame from the chamber, with the seconds since its request was sent, by our own clock.

    For `silent_s` of them the provider itself answered nobody: a time with that in it is no measure of the program.
    """

    payload: bytes
    elapsed_s: float
    silent_s: float = 0.0


Taker = Callable[[bytes], None]


class FrameReader:
    """Feed it bytes; it hands on whole frames that somebody waits for, and faults on every other one.

    `on_begin` is told the length and the first bytes of each; if it answers with a taker, that one gets the bytes as
    they come, and the frame is not kept.
    """

    def __init__(
        self,
        on_frame: Callable[[bytes], None],
        payload_cap: int,
        count_cap: int,
        on_begin: Callable[[int, bytes], Taker | None] = lambda _length, _first: None,
    ) -> None:
        self._on_frame = on_frame
        self._on_begin = on_begin
        self._taker: Taker | None = None
        self._begun = False
        self._payload_cap = payload_cap
        self._left = count_cap
        self._header = bytearray()
        self._payload = io.BytesIO()
        self._in_payload = False
        self._left_bytes = 0
        self._awaited: bytes | None = None

    def await_reply(self, nonce: bytes) -> None:
        """The next frame must carry this nonce."""
        if self._header or self._in_payload:
            raise WireFault(Fault.FRAME_EXTRA, "a frame began before anything was asked")
        self._awaited = nonce

    def feed(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            if not self._in_payload:
                wanted = HEADER_BYTES - len(self._header)
                self._header += view[:wanted]
                view = view[wanted:]
                if len(self._header) < HEADER_BYTES:
                    self._check_expected()
                    return
                self._open_payload()
            view = self._fill_payload(view)

    def finish(self) -> None:
        if self._header or self._in_payload:
            raise WireFault(Fault.ENDED_EARLY, "the stream ended within a frame")

    def _check_expected(self) -> None:
        if self._awaited is None:
            raise WireFault(Fault.FRAME_EXTRA, "a frame that nobody asked for")

    def _open_payload(self) -> None:
        self._check_expected()
        length, nonce = int.from_bytes(self._header[:4], "big"), bytes(self._header[4:])
        self._header.clear()
        if nonce != self._awaited:
            raise WireFault(Fault.FRAME_NONCE, "the reply does not echo the nonce of its request")
        if length > self._payload_cap:
            raise WireFault(
                Fault.FRAME_OVERSIZED, f"{format_size(length)}, the cap is {format_size(self._payload_cap)}"
            )
        if not self._left:
            raise WireFault(Fault.FRAME_LIMIT, "the cap on frames is reached")
        self._left -= 1
        self._payload, self._left_bytes, self._in_payload = io.BytesIO(), length, True
        self._begun = False

    def _fill_payload(self, view: memoryview) -> memoryview:
        piece = view[: self._left_bytes]
        if piece and not self._begun:
            self._begun = True
            self._taker = self._on_begin(self._left_bytes, bytes(piece[:_FIRST_BYTES]))
        self._left_bytes -= len(piece)
        if self._taker:
            self._taker(bytes(piece))
        else:
            self._payload.write(piece)
        if not self._left_bytes and self._taker:
            self._taker, self._in_payload, self._awaited = None, False, None
        elif not self._left_bytes:
            # The buffer's own bytes, not a copy: of a large frame that would keep everybody waiting.
            frame, self._payload = self._payload.getvalue(), io.BytesIO()
            self._in_payload, self._awaited = False, None
            self._on_frame(frame)
        return view[len(piece) :]
