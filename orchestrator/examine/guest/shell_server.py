"""Keeps one shell and runs a line in it for every request; runs inside the chamber, standard library only."""

import os
import subprocess
from pathlib import Path

MARK = b"\n\x00blastdoor "


def start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def answer(shell: "subprocess.Popen[bytes]", line: bytes) -> "tuple[bytes, bool]":
    """What the line printed, and its exit code at the end. The line is sourced, so that `cd` and variables stay."""
    assert shell.stdin  # noqa: S101  # both are pipes
    assert shell.stdout  # noqa: S101  # like stdin
    Path("/work/tmp/line").write_bytes(line + b"\n")
    shell.stdin.write(b". /work/tmp/line </dev/null; printf '\\n\\000blastdoor %d\\n' $?\n")
    shell.stdin.flush()
    said = b""
    while True:
        piece = os.read(shell.stdout.fileno(), 65536)
        said += piece
        if not piece:
            return said + b"\n(the shell ended; a new one is started)\n", True
        head, mark, code = said.rpartition(MARK)
        if mark and code.endswith(b"\n"):
            failed = b"" if code == b"0\n" else b"\n(exit code " + code.strip() + b")"
            return head + failed, False


def main() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    shell = start()
    while True:
        header = requests.read(12)
        if len(header) < 12:
            return
        reply, ended = answer(shell, requests.read(int.from_bytes(header[:4], "big")))
        if ended:
            shell = start()
        replies.write(len(reply).to_bytes(4, "big") + header[4:] + reply)
        replies.flush()


if __name__ == "__main__":
    main()
