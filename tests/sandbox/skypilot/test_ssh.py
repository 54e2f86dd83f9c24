"""SkyPilot's own connections to a hostile machine: what it says, and what of ours it could reach."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.skypilot.ssh import last_line, refuse_forwarding, without_forwarding
from sandbox.errors import Denied, Refused, SandboxError, Unavailable

CLOSED = {"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes"}


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
    # What fails is tried again, after seconds.
    monkeypatch.setattr(sdk.command_runner.common_utils.Backoff, "current_backoff", lambda _: 0.0)

    class Handle:
        def get_command_runners(self) -> list[Any]:
            return [sdk.command_runner.SSHCommandRunner(("127.0.0.1", 9), "nobody", str(tmp_path / "key"))]

    provisioner = sdk.SkyPilot()
    provisioner.handles["c"] = Handle()
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


async def test_no_connection_of_ours_forwards_anything(hostile_ssh: Any, tmp_path: Path) -> None:
    """Neither a command nor a copy, before anything that the account's own settings could say."""
    await hostile_ssh.call("c", "echo hi", 100, 20)
    words = (tmp_path / "words").read_text().splitlines()
    assert all(words.index(option) < words.index("nobody@127.0.0.1") for option in CLOSED)
    (tmp_path / "words").unlink()
    (tmp_path / "folder").mkdir()
    with pytest.raises(SandboxError):
        await hostile_ssh.send("c", tmp_path / "folder", "/nowhere", 2)
    assert set((tmp_path / "words").read_text().splitlines()) >= CLOSED


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("forwardagent no\nforwardx11 no", None),
        ("forwardagent yes\nforwardx11 no", "hand your agent"),
        ("forwardagent no\nforwardx11 yes", "hand your display"),
        ("forwardagent no\nremoteforward 9000 [localhost]:5432", "hand a port of yours"),
        ("user nobody", "cannot read its settings"),
    ],
)
def test_what_ssh_forwards_to_every_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, why: str | None
) -> None:
    """SkyPilot's server connects with options of its own: where ssh is set to forward to any host, we rent nothing."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho port 22\ncat <<.\n{said}\n.\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    if why is None:
        refuse_forwarding()
    else:
        with pytest.raises(Refused, match=why):
            refuse_forwarding()


def test_ssh_itself_says_so(tmp_path: Path) -> None:
    """The words that we look for are the genuine ssh's, and the options that we give close what settings open."""
    (tmp_path / "config").write_text("ForwardX11 yes\nForwardAgent yes\nRemoteForward 9000 localhost:5432\n")
    asked = ["ssh", "-F", str(tmp_path / "config"), "-G", "192.0.2.1"]
    opened = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"forwardagent yes", "forwardx11 yes"} < set(opened)
    assert any(line.startswith("remoteforward ") for line in opened)
    closed = ["ssh", *without_forwarding(list)(), *asked[1:]]
    told = subprocess.run(closed, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"forwardagent no", "forwardx11 no", "clearallforwardings yes"} < set(told)


async def test_t62_nothing_that_skypilot_starts_has_our_secrets(
    hostile_ssh: Any, sdk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ssh, rsync, helpers and server get what SkyPilot needs, by name; the model's key stays with us."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    monkeypatch.setenv("AWS_PROFILE", "theirs")
    (tmp_path / "bin" / "ssh").write_text(f'#!/bin/bash\nenv >>{tmp_path}/seen\neval "${{@: -1}}"\n')
    await hostile_ssh.call("c", "echo hi", 100, 20)
    (tmp_path / "bin" / "rsync").write_text(f"#!/bin/sh\nenv >>{tmp_path}/seen\n")
    (tmp_path / "bin" / "rsync").chmod(0o755)
    (tmp_path / "folder").mkdir()
    await hostile_ssh.send("c", tmp_path / "folder", "/nowhere", 20)
    server = sdk.server_common
    dump = ["sh", "-c", f"env >>{tmp_path}/seen"]
    with server.subprocess.Popen(dump, env={**os.environ, "IS_SKYPILOT_SERVER": "true"}) as process:
        process.wait()
    sdk.command_runner.subprocess_utils.run(f"env >>{tmp_path}/seen")
    seen = (tmp_path / "seen").read_text()
    assert seen.count("AWS_PROFILE=theirs\n") >= 4
    assert "IS_SKYPILOT_SERVER=true\n" in seen
    assert "canary" not in seen


def test_t62_all_of_its_modules(sdk: Any) -> None:
    """Every module of SkyPilot's client that can start a process starts it with an environment that is built."""
    loaded = [it for name, it in sys.modules.items() if name.partition(".")[0] == "sky" and hasattr(it, "subprocess")]
    assert len(loaded) > 5
    sdk.SkyPilot()
    assert not [it.__name__ for it in loaded if it.subprocess is subprocess]


@pytest.fixture
def slurm_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".slurm").mkdir()
    logins = [f"Host {name}\n HostName 127.0.0.1\n Port {9 + at}\n User nobody\n" for at, name in enumerate(("a", "b"))]
    (tmp_path / ".slurm" / "config").write_text("".join(logins))
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f'#!/bin/bash\necho "$@" >>{tmp_path}/words\necho shouted >&2\n[[ "$*" == *Port=10* ]] || exit 255\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    return tmp_path


async def test_T86_a_place_is_asked_itself(sdk: Any, slurm_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Slurm's controller answers over the way that commands and files take. Where no cluster is named, one is enough;
    of a cloud SkyPilot's server is all that is known."""
    provisioner = sdk.SkyPilot()
    await provisioner.reach("slurm/b/debug")
    await provisioner.reach("slurm")
    with pytest.raises(Unavailable, match="a cannot be reached"):
        await provisioner.reach("slurm/a")
    words = (slurm_home / "words").read_text()
    assert words.count("sinfo") == words.count("ForwardAgent=no") >= 3
    await provisioner.reach("aws/us-east-1")
    assert (slurm_home / "words").read_text() == words
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("place", "kind"), [("slurm/a", Unavailable), ("slurm/b", Denied)])
async def test_T86_nobody_is_told_to_set_up_a_place_that_is_away(
    sdk: Any, slurm_home: Path, monkeypatch: pytest.MonkeyPatch, place: str, kind: type[Exception]
) -> None:
    """SkyPilot says that it has no access, whatever keeps it from a place."""
    monkeypatch.setattr(sdk.server_common, "is_api_server_local", lambda: True)
    monkeypatch.setattr(sdk.sdk, "enabled_clouds", list)
    monkeypatch.setattr(sdk, "refuse_forwarding", lambda: None)
    monkeypatch.setattr(sdk.sdk, "check", lambda *_, **__: None)
    monkeypatch.setattr(sdk.sdk, "get", lambda request: request)
    with pytest.raises(kind):
        await sdk.SkyPilot().check(place)
