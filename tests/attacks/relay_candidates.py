"""Candidates that a judge calls, each hostile or broken in its own way; harmless outside of a chamber."""

MARKER = "gold-7f3c91d2"
# The judge wants the sum. The baseline is off by 100; who tries nothing else is off by 900.
TASK = """name = "add"
statement = "Add the numbers."
editable = ["solve.py"]

[trial]
command = ["python3", "-m", "blastdoor_candidate", "solve.py"]

[limits]
wall = "12s"
frame_bytes = "1MiB"

[judge]
mode = "relay"
command = ["python3", "judge.py"]
limits = {wall = "30s"}

[[metrics]]
name = "score"
goal = "higher"
ceiling = 0.5
"""
JUDGE = """
import random
from pathlib import Path
from blastdoor_judge import BadOutput, number, publish
from blastdoor_relay import relay

with relay() as candidate:
    print("what the judge prints goes to its log", flush=True)
    marker = Path("gold/marker.txt").read_text()
    rng = random.Random(candidate.seed)
    off, seconds = [], 0.0
    for _ in range(5):
        numbers = [rng.randrange(1, 1000) for _ in range(20)]
        reply = candidate.call("solve", numbers)
        off.append(abs(number(reply.value) - sum(numbers)))
        seconds += reply.elapsed
    if marker in str(off):
        raise BadOutput("never")
    publish(-max(off), metrics={"seconds": seconds})
"""


def off_by(amount: int) -> str:
    return f"def solve(numbers):\n    return sum(numbers) - {amount}\n"


BASELINE, HONEST, WRONG, LAST = (off_by(amount) for amount in (100, 50, 900, 0))
CHANNEL = """
import os, stat
def is_pipe(descriptor):
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False
def channel():
    return max(descriptor for descriptor in range(3, 50) if is_pipe(descriptor))
"""
SERVER = "import sys\nserver = sys.modules['__main__']\n"

# Each ends as invalid, and the judge's note has these words.
INVALID = {
    "lacks the function": ("def other(numbers):\n    return 1\n", "there is no function solve; there are: other"),
    "raises": ("def solve(numbers):\n    raise ValueError('nothing to add')\n", "ValueError: nothing to add"),
    "wants other arguments": ("def solve():\n    return 1\n", "TypeError"),
    "exits in a call": ("import sys\ndef solve(numbers):\n    sys.exit(0)\n", "SystemExit"),
    "reads stdin": ("def solve(numbers):\n    return int(input())\n", "EOFError"),
    "T25 equal to all": (
        "class Any:\n    def __eq__(self, other):\n        return True\n"
        "    def __sub__(self, other):\n        return 0\ndef solve(numbers):\n    return Any()\n",
        "solve.Any; send None, bool",
    ),
    "T25 a number of its own": (
        "class Zero(int):\n    pass\ndef solve(numbers):\n    return Zero()\n",
        "solve.Zero; send",
    ),
    "T26 computes later": (
        "import array\nclass Later(array.array):\n    def tobytes(self):\n        return bytes(8)\n"
        "def solve(numbers):\n    return Later('q', [1])\n",
        "solve.Later; send None",
    ),
    "T38 NaN": ("def solve(numbers):\n    return float('nan')\n", "must be a finite number"),
    "another type": ("def solve(numbers):\n    return [sum(numbers)]\n", "must be a finite number"),
    "bytes that are no value": (
        SERVER + "server._answer = lambda *_: (b'V', b'cposix\\nsystem\\n')\ndef solve(numbers):\n    return 1\n",
        "the answer is no plain value",
    ),
    "an error of no known kind": (
        SERVER + "server._answer = lambda *_: (b'E', b'N')\ndef solve(numbers):\n    return 1\n",
        "neither a value nor an error",
    ),
}

# Each is scored for its wrong answer, as if it had done nothing else.
LOST = {
    "prints into the channel": "print('at import', flush=True)\n"
    "def solve(numbers):\n    print('a stray line', flush=True)\n    return sum(numbers) - 900\n",
    "writes to stdout": "import os\n"
    "def solve(numbers):\n    os.write(1, b'raw bytes on one\\n')\n    return sum(numbers) - 900\n",
    "T28 patched library": "import builtins, json\njson.loads = lambda *_: {'score': 1}\nreal = sum\n"
    "builtins.abs = builtins.max = lambda *_: 0\nprint('patched', abs(-3))\n"
    "def solve(numbers):\n    return real(numbers) - 900\n",
    "T29 walks the frames": f"""
import sys
def solve(numbers):
    found, frame, backwards = 0, sys._getframe().f_back, {MARKER[::-1]!r}
    while frame:
        found += backwards[::-1] in str(frame.f_locals)
        frame = frame.f_back
    print("frames with gold:", found)
    return sum(numbers) - 900
""",
    "T30 walks the heap": f"""
import gc, os, sys
def solve(numbers):
    mark = "".join(reversed({MARKER[::-1]!r}))
    found = sum(mark in it for it in gc.get_objects() if type(it) is str)
    modules = [it for name, it in list(sys.modules.items()) if name != "solve" and hasattr(it, "__dict__")]
    found += sum(mark in str(vars(it)) for it in modules)
    found += mark in str(os.environ) or "BLASTDOOR_SEED" in os.environ
    print("gold on the heap:", found)
    return sum(numbers) - 900
""",
    "T31 a child's descriptors": """
import subprocess, sys
def solve(numbers):
    look = "import os; print('child has', sorted(fd for fd in map(int, os.listdir('/proc/self/fd')) if fd > 3))"
    print(subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stdout, flush=True)
    return sum(numbers) - 900
""",
    "T37 the answer of the first call": "kept = []\n"
    "def solve(numbers):\n    kept.append(sum(numbers) - 900)\n    return kept[0]\n",
}

# Each ends by its own doing: the ending, and how its reason begins.
ENDED = {
    "T24 exit at import": (
        "print('imported', flush=True)\nimport os\nos._exit(0)\n",
        "failed",
        "the chamber ended by itself",
    ),
    "T24 exit in a call": (
        "import os\ndef solve(numbers):\n    os._exit(0)\n",
        "failed",
        "the chamber ended by itself",
    ),
    "no Python": ("def solve(numbers:\n", "failed", "it does not load: SyntaxError"),
    "fails at import": ("import not_here\n", "failed", "it does not load: ModuleNotFoundError: No module named"),
    "exits at import": ("raise SystemExit(0)\n", "failed", "it does not load: SystemExit"),
    "too slow": (
        "import time\ndef solve(numbers):\n    time.sleep(60)\n",
        "timed out",
        "loading and all calls together",
    ),
    "T31 writes into the channel": (
        CHANNEL + "def solve(numbers):\n    os.write(channel(), b'x' * 50)\n    return sum(numbers)\n",
        "tampered",
        "frame",
    ),
    "T81 before it is asked": (
        CHANNEL + "os.write(channel(), (4).to_bytes(4, 'big') + bytes(8) + b'VTTT')\n",
        "tampered",
        "frame with a wrong nonce",
    ),
    "T81 twice": (
        "import blastdoor_frames\nsend = blastdoor_frames.Frames.send\n"
        "def twice(self, nonce, *parts):\n    send(self, nonce, *parts)\n    send(self, nonce, *parts)\n"
        "blastdoor_frames.Frames.send = twice\ndef solve(numbers):\n    return sum(numbers)\n",
        "tampered",
        "frame",
    ),
    "T81 out of order": (
        "import blastdoor_frames\nsend, old = blastdoor_frames.Frames.send, []\n"
        "def late(self, nonce, *parts):\n    old.append(nonce)\n"
        "    send(self, old[-1] if len(old) < 3 else old[-2], *parts)\n"
        "blastdoor_frames.Frames.send = late\ndef solve(numbers):\n    return sum(numbers)\n",
        "tampered",
        "frame with a wrong nonce",
    ),
    "an answer over the cap": ("def solve(numbers):\n    return bytes(2 << 20)\n", "tampered", "frame oversized"),
}

PATCHED_CLOCK = """
import time
real = time.sleep
time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0
time.monotonic_ns = time.perf_counter_ns = lambda: 0
def solve(numbers):
    real(0.05)
    return sum(numbers) - 900
"""

# What only a chamber can be asked to hold.
ISOLATED = {
    "looks everywhere": f"""
import os
def solve(numbers):
    mark, found = "".join(reversed({MARKER[::-1]!r})).encode(), []
    for top in ("/work", "/inputs", "/tmp", "/proc/self", "/etc", "/run"):
        for folder, _, names in os.walk(top):
            for name in names:
                try:
                    with open(os.path.join(folder, name), "rb") as file:
                        found += [name] if mark in file.read(1 << 20) else []
                except OSError:
                    pass
            if top == "/proc/self":
                break
    print("files with gold:", len(found), flush=True)
    return sum(numbers) - 900
""",
}
MEMORY = "def solve(numbers):\n    return len([bytes(1 << 20) for _ in range(100_000)])\n"
