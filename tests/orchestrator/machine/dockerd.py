"""A daemon that only says that it is there: its environment is in a file beside its socket, and SIGTERM ends it."""

import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path


def main(words: list[str]) -> None:
    address = words[words.index("--host") + 1].removeprefix("unix://")
    if "full" in Path(words[words.index("--data-root") + 1]).parts:
        sys.exit("failed to start daemon: write /data: no space left on device")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Path(words[words.index("--pidfile") + 1]).write_text(str(os.getpid()))
    Path(address).with_name("environment.json").write_text(json.dumps(dict(os.environ)))
    running = Path(address).with_name("containers")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        Path(address).chmod(0o666)
        server.listen()
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):  # a caller may only look whether we listen
                asked = connection.recv(1 << 16)
                body = running.read_bytes() if b"/containers/json" in asked and running.exists() else b"[]"
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)


main(sys.argv[1:])
