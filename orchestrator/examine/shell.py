"""A shell inside a chamber like a trial's. There is no terminal in there: a line goes in, its output comes back."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from orchestrator.change import Tree
from orchestrator.domain.verdict import Mode
from orchestrator.loop.jobs import bundle_of, together
from orchestrator.loop.workbench import Parts
from sandbox import Bundle, Channel, ChannelClosed
from sandbox import Mode as JobMode

_SERVER = ".blastdoor_shell.py"
Ask = Callable[[str], Awaitable[str | None]]


async def run_shell(
    parts: Parts, tree: Tree, wall_s: float, ask: Callable[[], Awaitable[str | None]], say: Callable[[bytes], None]
) -> str:
    """Until `ask` gives no more lines or the chamber ends; the reason, for a person. The image needs python3."""
    job = parts.jobs.trial(Mode.SUBMIT)
    limits = job.limits.model_copy(update={"wall": wall_s})
    job = job.model_copy(update={"mode": JobMode.RELAY, "build": (), "command": ("python3", _SERVER), "limits": limits})
    server = (Path(__file__).parent / "guest" / "shell_server.py").read_bytes()

    async def talk(channel: Channel) -> None:
        while (line := await ask()) is not None:
            try:
                say((await channel.call(line.encode(), wall_s)).payload)
            except ChannelClosed:
                return

    async with await parts.door.backend.open(job) as chamber:
        outcome = await chamber.run(together(bundle_of(tree), Bundle({_SERVER: server})), talk=talk)
    return outcome.why or outcome.ending.value
