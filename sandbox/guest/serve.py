"""Serves a Python candidate over frames; runs inside the chamber, standard library only.

Frames travel on descriptors of their own: what was stdin and stdout is moved away first, so that a stray print in
the candidate goes to the log and a stray read finds nothing.
"""

import os


def serve(answer):  # type: ignore[no-untyped-def]  # runs in the chamber, on any Python 3
    """Answer every request with `answer(payload)`, both bytes, until stdin ends."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    while True:
        header = requests.read(12)
        if len(header) < 12:
            return
        length, nonce = int.from_bytes(header[:4], "big"), header[4:]
        reply = answer(requests.read(length))
        replies.write(len(reply).to_bytes(4, "big") + nonce + reply)
        replies.flush()
