"""SkyPilot's own connections to a hostile machine: what it says, and what of ours it could reach."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.skypilot.ssh import last_line, refuse_forwarded_agent
from sandbox.errors import Refused, SandboxError, Unavailable


@pytest.fixture
def hostile_ssh(sdk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """SkyPilot's own connection, with an ssh before it that notes its words and shouts on stderr."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f'#!/bin/bash\nprintf "%s\\n" "$@" >>{tmp_path}/words\n'
        'printf "\\033]0;owned\\007 and a flood" >&2\neval "${@: -1}"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    (tmp_path / "key").write_text("")

    class Handle:
        def get_command_runners(self) -> list[Any]:
            return [sdk.command_runner.SSHCommandRunner(("127.0.0.1", 9), "nobody", str(tmp_path / "key"))]

    provisioner = sdk.SkyPilot()
    provisioner._handles["c"] = Handle()
    return provisioner


async def test_a_machines_stderr_stays_away_from_our_terminal(
    hostile_ssh: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever a machine writes beside what was asked for, nothing of it reaches a person."""
    assert await hostile_ssh.call("c", "echo hi; echo oops >&2", 100, 20) == (0, b"hi\n")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


async def test_a_flood_while_we_send_ends_it(hostile_ssh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a machine says to rsync is kept up to a size, and not in memory; who says more has lost the connection."""
    (tmp_path / "bin" / "ssh").write_text("#!/bin/sh\nyes flood >&2\n")
    kept: list[int] = []

    def measured(words: Path) -> str:
        kept.append(words.stat().st_size)
        return last_line(words)

    monkeypatch.setattr("sandbox.backends.skypilot.sdk.last_line", measured)
    (tmp_path / "folder").mkdir()
    with pytest.raises(Unavailable, match=r"send: rsync ended with \d+: flo"):
        await hostile_ssh.send("c", tmp_path / "folder", "/nowhere", 60)
    assert 100_000 < kept[0] < 1_000_000


async def test_no_connection_of_ours_hands_over_the_agent(hostile_ssh: Any, tmp_path: Path) -> None:
    """Neither a command nor a copy, before anything that the account's own settings could say."""
    await hostile_ssh.call("c", "echo hi", 100, 20)
    words = (tmp_path / "words").read_text().splitlines()
    assert words.index("ForwardAgent=no") < words.index("nobody@127.0.0.1")
    (tmp_path / "words").unlink()
    (tmp_path / "folder").mkdir()
    with pytest.raises(SandboxError):
        await hostile_ssh.send("c", tmp_path / "folder", "/nowhere", 2)
    assert "ForwardAgent=no" in (tmp_path / "words").read_text().splitlines()


@pytest.mark.parametrize(
    ("said", "why"),
    [("forwardagent no", None), ("forwardagent yes", "hand your agent"), ("user nobody", "can not read its settings")],
)
def test_an_agent_for_every_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, why: str | None) -> None:
    """SkyPilot's server connects with options of its own: where ssh is set to forward to any host, we rent nothing."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho port 22\necho {said}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    if why is None:
        refuse_forwarded_agent()
    else:
        with pytest.raises(Refused, match=why):
            refuse_forwarded_agent()
