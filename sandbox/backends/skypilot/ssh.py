"""What SkyPilot's own connections leave open: a machine's words on our terminal; our agent, display, ports to reach."""

import functools
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.environment import SKYPILOT, child_environment
from sandbox.errors import Refused
from sandbox.wire.log import printable

PROGRAMS = ("ssh", "rsync")
_NOBODYS_HOST = "192.0.2.1"  # kept free for documentation; nothing is connected
_READ_S = 30.0
_WORDS_BLOCKS = 512  # of 512 bytes in a POSIX shell, of 1,024 in others

# What ssh says of a setting that hands over nothing, what it would hand over, and its name in ~/.ssh/config.
_FORWARDED = {
    "forwardagent": ("no", "your agent", "ForwardAgent"),
    "forwardx11": ("no", "your display", "ForwardX11"),
    "remoteforward": ("", "a port of yours", "RemoteForward"),
}


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


def without_forwarding(options: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Whatever ~/.ssh/config says: who breaks out on a machine must reach neither our agent nor display nor ports.

    SkyPilot's tunnels to machines are its server's, in a process of its own; commands and copies need none.
    """
    closed = ["-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "ClearAllForwardings=yes"]

    @functools.wraps(options)
    def with_no_forwarding(*words: Any, **wanted: Any) -> list[str]:
        return [*closed, *options(*words, **wanted)]

    return with_no_forwarding


def refuse_without_programs() -> None:
    """SkyPilot itself would notice when a machine is there, and paid for."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise Refused(
            f"SkyPilot reaches what it rents by {' and '.join(PROGRAMS)}, and this machine has no {', '.join(missing)};"
            " install it first (on Debian: apt-get install openssh-client rsync)"
        )


def refuse_forwarding() -> None:
    """SkyPilot's server connects too, with options of its own. By ssh's own word for a host that nobody named."""
    told = subprocess.run(
        ["ssh", "-G", _NOBODYS_HOST],
        env=child_environment(SKYPILOT),
        capture_output=True,
        text=True,
        timeout=_READ_S,
        check=False,
    )
    lines = [line.partition(" ") for line in told.stdout.splitlines()]
    answers = {setting: value for setting, _, value in lines}
    if told.returncode or "forwardagent" not in answers:
        raise Refused("ssh cannot read its settings; run ssh -G example to see why")
    for setting, (kept, what, name) in _FORWARDED.items():
        if answers.get(setting, kept) != kept:
            raise Refused(
                f"ssh is set to hand {what} to every machine ({name}), and SkyPilot's server would do so; "
                "in ~/.ssh/config, name the hosts that need it"
            )
