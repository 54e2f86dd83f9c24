"""What a task needs in its image: said once, baked once. A chamber has no network, so everything must be there before.

The names are checked here, because the machine that fetches a package must never build it: an address, a file or an
option could make pip run the package's own code with our rights.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field, field_validator

from sandbox.errors import Refused

REPOSITORY = "blastdoor-baked"
# What a baked image says of itself: the digest of the spec that it was baked from.
LABEL = "blastdoor.baked"
# Part of every digest: raise it when the way of baking changes what comes out.
FORMAT = 2

_VERSIONS = r"\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_WHEEL = re.compile(
    rf"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._, -]*\])?(?:{_VERSIONS}(?:\s*,{_VERSIONS})*)?"
)
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+](?::[a-z0-9]+)?(?:=[A-Za-z0-9.+:~-]+)?")


class ImageSpec(BaseModel, extra="forbid", frozen=True, strict=True):
    """An image to start from and what is added to it: Python wheels, Debian packages, commands.

    What cannot be baked for its words alone is Refused here, not as an error of validation: it is our policy.
    """

    base: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    pip: tuple[str, ...] = Field(default=(), max_length=256)
    apt: tuple[str, ...] = Field(default=(), max_length=256)
    run: tuple[str, ...] = Field(default=(), max_length=64)

    @field_validator("pip")
    @classmethod
    def _wheels_by_name(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := [item for item in value if not is_requirement(item)]:
            raise Refused(
                f"{bad[0][:100]!r} is not a package by name; write it like numpy==2.1.*"
                " (no address, file, option or marker: those could run code where packages are fetched)"
            )
        return value

    @field_validator("apt")
    @classmethod
    def _debian_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := [item for item in value if len(item) > 256 or not _DEBIAN.fullmatch(item)]:
            raise Refused(f"{bad[0][:100]!r} is not the name of a Debian package; write it like gcc or gcc=4:12.2.0-3")
        return value

    @field_validator("run")
    @classmethod
    def _command_lines(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for line in value:
            if not line.strip() or "\0" in line or len(line) > 32_768:
                raise Refused("a run line is empty, longer than 32768 characters, or contains a NUL")
        return value

    @property
    def is_empty(self) -> bool:
        return not (self.pip or self.apt or self.run)

    def digest(self, base_id: str) -> str:
        """Equal for specs that give the same image. The order of packages is no difference, that of lines is."""
        content = [FORMAT, base_id, sorted(set(self.pip)), sorted(set(self.apt)), self.run]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class BakedImage:
    """`name` to give to a job, `digest` to write into a fingerprint."""

    name: str
    digest: str


def baked_name(digest: str) -> str:
    return f"{REPOSITORY}:{digest[:16]}"


def is_baked(name: str) -> bool:
    return name.startswith(f"{REPOSITORY}:")


def is_requirement(text: str) -> bool:
    """Whether pip would take this as a name with versions, and as nothing else."""
    return len(text) <= 256 and _WHEEL.fullmatch(text) is not None


def last_word(output: bytes, marks: Sequence[str] = ()) -> str:
    """The line of a failed program that says most: the last one with a mark, else the last one, cut to one line."""
    lines = [" ".join(line.split()) for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(tuple(marks)) and "for help visit" not in line]
    found = (marked or lines or ["it said nothing"])[-1]
    return "".join(char if char.isprintable() else "?" for char in found)[:300]
