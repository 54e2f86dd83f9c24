"""A shell inside a chamber like a trial's. There is no terminal in there: a line goes in, its output comes back."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.change import Tree
from orchestrator.domain.verdict import Mode
from orchestrator.loop.jobs import bundle_of, together
from orchestrator.loop.workbench import Parts
from sandbox import Bundle, Channel, ChannelClosed
from sandbox import Mode as JobMode

_SERVER = ".blastdoor_shell.py"


@dataclass(frozen=True)
class Answer:
    """What a line printed and its exit code, the chamber's own words both; `left` where it ended the shell."""

    output: bytes
    code: int
    left: bool = False


@dataclass(frozen=True)
class ShellEnd:
    """`code` is that of the last line, None where the chamber ended before it answered; `reason` is for a person."""

    code: int | None
    reason: str


def read_answer(payload: bytes) -> Answer:
    """Whatever is not as our own server writes it is output, and a failure."""
    head, _, output = payload.partition(b"\n")
    code, _, rest = head.partition(b" ")
    if not code.isdigit() or len(code) > 3 or rest not in (b"", b"left"):
        return Answer(payload, 1)
    return Answer(output, min(int(code), 255), rest == b"left")


async def run_shell(
    parts: Parts, tree: Tree, wall_s: float, ask: Callable[[], Awaitable[str | None]], say: Callable[[Answer], None]
) -> ShellEnd:
    """Until `ask` gives no more lines, the shell exits or the chamber ends. The image needs python3."""
    job = parts.jobs.trial(Mode.SUBMIT)
    limits = job.limits.model_copy(update={"wall": wall_s})
    job = job.model_copy(update={"mode": JobMode.RELAY, "build": (), "command": ("python3", _SERVER), "limits": limits})
    server = (Path(__file__).parent / "guest" / "shell_server.py").read_bytes()
    code: int | None = 0

    async def talk(channel: Channel) -> None:
        nonlocal code
        while (line := await ask()) is not None:
            code = None
            try:
                answer = read_answer((await channel.call(line.encode(), wall_s)).payload)
            except ChannelClosed:
                return
            code = answer.code
            say(answer)
            if answer.left:
                return

    async with await parts.door.backend.open(job) as chamber:
        outcome = await chamber.run(together(bundle_of(tree), Bundle({_SERVER: server})), talk=talk)
    return ShellEnd(code, outcome.why or outcome.ending.value)
