"""Keeps one shell and runs a line in it for every request; runs inside the chamber, standard library only."""

import os
import subprocess
from pathlib import Path

MARK = b"\n\x00blastdoor "
LINE = Path("/work/tmp/line")


def start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def answer(shell: "subprocess.Popen[bytes]", line: bytes, file: Path = LINE) -> bytes:
    """The line's exit code, "left" behind it where it ended the shell, then a newline and what was printed.

    The line is sourced, so that `cd` and variables stay.
    """
    assert shell.stdin  # noqa: S101  # both are pipes
    assert shell.stdout  # noqa: S101  # like stdin
    file.write_bytes(line + b"\n")
    shell.stdin.write(b". %s </dev/null; printf '\\n\\000blastdoor %%d\\n' $?\n" % bytes(file))
    shell.stdin.flush()
    said = b""
    while True:
        piece = os.read(shell.stdout.fileno(), 65536)
        said += piece
        if not piece:
            code = shell.wait()
            return b"%d left\n" % (128 - code if code < 0 else code) + said
        head, mark, code_line = said.rpartition(MARK)
        if mark and code_line.endswith(b"\n"):
            return code_line + head


def main() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    shell = start()
    while True:
        header = requests.read(12)
        if len(header) < 12:
            return
        reply = answer(shell, requests.read(int.from_bytes(header[:4], "big")))
        replies.write(len(reply).to_bytes(4, "big") + header[4:] + reply)
        replies.flush()


if __name__ == "__main__":
    main()
