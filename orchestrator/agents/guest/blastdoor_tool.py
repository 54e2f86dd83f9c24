#!/usr/bin/env python3
"""The command `blastdoor` in an agent's chamber: tune the present state of the workspace, or submit it.

Standard library only, Python 3.9 up.
"""

import json
import os
import sys
import urllib.request

USAGE = 'usage: blastdoor tune | blastdoor submit "what you changed and why, in one line"\n'


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in ("tune", "submit"):
        sys.stderr.write(USAGE)
        return 2
    place = f"http://127.0.0.1:{os.environ['BLASTDOOR_PORT']}/blastdoor/{sys.argv[1]}"
    request = urllib.request.Request(place, " ".join(sys.argv[2:]).encode("utf-8", "replace"))
    with urllib.request.urlopen(request) as answer:  # noqa: S310  our own forwarder, on loopback
        code, text = json.load(answer)
    (sys.stdout if code == 0 else sys.stderr).write(text + "\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
