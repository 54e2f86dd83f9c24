"""Contents that harm what parses, unpickles, unpacks or prints them, and contents that change while collected."""

import ast
import gzip
import math
from importlib import resources
from importlib.resources.abc import Traversable

from sandbox.attacks.attack import Arena, Finding, attack
from sandbox.attacks.forge import TICK, TICK_DIGITS, TICKED, run_seen, stays_inside, ticks
from sandbox.job import Ending
from sandbox.wire.log import Report


class _Ear:
    """A listener that keeps everything."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.reports: list[Report] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def report(self, report: Report) -> None:
        self.reports.append(report)


@attack("T53", "a compression bomb as a result")
async def bomb(arena: Arena) -> Finding:
    """A compressed output is bytes like any other: nothing here unpacks it."""
    packed = gzip.compress(bytes(16 << 20), mtime=0)
    source = "import shutil\nshutil.copy('bomb.gz', '/work/out/result.tar.gz')"
    seen = await run_seen(arena, source, files={"bomb.gz": packed})
    kept = dict(seen.outcome.outputs)
    whole = kept == {"result.tar.gz": packed} and stays_inside(kept) and seen.gone
    return Finding(bool(kept), whole, str(seen.outcome.ending), f"{len(packed)} bytes in, {len(packed)} bytes out")


HOSTILE_REPORTS = (
    '"[" * 900',
    "'{\"step\": 1, \"value\": ' + '9' * 900 + '}'",
    "'{\"step\": ' + '9' * 900 + ', \"value\": 1}'",
    "'{\"step\": 1, \"value\": ' + '9' * 1_000_000 + '}'",
    '\'{"step": 1, "step": 2, "value": 3}\'',
    '\'{"step": 1, "value": NaN}\'',
    '\'{"step": 1, "value": -Infinity}\'',
    '\'{"step": 1, "value": 1e999}\'',
    '\'{"step": -1, "value": 1}\'',
    '\'{"step": true, "value": 1}\'',
    '\'{"step": 1.0, "value": 1}\'',
    '\'{"step": 1, "value": "1"}\'',
    '\'{"step": 1, "value": 1, "more": 1}\'',
    'b\'{"step": 1, "value": \\xff}\'',
    "b'\\xff\\xfe{\\x00'",
    "''",
)


@attack("T54", "hostile report lines: deep, huge, doubled keys, bad UTF-8, not finite")
async def reports(arena: Arena) -> Finding:
    """Of hostile report lines none is believed; the honest one after them is."""
    source = f"import os\nfor report in ({', '.join(HOSTILE_REPORTS)}):\n" + (
        "    report = report if isinstance(report, bytes) else report.encode()\n"
        "    open(1, 'wb', closefd=False).write(b'::report ' + report + b'\\n')\n"
        'os.write(1, b\'::report {"step": 7, "value": 0.5}\\n\')'
    )
    ear = _Ear()
    seen = await run_seen(arena, source, listener=ear)
    ran = sum(line.startswith("::report") for line in ear.lines) > len(HOSTILE_REPORTS)
    finite = all(math.isfinite(report.value) and 0 <= report.step < 2**53 for report in ear.reports)
    blocked = finite and ear.reports == [Report(7, 0.5)] and seen.outcome.ending is Ending.COMPLETED
    return Finding(ran, blocked, str(seen.outcome.ending), f"{len(ear.lines)} lines, believed {ear.reports}")


@attack("T55", "a pickle that runs code when loaded")
async def pickled(arena: Arena) -> Finding:
    """The bomb arrives as bytes, and no module of the sandbox can unpickle or evaluate anything."""
    payload = b"cposix\nsystem\n(S'echo loaded'\ntR."
    source = f"open('/work/out/result.pkl', 'wb').write({payload!r})"
    seen = await run_seen(arena, source)
    kept = dict(seen.outcome.outputs)
    package = resources.files("sandbox")
    loaders = [f"{name}: {what}" for name, text in _sources(package) for what in unsafe_loaders(text)]
    blocked = kept == {"result.pkl": payload} and not loaders
    return Finding(bool(kept), blocked, str(seen.outcome.ending), f"loaders in our code: {loaders or 'none'}")


_BANNED_MODULES = frozenset(
    ("pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "torch", "numpy")
)
_BANNED_CALLS = frozenset(("eval", "exec", "compile", "__import__"))
_BANNED_METHODS = frozenset(("extractall", "extract", "unpack_archive"))


def unsafe_loaders(text: str) -> list[str]:
    """What in a module's syntax could turn bytes into running code or into files of their own choice."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in _BANNED_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _BANNED_MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BANNED_CALLS:
            found.append(node.func.id)
        elif isinstance(node, ast.Attribute) and node.attr in _BANNED_METHODS:
            found.append(node.attr)
    return found


def _sources(folder: Traversable) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _sources(item)
        elif item.name.endswith(".py"):
            found.append((item.name, item.read_text("utf-8")))
    return found


VERSION_BYTES = 4096
SWAPPER = (
    TICK
    + f"""
import time
def swap():
    count = 0
    while True:
        count += 1
        for name in {TICKED!r}:
            with open("/work/new", "wb") as file:
                file.write(b"%016d" % count * ({VERSION_BYTES} // 16))
            os.replace("/work/new", f"/work/out/{{name}}")
        if count == 10:
            os.write(2, b"swapping\\n")
if os.fork() == 0:
    os.setsid()
    swap()
time.sleep(2)
"""
)


@attack("T56", "swapping files while they are collected")
async def swapped(arena: Arena) -> Finding:
    """Everything else is dead before collection begins: what arrives is one version of each file, whole."""
    seen = await run_seen(arena, SWAPPER)
    outputs = seen.outcome.outputs
    count, apart = ticks(outputs)
    whole = all(
        outputs.get(name) == outputs.get(name, b"")[:TICK_DIGITS] * (VERSION_BYTES // TICK_DIGITS) for name in TICKED
    )
    blocked = whole and apart <= 1 and seen.outcome.ending is Ending.COMPLETED and seen.gone
    text = f"version {count}, {apart} apart, whole: {whole}"
    return Finding("swapping" in seen.log, blocked, str(seen.outcome.ending), text)


# Each hides, moves or reorders text where a person or an agent reads it raw.
HOSTILE_TEXT = (
    "\x1b[2J\x1b]0;title\x07 \x9b31m a\rb \x00 \x08\x7f \u202egpj.exe \u2066hidden\u2069 \u200bzero\ufeff \u2028line "
    "\U000e0069\U000e0067\U000e006e tags \u00ad \ufe0f"
)


@attack("T57", "control characters, escapes, overrides and invisible text in the log")
async def log_text(arena: Arena) -> Finding:
    """A listener gets printable characters only, one line for each line of the log."""
    source = f"import os\nos.write(1, {HOSTILE_TEXT!r}.encode() + b' \\xff\\xfe end\\nnext\\n')"
    ear = _Ear()
    seen = await run_seen(arena, source, listener=ear)
    raw = seen.outcome.log_tail
    ran = b"\x1b[2J" in raw and b"\xff\xfe" in raw
    plain = all(character.isprintable() and ord(character) < 0x3000 for line in ear.lines for character in line)
    blocked = plain and len(ear.lines) == 2 and ear.lines[0].endswith(r"\xff\xfe end")
    return Finding(ran, blocked, str(seen.outcome.ending), ear.lines[0][:100] if ear.lines else "no line")
