"""One hostile job: what is asked of a chamber, and what came back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, field_validator, model_validator

from sandbox.units import Duration, Size


class Mode(StrEnum):
    BATCH = "batch"
    RELAY = "relay"


class Ending(StrEnum):
    """How a program's time in a chamber ended. Failures of the provider are exceptions, not endings."""

    COMPLETED = "completed"
    FAILED = "failed"
    BUILD_FAILED = "build failed"
    BUILD_TIMED_OUT = "build timed out"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    PROCESS_LIMIT = "process limit"
    WORK_FULL = "work directory full"
    LOG_OVERFLOW = "log overflow"
    OUTPUT_REFUSED = "output refused"
    PROTOCOL = "protocol broken"
    STOPPED = "stopped"
    KILLED = "killed"


class Gpu(BaseModel, extra="forbid", frozen=True):
    """`A100:8`: kind and count. Kind `any` takes whatever the engine has."""

    kind: str = Field(default="any", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")
    count: int = Field(default=1, ge=1, le=64)

    @classmethod
    def parse(cls, text: str) -> Self:
        kind, _, count = text.partition(":")
        if count and not re.fullmatch(r"[0-9]{1,2}", count):
            raise ValueError(f"{text!r} is not a GPU request; write it like A100:8")
        return cls(kind=kind, count=int(count or 1))

    def __str__(self) -> str:
        return f"{self.kind}:{self.count}"


def _parse_gpu(value: object) -> object:
    return Gpu.parse(value) if isinstance(value, str) else value


class Limits(BaseModel, extra="forbid", frozen=True):
    """Every limit of a chamber. Sizes in bytes, durations in seconds; both may be given as text."""

    wall: Duration = Field(default=60.0, gt=0, le=86_400 * 7)
    build: Duration = Field(default=60.0, gt=0, le=86_400)
    grace: Duration = Field(default=5.0, ge=0, le=3600)
    memory: Size = Field(default=512 * 1024**2, ge=16 * 1024**2, le=2**44)
    cpus: float = Field(default=1.0, ge=0.01, le=1024)
    pids: int = Field(default=128, ge=8, le=100_000)
    open_files: int = Field(default=1024, ge=32, le=1_048_576)
    work_bytes: Size = Field(default=256 * 1024**2, ge=1024**2, le=2**44)
    work_inodes: int = Field(default=16_384, ge=64, le=100_000_000)
    bundle_bytes: Size = Field(default=64 * 1024**2, ge=1024, le=2**34)
    log_bytes: Size = Field(default=16 * 1024**2, ge=0, le=2**40)
    output_bytes: Size = Field(default=64 * 1024**2, ge=0, le=2**34)
    output_files: int = Field(default=1024, ge=0, le=1_000_000)
    frame_bytes: Size = Field(default=64 * 1024**2, ge=0, le=2**31)
    frames: int = Field(default=1_000_000, ge=0, le=2**40)
    gpu: Annotated[Gpu | None, BeforeValidator(_parse_gpu)] = None


class Enforcer(StrEnum):
    """Who holds a limit, strongest first. Guest means a wrapper inside the chamber: weaker, and labelled."""

    CONTROLLER = "controller"
    ENGINE = "engine"
    GUEST = "guest"
    NOBODY = "nobody"

    def meets(self, least: "Enforcer") -> bool:
        order = {Enforcer.CONTROLLER: 0, Enforcer.ENGINE: 0, Enforcer.GUEST: 1, Enforcer.NOBODY: 2}
        return order[self] <= order[least]


class Needs(BaseModel, extra="forbid", frozen=True):
    """The least that a job accepts of a backend; less is refused at open."""

    live_log: bool = False
    stop: bool = False
    enforced: Mapping[str, Enforcer] = Field(
        default_factory=lambda: {
            "wall": Enforcer.ENGINE,
            "memory": Enforcer.ENGINE,
            "log_bytes": Enforcer.ENGINE,
            "output_bytes": Enforcer.ENGINE,
        }
    )

    @field_validator("enforced")
    @classmethod
    def _known_limits(cls, value: Mapping[str, Enforcer]) -> Mapping[str, Enforcer]:
        if unknown := sorted(set(value) - set(Limits.model_fields)):
            raise ValueError(f"{unknown[0]!r} is not a limit; known are {', '.join(Limits.model_fields)}")
        return value


def _plain_text(value: str) -> str:
    if "\0" in value or value.encode("utf-8", "ignore").decode() != value:
        raise ValueError("contains a NUL byte or broken text; remove it")
    return value


def _inside_work(path: str) -> str:
    """A relative path that stays inside. /proc/self/fd/8 as a working directory is an old way out."""
    parts = PurePosixPath(_plain_text(path))
    if parts.is_absolute() or ".." in parts.parts or "\n" in path or len(path) > 4096:
        raise ValueError(f"{path!r} leaves the folder; name a place inside it, relative and without '..'")
    return str(parts)


InsidePath = Annotated[str, AfterValidator(_inside_work)]
PlainText = Annotated[str, AfterValidator(_plain_text)]
Command = Annotated[tuple[PlainText, ...], Field(max_length=1024)]

_OUR_VARIABLES = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")

# A folder beside every input, for whoever mounts one as a layer of two.
EMPTY = ".empty"


class Input(BaseModel, extra="forbid", frozen=True):
    """A large read-only input, named by the digest of its content; it appears as /inputs/NAME."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class Job(BaseModel, extra="forbid", frozen=True):
    """What runs, in which image, under which limits. The files travel beside it as a bundle.

    `loopback` allows internet sockets on the chamber's own loopback, for programs that talk to themselves over TCP.
    `fresh` wants no machine that served before: who took one could forge what this job says.
    `realm` names the secrets that a job may see: on one engine, chambers of two realms share no file of an image or an
    input, so that what the host keeps of files tells nothing from one to the other.
    """

    command: Annotated[Command, Field(min_length=1)]
    build: Command = ()
    image: str = Field(default="blastdoor-trial:latest", pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    env: Mapping[str, PlainText] = Field(default_factory=dict)
    workdir: InsidePath = "."
    mode: Mode = Mode.BATCH
    loopback: bool = False
    fresh: bool = False
    realm: str = Field(default="", pattern=r"^[a-z0-9-]{0,32}$")
    limits: Limits = Field(default_factory=Limits)
    needs: Needs = Field(default_factory=Needs)
    inputs: tuple[Input, ...] = Field(default=(), max_length=64)

    @field_validator("command", "build")
    @classmethod
    def _no_option(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value and value[0].startswith("-"):
            raise ValueError(f"the command {value[0]!r} looks like an option; name a program first")
        return value

    @field_validator("env")
    @classmethod
    def _names(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name in value:
            if not _OUR_VARIABLES.fullmatch(name):
                raise ValueError(f"{name!r} is not a variable name; use letters, digits and _")
        return value

    @model_validator(mode="after")
    def _distinct_inputs(self) -> Self:
        names = [item.name for item in self.inputs]
        if len(set(names)) != len(names):
            raise ValueError("two inputs have the same name; rename one")
        return self


@dataclass(frozen=True, slots=True)
class Usage:
    """Measured outside the chamber."""

    build_s: float = 0.0
    run_s: float = 0.0
    collect_s: float = 0.0
    held_s: float = 0.0
    log_bytes: int = 0
    bad_reports: int = 0
    output_bytes: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the chamber says. Untrusted, except `ending` where it comes from outside, and `usage`.

    `told` is where the ending comes from: True when only the chamber's own words support it.
    """

    ending: Ending
    exit_code: int | None = None
    reason: str = ""
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    log_tail: bytes = b""
    facts: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = Usage()
    told: bool = True

    @property
    def why(self) -> str:
        """What there is to say beyond the ending's name: a reason, else what a program that failed ended with."""
        if self.reason or self.ending not in (Ending.FAILED, Ending.BUILD_FAILED) or self.exit_code is None:
            return self.reason
        return f"exit code {self.exit_code}" + (f" (signal {self.signal})" if self.signal else "")

    @property
    def signal(self) -> int | None:
        """The signal that ended the program, by the shell's convention of 128 + n."""
        code = self.exit_code
        return code - 128 if code is not None and 128 < code <= 192 else None
