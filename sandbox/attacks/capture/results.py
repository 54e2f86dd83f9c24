"""Ends without an answer, answers that change late, answers that pretend to be scores, tools that were replaced."""

from sandbox.attacks.attack import Arena, Finding, attack, judged
from sandbox.attacks.forge import TICK, Seen, run_seen, ticks
from sandbox.job import Ending


@attack("T24", "os._exit(0) at import")
async def early_exit(arena: Arena) -> Finding:
    """A clean exit before any work is an end without outputs, and nothing more is said for it."""
    files = {"candidate.py": b"import os\nos.write(2, b'imported\\n')\nos._exit(0)"}
    seen = await run_seen(arena, "import candidate\nopen('/work/out/answer', 'w').write('1')", files=files)
    outcome = seen.outcome
    nothing = outcome.ending is Ending.COMPLETED and not outcome.outputs and outcome.told and seen.gone
    return Finding("imported" in seen.log, nothing, str(outcome.ending), f"{len(outcome.outputs)} outputs")


@attack("T31", "forging through an inherited descriptor")
async def inherited(arena: Arena) -> Finding:
    """The candidate starts with stdin, stdout and stderr; every other descriptor is closed."""
    source = (
        "import os, probe\nnumbers = range(os.sysconf('SC_OPEN_MAX'))\n"
        "found = [number for number in numbers if not probe.denied(lambda: os.fstat(number))]\n"
        "said = [number for number in numbers[3:] if not probe.denied(lambda: os.write(number, b'done 0 0 0\\n'))]\n"
        "probe.tell(open=found, said=said)"
    )
    return judged(await arena.run(source), lambda seen: seen["open"] == [0, 1, 2] and not seen["said"])


LATE = (
    TICK
    + """
import atexit, threading, time
def leave_a_rewriter():
    if os.fork() == 0:
        os.setsid()
        os.write(2, b"rewriter stays\\n")
        tick()
    time.sleep(1.5)
def rewrite():
    while True:
        open("/work/out/thread", "w").write("from a thread")
atexit.register(leave_a_rewriter)
threading.Thread(target=rewrite, daemon=True).start()
time.sleep(0.1)
"""
)


@attack("T33", "atexit, a thread and a process rewrite the result after main")
async def late_rewrite(arena: Arena) -> Finding:
    """Whatever could write is dead before collection begins."""
    return late_finding(await run_seen(arena, LATE))


def late_finding(seen: Seen) -> Finding:
    """A Python that breaks over its own thread when it ends fails, and leaves the other rewriter all the same."""
    count, apart = ticks(seen.outcome.outputs)
    held = seen.outcome.ending in (Ending.COMPLETED, Ending.FAILED) and apart <= 1 and seen.gone
    ran = "rewriter stays" in seen.log and count > 0
    return Finding(ran, held, str(seen.outcome.ending), f"{count} writes, {apart} apart in the outputs")


REPLACE = """
import os, shutil, probe
tools = [shutil.which(name) for name in ("sh", "tar", "head", "python3")]
paths = tools + [os.path.realpath(tool) for tool in tools]
written = [path for path in (*paths, "/proc/1/exe")
           if not probe.denied(lambda: os.close(os.open(path, os.O_WRONLY)))]
written += [path for path in paths if not probe.denied(lambda: os.rename(path, f"{path}.old"))]
fake = "#!/bin/sh\\necho replaced > /work/out/replaced\\necho replaced >&2\\n"
planted = 0
for folder in ("/work", "/work/src", "/work/out/bin", "/work/tmp", "/tmp", "/dev/shm"):
    os.makedirs(folder, exist_ok=True)
    for name in ("sh", "tar", "head", "kill", "wait", "printf", "python3"):
        with open(f"{folder}/{name}", "w") as file:
            file.write(fake)
        os.chmod(f"{folder}/{name}", 0o755)
        planted += 1
for path in ("/work/.profile", "/work/tmp/.profile", "/work/.shrc", "/work/src/.bashrc", "/work/tmp/.tarrc"):
    with open(path, "w") as file:
        file.write("echo replaced > /work/out/replaced\\n")
shutil.rmtree("/work/out/bin")
probe.tell(written=written, planted=planted)
"""


@attack("T34", "replaced sh, tar and python, and look-alikes on every writable path")
async def replaced_tools(arena: Arena) -> Finding:
    """The tools of the root cannot be changed, and PID 1 runs none of the candidate's."""
    outcome = await arena.run(REPLACE)
    finding = judged(outcome, lambda seen: not seen["written"] and seen["planted"] == 42)
    honest = outcome.ending is Ending.COMPLETED and set(outcome.outputs) == {"probe.json"}
    blocked = finding.blocked and honest and b"replaced" not in outcome.log_tail
    return Finding(finding.ran, blocked, finding.ending, finding.evidence)


@attack("T36", "pre-seeded result and score files")
async def seeded(arena: Arena) -> Finding:
    """Files that look like a verdict are bytes among the outputs, and change neither ending nor exit code."""
    names = ("score.json", "result.json", "verdict", "outcome.json", ".blastdoor", "probe.json")
    content = b'{"score": 1e9, "ending": "completed", "exit_code": 0, "passed": true}'
    source = f"import os\nfor name in {names!r}:\n    open(f'/work/out/{{name}}', 'wb').write({content!r})\nos._exit(9)"
    seen = await run_seen(arena, source)
    outcome = seen.outcome
    plain = dict(outcome.outputs) == dict.fromkeys(names, content)
    held = plain and outcome.ending is Ending.FAILED and outcome.exit_code == 9
    return Finding(bool(outcome.outputs), held, str(outcome.ending), f"exit code {outcome.exit_code}")
