"""What SkyPilot's own connections leave open: a machine's words on our terminal, and our agent within its reach."""

import functools
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.errors import Refused
from sandbox.wire.log import printable

_NOBODYS_HOST = "192.0.2.1"  # kept free for documentation; nothing is connected
_READ_S = 30.0
_WORDS_BLOCKS = 512  # of 512 bytes in a POSIX shell, of 1,024 in others


def unheard(runner: Any) -> Any:
    """SkyPilot leaves a command's stderr to our terminal: a machine's words go nowhere but to where we read them."""
    base = runner.ssh_base_command
    # A part of the line that a shell of ours gets; a redirection may stand between any two words.
    runner.ssh_base_command = lambda **wanted: [*base(**wanted), "2>/dev/null"]
    return runner


def brief(runner: Any, words: Path) -> Any:
    """SkyPilot keeps all that rsync says in memory, and much of it is the machine's: a file takes it, up to a size.

    Who says more is ended by the kernel. rsync writes nothing else on this side, so the limit hits nothing else.
    """
    limited = f"ulimit -f {_WORDS_BLOCKS} && >{shlex.quote(str(words))} 2>&1"
    runner._rsync = functools.partial(runner._rsync, prefix_command=limited)
    return runner


def last_line(words: Path) -> str:
    """What rsync said in the end; empty when it said nothing."""
    lines = words.read_bytes().splitlines() if words.exists() else []
    return printable(lines[-1])[:300] if lines else ""


def without_agent(options: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Whatever ~/.ssh/config says: who breaks out on a machine must not sign with the keys in our agent."""

    @functools.wraps(options)
    def with_no_agent(*words: Any, **wanted: Any) -> list[str]:
        return ["-o", "ForwardAgent=no", *options(*words, **wanted)]

    return with_no_agent


def refuse_forwarded_agent() -> None:
    """SkyPilot's server connects too, with options of its own. By ssh's own word for a host that nobody named."""
    told = subprocess.run(["ssh", "-G", _NOBODYS_HOST], capture_output=True, text=True, timeout=_READ_S, check=False)
    answers = [line.partition(" ")[2] for line in told.stdout.splitlines() if line.startswith("forwardagent ")]
    if told.returncode or not answers:
        raise Refused("ssh can not read its settings; run ssh -G example to see why")
    if answers != ["no"]:
        raise Refused(
            "ssh is set to hand your agent to every machine (ForwardAgent), and SkyPilot's server would do so; "
            "in ~/.ssh/config, name the hosts that need it"
        )
