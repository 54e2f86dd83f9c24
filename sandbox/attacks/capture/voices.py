"""A candidate that speaks in PID 1's place, hears its orders, or gives it orders, through /proc.

None of it is prevented: what counts is that it ends as the candidate's own doing, never as the provider's (which would
be refunded), that nothing but bytes of its own is gained, and that the chamber is gone.
"""

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sandbox.attacks.attack import QUICK, Arena, Finding, attack
from sandbox.attacks.forge import END, FORGING, Seen, member, run_racing, run_seen
from sandbox.job import Ending
from sandbox.link import Deadlines
from sandbox.posture import FULL

GVISOR = "orders to PID 1 can be stolen there, but not written: the sentry holds only the reading end of its stdin"
SHORT_WALL = QUICK.model_copy(update={"wall": 6.0})


@dataclass(frozen=True, slots=True)
class Words:
    """What is said in PID 1's place, and the only endings that it may lead to."""

    title: str
    words: bytes
    endings: tuple[Ending, ...] = (Ending.PROTOCOL,)


WORDS = (
    Words("forged archive before its time", b"archive\n" + member(b"answer", b"42") + END),
    Words("forged failure of the delivery", b"unpacked 1\n"),
    Words("forged second greeting", b"blastdoor 1\nfact uid 0 0 0 0\nready\n"),
    Words("forged build that was never asked for", b"built 0 0 0\n"),
    Words("forged exit code that is no number", b"done -1 0 0\n"),
    Words("forged exit code of a thousand digits", b"done " + b"9" * 1000 + b"\n"),
    Words("forged exit code with more fields than there are", b"done 0 0 0 0\n"),
    Words("forged headers of the engine's stream", b"\x01\x00\x00\x00\x00\x00\x00\x0bdone 0 0 0\n" * 3),
    Words("forged word with control characters", b"\x1b[2Jdone\x00 0\r\n"),
    Words("forged end, then another", b"done 0 0 0\ndone 0 0 0\n"),
)


def _attempt(words: Words) -> Callable[[Arena], Coroutine[Any, Any, Finding]]:
    async def attempt(arena: Arena) -> Finding:
        source = "import forge, time\nforge.note('forging')\nforge.say(open('words', 'rb').read())\ntime.sleep(8)"
        seen = await run_racing(arena, source, files={"words": words.words}, limits=SHORT_WALL)
        held = seen.outcome.ending in words.endings and not seen.outcome.outputs and seen.gone
        return Finding(FORGING in seen.log, held, str(seen.outcome.ending), seen.outcome.reason[:100])

    return attempt


for _words in WORDS:
    attack("T78", _words.title, is_bytes=True)(_attempt(_words))


@attack("T78", "forged exit code")
async def exit_code(arena: Arena) -> Finding:
    """A forged exit code is believed as far as the candidate's word ever is: it gains a wrong answer at most."""
    source = (
        "import forge, os, time\nopen('/work/out/answer', 'w').write('wrong')\nforge.note('forging')\n"
        "forge.say(b'done 0 0 0\\n')\ntime.sleep(5)\nos._exit(7)"
    )
    seen = await run_seen(arena, source)
    outcome = seen.outcome
    held = outcome.ending is Ending.COMPLETED and dict(outcome.outputs) == {"answer": b"wrong"} and outcome.told
    text = f"told by the chamber: {outcome.told}, outputs {dict(outcome.outputs)}"
    return Finding(FORGING in seen.log, held and seen.gone, str(outcome.ending), text)


@attack("T78", "forged headers of the engine's stream in the log")
async def log_headers(arena: Arena) -> Finding:
    """Bytes that look like the engine's own framing stay a part of the log."""
    source = (
        "import os\nos.write(2, b'forging\\n' + b'\\x01\\0\\0\\0\\0\\0\\0\\x0bdone 0 0 0\\n' * 100)\n"
        "os.write(1, b'\\x02\\0\\0\\0\\xff\\xff\\xff\\xff')\nos._exit(5)"
    )
    seen = await run_seen(arena, source)
    held = seen.outcome.ending is Ending.FAILED and seen.outcome.exit_code == 5 and seen.gone
    return Finding(FORGING in seen.log, held, str(seen.outcome.ending), f"exit code {seen.outcome.exit_code}")


async def _with_short_collect(arena: Arena, source: str, **rest: Any) -> tuple[Seen, float]:
    """Run on a backend of its own whose patience for the outputs is five seconds."""
    patient = await arena.host.reopened(FULL, deadlines=Deadlines(collect=5.0), warm=0)
    try:
        started = time.monotonic()
        return await run_racing(patient, source, **rest), time.monotonic() - started
    finally:
        await patient.backend.close()


@attack("T78", "stolen orders, a whole forged archive, then silence", runsc=GVISOR)
async def silence(arena: Arena) -> Finding:
    """Outputs that never end are late by our own clock: the candidate's doing, and the chamber is gone."""
    archive = member(b"answer", b"forged") + END
    source = "import forge, time\nforge.hand_over(open('archive', 'rb').read())\ntime.sleep(60)"
    seen, took = await _with_short_collect(arena, source, files={"archive": archive})
    outcome = seen.outcome
    held = outcome.ending is Ending.TIMED_OUT and not outcome.outputs and not outcome.told and took < 60
    return Finding(FORGING in seen.log, held and seen.gone, str(outcome.ending), outcome.reason)


@attack("T78", "stolen orders, a forged archive, then PID 1's own", runsc=GVISOR + "; there, its own never comes")
async def two_archives(arena: Arena) -> Finding:
    """A forged archive followed by the true one is refused: there is only one."""
    archive = member(b"answer", b"forged") + END
    source = (
        "import forge, time\nto = forge.deafen()\nforge.say(b'archive\\n' + open('archive', 'rb').read(), to)\n"
        "forge.order(b'\\nharvest\\n')\ntime.sleep(60)"
    )
    seen, took = await _with_short_collect(arena, source, files={"archive": archive})
    outcome = seen.outcome
    wanted = Ending.TIMED_OUT if arena.is_gvisor else Ending.OUTPUT_REFUSED
    held = outcome.ending is wanted and not outcome.outputs and took < 60
    return Finding(FORGING in seen.log, held and seen.gone, str(outcome.ending), outcome.reason)


@attack("T78", "the candidate orders the collection itself", runsc=GVISOR)
async def own_orders(arena: Arena) -> Finding:
    """An archive that nobody asked for is a broken protocol; where orders cannot be written, nothing happens."""
    source = (
        "import forge, os, time\nopen('/work/out/answer', 'w').write('early')\nforge.note('forging')\n"
        "written = forge.order(b'harvest\\n')\nforge.note(f'written {written}')\ntime.sleep(0.5)\nos._exit(6)"
    )
    seen = await run_seen(arena, source)
    outcome = seen.outcome
    if "written False" in seen.log:
        held = arena.is_gvisor and outcome.ending is Ending.FAILED and outcome.exit_code == 6
    else:
        held = outcome.ending is Ending.PROTOCOL and not outcome.outputs
    return Finding(FORGING in seen.log, held and seen.gone, str(outcome.ending), outcome.reason)


HOLD = """
import os, signal, time, forge
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    held = [os.open(forge._pipe(0), os.O_RDWR | os.O_NONBLOCK)]
    forge.note("forging: stdin is held open")
    time.sleep(60)
time.sleep(60)
"""


@attack("T78", "holding PID 1's stdin open for writing", runsc="the descriptor can be had there, but not written to")
async def held_stdin(arena: Arena) -> Finding:
    """PID 1 that never sees the end of its orders is killed with its chamber all the same."""
    seen = await run_seen(arena, HOLD, limits=SHORT_WALL)
    held = seen.outcome.ending is Ending.TIMED_OUT and not seen.outcome.told and seen.gone
    return Finding(FORGING in seen.log, held, str(seen.outcome.ending), seen.outcome.reason)
