"""Settings: a flag wins over the environment, that over the user's file, that over the default."""

import os
import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from sandbox.units import Duration, Size


def user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "blastdoor" / "settings.toml"


PREFIX = "BLASTDOOR_"
# Read by the scripts that build images, not by us.
_OTHERS = {"BLASTDOOR_BASE_IMAGE", "BLASTDOOR_DEBIAN_MIRROR"}


def _dollars(value: object) -> object:
    return value.removeprefix("$") if isinstance(value, str) else value


def _names(value: object) -> object:
    """One name, or several with commas between them; a list in brackets is one, too."""
    if not isinstance(value, str):
        return value
    listed = value.strip().removeprefix("[").removesuffix("]").split(",")
    return tuple(name for name in (it.strip(" \t\"'") for it in listed) if name)


def _of_postgres(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("must be a URL like postgresql://user:password@host/database")
    return url


class _UserFile(TomlConfigSettingsSource):
    """Some editors begin a file with a mark of its encoding."""

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        return tomllib.loads(file_path.read_text(encoding="utf-8-sig"))


class Settings(BaseSettings):
    """Every variable is named BLASTDOOR_ and the field, e.g. BLASTDOOR_RUNTIME."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    backend: Literal["docker", "modal", "skypilot"] = Field(default="docker", description="where candidates run")
    gpu: str | None = Field(default=None, description="GPU of a trial, kind and count, like A10 or A100-80GB:2")
    infra: str | None = Field(default=None, description="with skypilot: where, in its own words, like aws or slurm")
    standing: int | None = Field(
        default=None, ge=0, le=64, description="sandboxes or clusters that stay between trials, and are paid for"
    )
    usd_per_hour_most: Annotated[float, BeforeValidator(_dollars)] | None = Field(
        default=None, gt=0, description="what an hour of one rented chamber may cost; what costs more is not started"
    )
    modal_app: str = Field(default="blastdoor", description="the app that sandboxes on Modal belong to")
    modal_environment: str | None = Field(default=None, description="the environment on Modal; its own default else")
    modal_idle: Duration = Field(
        default=120, ge=1, le=3600, description="time that a standing sandbox on Modal waits for a trial at most"
    )
    skypilot_lifetime: Duration = Field(
        default=14_400,
        ge=300,
        le=7 * 86_400,
        description="time that a machine lives at most; a standing one reserves it",
    )
    skypilot_autodown: Duration = Field(
        default=600, ge=60, le=86_400, description="time after which a machine that nobody ends goes down by itself"
    )
    docker_host: str | None = Field(default=None, description="engine; else DOCKER_HOST, else the default socket")
    runtime: str = Field(default="runc", description="container runtime: runc or runsc (gVisor)")
    image: str = Field(default="blastdoor-trial:latest", description="image of a chamber")
    warm: int = Field(default=0, ge=0, le=256, description="chambers to keep ready at most")
    disk_read: Size = Field(
        default=64 * 1024**2, ge=0, le=2**44, description="what a chamber here may read from a disk in a second; 0: all"
    )
    proposer: (
        Literal["grid", "random", "tpe", "cmaes", "gp", "operators", "mixed", "llm", "llm-params", "agent", "inject"]
        | None
    ) = Field(default=None, description="where changes come from")
    attempts: int | None = Field(default=None, ge=1, description="attempts of a run at most")
    usd: Annotated[float, BeforeValidator(_dollars)] | None = Field(
        default=None, ge=0, description="dollars of a campaign at most"
    )
    wall: Duration | None = Field(default=None, gt=0, description="time of a campaign on the clock at most")
    artifacts: Size | None = Field(
        default=None, ge=0, description="bytes of outputs that a campaign keeps at most; the oldest discarded go first"
    )
    width: int | None = Field(default=None, ge=1, description="attempts at a time")
    usd_per_hour: Annotated[float, BeforeValidator(_dollars)] = Field(
        default=0.0, ge=0, description="what an hour of one processor of your own machine costs"
    )

    api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("BLASTDOOR_API_KEY", "ANTHROPIC_API_KEY", "api_key"),
        description="key of the model's provider; ANTHROPIC_API_KEY is read too",
    )
    api_url: str = Field(
        default="https://api.anthropic.com",
        pattern=r"^https?://",
        description="where the Messages API is; another provider that speaks it can be named",
    )
    models: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] | None = Field(
        default=None, min_length=1, description="models of every role that the task names none for, the preferred first"
    )
    prices: Path | None = Field(default=None, description="a file with prices of your own, beside the dated ones")

    ledger: Annotated[SecretStr, AfterValidator(_of_postgres)] | None = Field(
        default=None, description="database for new campaigns, like postgresql://user:password@host/database"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, _UserFile(settings_cls, user_file())


def variable_names() -> list[str]:
    return [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]


def unknown_variables() -> list[str]:
    """Variables that look like settings and are none: a typo must not be taken for the default."""
    ours = (name for name in os.environ if name.upper().startswith(PREFIX))
    return sorted(name for name in ours if name.upper() not in {*variable_names(), *_OTHERS})
