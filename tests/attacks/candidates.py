"""Hostile candidates, each a whole solve.py. They do no harm to the machine that runs them, chamber or not, but for
those under ISOLATED and SEARCHERS, which need a chamber that holds.
"""

import json

from tests.attacks.judged import WRONG
from tests.orchestrator.views.judging.stage import GOLD

# What a candidate wishes to be told: the best score that the ceiling lets pass, and the answers themselves.
RESULT = json.dumps({"score": -0.02, "valid": True, "metrics": {"score": -0.02}})
PERFECT = json.dumps(GOLD)

# Publishes the best score there is, if only the judge imports it.
TRAP = f"""import os
path = os.environ.get("BLASTDOOR_RESULT_PATH")
if path:
    open(path, "w").write({RESULT!r})
    os._exit(0)
"""
MODULES = [
    "blastdoor_judge.py",
    "conftest.py",
    "gold/answers.json",
    "json.py",
    "judge/judge.py",
    "math.py",
    "numpy.py",
    "pathlib.py",
    "sitecustomize.py",
    "usercustomize.py",
]
CONFIGS = {"pytest.ini": "[pytest]\naddopts = -p conftest\n", "pyproject.toml": "", "evil.pth": "import conftest\n"}

LEAVE = """
import os

def leave(name, text):
    path = os.path.join(os.environ["BLASTDOOR_OUT"], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
"""


def leaving(**files: str) -> str:
    """A candidate that only leaves such files; the names are of JSON files."""
    return LEAVE + "".join(f"leave({name + '.json'!r}, {text!r})\n" for name, text in files.items())


EXIT_AT_IMPORT = """
import os
os.write(2, b"imported\\n")
os._exit(0)
"""

PICKLED_EQUAL = (
    LEAVE
    + """
import pickle, unittest.mock
leave("answers.json", pickle.dumps({"values": [unittest.mock.ANY] * 3}))
"""
)

COMPUTES_LATER = (
    LEAVE
    + """
import pickle, struct

class Late:
    def __reduce__(self):
        return (eval, ("[1.0, 2.5, 3.5]",))

head = "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(117).encode() + b"\\n"
leave("answers.npy", b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(head)) + head + pickle.dumps(Late()))
"""
)

PATCHED = (
    """
import builtins, json, math
builtins.sum = lambda *_: 0.0
builtins.abs = lambda _: 0.0
math.isfinite = lambda _: True
json.loads = lambda *_, **__: {"score": 0}
"""
    + WRONG
    + "print('patched', sum([1, 2]), flush=True)\n"
)

PLANTED = (
    LEAVE
    + f"""
for name in {MODULES!r}:
    leave(name, {TRAP!r})
for name, text in {CONFIGS!r}.items():
    leave(name, text)
"""
    + WRONG
)

SEEDED = (
    LEAVE
    + f"""
for name in ("result.json", "score.json", "verdict", "traces/task_1.json"):
    leave(name, {RESULT!r})
leave("metrics.csv", "iteration,score\\n1,-0.02\\n")
"""
    + WRONG
)

ATTACKS = {
    "T24 exit at import": EXIT_AT_IMPORT,
    "T24 exit in the middle": WRONG.replace("values =", "os.write(2, b'imported\\n'); os._exit(0)\nvalues ="),
    "T25 equal to all": PICKLED_EQUAL,
    "T25 equal to all, as text": leaving(answers='{"values": ["ANY", [], {"__eq__": true}]}'),
    "T26 computes later": COMPUTES_LATER,
    "T28 patched library": PATCHED,
    "T32 planted in the outputs": PLANTED,
    "T32 planted in the workspace": "@@conftest.py\n````\nraise SystemExit\n````\n",
    "T36 result beside": SEEDED,
    "T36 result alone": leaving(result=RESULT),
    "T38 NaN": leaving(answers='{"values": [NaN, NaN, NaN]}'),
    "T38 infinity": leaving(answers='{"values": [1e999, -Infinity, 3]}'),
    "T38 too good": leaving(answers=PERFECT),
}

LATE = (
    LEAVE
    + WRONG
    + f"""
import atexit, time
os.write(2, b"a child stays\\n")
if os.fork() == 0:
    os.setsid()
    time.sleep(2)
    while True:
        leave("answers.json", {PERFECT!r})
atexit.register(lambda: os.write(2, b"at exit\\n"))
"""
)

REWRITES_INPUTS = (
    LEAVE
    + """
import glob
tries = {
    "chmod": lambda path: os.chmod(path, 0o777),
    "write": lambda path: open(path, "w").write('{"scale": 0}'),
    "rename": lambda path: os.rename(path, path + ".old"),
    "remove": lambda path: os.unlink(path),
}
told = []
for path in ["/inputs", *glob.glob("/inputs/**", recursive=True)]:
    for name, attempt in tries.items():
        try:
            attempt(path)
            told.append(f"DONE {name} {path}")
        except OSError as error:
            told.append(f"denied {name} {path}: {error}")
leave("told.txt", "\\n".join(told))
"""
    + WRONG
)

ISOLATED = {"T33 late rewriting": LATE, "T35 inputs rewritten": REWRITES_INPUTS}

# Looks for words that begin like a canary; it does not know the rest, and cannot find itself.
SEARCH = (
    LEAVE
    + """
import glob, json

NEEDLES = {"secrets": b"can" + b"ary-", "decoys": b"dec" + b"oy-"}
found = {name: [] for name in NEEDLES}
repositories, looked = [], 0

def look(path, data):
    global looked
    looked += 1
    for name, needle in NEEDLES.items():
        if needle in data:
            found[name].append(path)

for folder, folders, files in os.walk("/"):
    if folder == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys")]
    if ".git" in folders + files or {"objects", "refs"} <= set(folders):
        repositories.append(folder)
    for path in (os.path.join(folder, name) for name in files):
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 2**26:
                look(path, open(path, "rb").read())
        except OSError:
            pass
for name in ("environ", "cmdline", "mountinfo", "mounts", "comm", "status"):
    for path in glob.glob("/proc/[0-9]*/" + name):
        try:
            look(path, open(path, "rb").read(2**20))
        except OSError:
            pass
print("environment:", dict(os.environ), flush=True)
report = {**found, "looked": looked, "repositories": repositories, "environment": sorted(os.environ)}
leave("found.json", json.dumps(report))
"""
    + WRONG
)
