"""The genuine git, to make repositories for us to read and to look at what we wrote."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"}
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


def git_bytes(
    folder: Path, *arguments: str, given: bytes | None = None, environment: Mapping[str, str] | None = None
) -> bytes:
    env = {**os.environ, **SETTINGS, "HOME": str(folder), **(environment or {})}
    command = ["git", *WHO, "-C", str(folder), *arguments]
    return subprocess.run(command, env=env, input=given, check=True, capture_output=True).stdout


def git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    return git_bytes(folder, *arguments, environment=environment).decode().strip()


def full(*_: object) -> None:
    """What a disk that is full does, in place of what would write."""
    raise OSError(28, "No space left on device")


def hashed(folder: Path, kind: str, data: bytes) -> str:
    return git_bytes(folder, "hash-object", "-t", kind, "-w", "--stdin", "--literally", given=data).decode().strip()
