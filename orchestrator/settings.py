"""Settings: a flag wins over the environment, that over the user's file, that over the default."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from orchestrator.choices import OWN_ENGINE
from orchestrator.run_options import OPTIONS, UserOptions
from sandbox.units import Duration, Size


def user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "blastdoor" / "settings.toml"


PREFIX = "BLASTDOOR_"
# Read where images are built.
_OTHERS = {"BLASTDOOR_BASE_IMAGE", "BLASTDOOR_DEBIAN_MIRROR"}
# A variable that others read, too, by the setting that it is for.
_SHARED = {"ANTHROPIC_API_KEY": "api_key"}


def _dollars(value: object) -> object:
    return value.removeprefix("$") if isinstance(value, str) else value


def _names(value: object) -> object:
    """One name, or several with commas between them; a list in brackets is one, too."""
    if not isinstance(value, str):
        return value
    listed = value.strip().removeprefix("[").removesuffix("]").split(",")
    return tuple(name for name in (it.strip(" \t\"'") for it in listed) if name)


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


def _unset(words: str) -> dict[str, JsonValue]:
    """What holds where the setting has no value, for its page."""
    return {"unset": words}


def _of_postgres(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("must be a URL like postgresql://user:password@host/database")
    return url


class Settings(UserOptions):
    """Every variable is named BLASTDOOR_ and the field, e.g. BLASTDOOR_RUNTIME."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    # A user always has one of these two; what they are is said where options of a run are declared.
    backend: str = OWN_ENGINE
    runtime: str = "runc"
    usd_per_hour_most: Annotated[float, BeforeValidator(_dollars)] | None = Field(
        default=None,
        gt=0,
        description="Maximum price of an hour of one rented chamber; a dearer one is not started.",
    )
    modal_app: str = Field(default="blastdoor", description="App that owns the sandboxes on Modal.")
    modal_environment: str | None = Field(
        default=None, description="Environment on Modal.", json_schema_extra=_unset("Modal's own default")
    )
    modal_idle: Duration = Field(
        default=120,
        ge=1,
        le=3600,
        description="Time that an idle sandbox on Modal waits for its next trial, in seconds or like `2m`.",
    )
    skypilot_lifetime: Duration = Field(
        default=14_400,
        ge=300,
        le=7 * 86_400,
        description="Maximum lifetime of a SkyPilot machine, like `4h`; one that is kept reserves the price of it all.",
    )
    skypilot_autodown: Duration = Field(
        default=600, ge=60, le=86_400, description="Time until an abandoned SkyPilot machine shuts itself down."
    )
    docker_host: str | None = Field(
        default=None,
        description="Address of the Docker engine.",
        json_schema_extra=_unset("`DOCKER_HOST`, else the engine of `up`, else the default socket"),
    )
    image: str = Field(default="blastdoor-trial:latest", description="Image of a chamber if the task names none.")
    warm: int = Field(default=0, ge=0, le=256, description="Maximum number of chambers to keep ready.")
    disk_read: Size = Field(
        default=64 * 1024**2,
        ge=0,
        le=2**44,
        description="Bytes per second that a chamber on your own engine may read from disk, like `64MiB`; 0: no limit.",
    )
    usd_per_hour: Annotated[float, BeforeValidator(_dollars)] = Field(
        default=0.0, ge=0, description="Price of an hour of one processor of your own machine, in dollars."
    )

    api_key: SecretStr | None = Field(
        default=None,
        description="Key of the model's provider; only the gateway holds it, and it is written nowhere.",
        json_schema_extra=_unset("`ANTHROPIC_API_KEY` is read too"),
    )
    api_url: str = Field(
        default="https://api.anthropic.com",
        pattern=r"^https?://",
        description="Address of the Messages API; any provider that speaks it will do.",
    )
    models: Annotated[tuple[str, ...], BeforeValidator(_names)] | None = Field(
        default=None,
        min_length=1,
        description='Models for every role for which the task names none, the preferred first: `["claude-sonnet-5-5"]`,'
        " in the variable also `claude-sonnet-5-5,claude-opus-5-5`.",
        json_schema_extra=_unset("falls back to one for each role"),
    )
    prices: Path | None = Field(
        default=None,
        description="File with your own prices, beside the dated ones that we ship: of models (docs/gateway.md) and of"
        " chambers on Modal (docs/money.md).",
    )

    notify: Annotated[tuple[SecretStr, ...], BeforeValidator(_words)] = Field(
        default=(),
        description="Where news of a campaign goes, each `NAME=WHERE` (docs/notify.md); in the variable with white"
        " space between them. What is after the `=` is written nowhere.",
    )
    ledger: Annotated[SecretStr, AfterValidator(_of_postgres)] | None = Field(
        default=None,
        description="PostgreSQL database for new campaigns, like `postgresql://user:password@host/database`"
        " (docs/ledger.md).",
        json_schema_extra=_unset("a file in the folder"),
    )

    @field_validator(*UserOptions.model_fields, mode="after")
    @classmethod
    def _check(cls, value: object, info: ValidationInfo) -> object:
        if value is not None:
            OPTIONS[str(info.field_name)].kind.check(value)
        return value

    def __init__(self, /, **said: Any) -> None:
        """`said` wins over what the user has set. Raises ValidationError, or ValueError for a file that is no TOML."""
        super().__init__(**_in_file() | _in_environment() | said)


def _in_file() -> dict[str, Any]:
    # Some editors begin a file with a mark of its encoding.
    return tomllib.loads(file.read_text(encoding="utf-8-sig")) if (file := user_file()).is_file() else {}


def _in_environment() -> dict[str, str]:
    """In whatever case the names are written; what looks like a setting and is none is told elsewhere."""
    given = {name.upper(): value for name, value in os.environ.items()}
    shared = {field: given[name] for name, field in _SHARED.items() if name in given}
    return shared | {name: given[it] for name in Settings.model_fields if (it := PREFIX + name.upper()) in given}


def variable_names() -> list[str]:
    return [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]


def unknown_variables() -> list[str]:
    """Variables that look like settings and are none: a typo must not be taken for the default."""
    ours = (name for name in os.environ if name.upper().startswith(PREFIX))
    return sorted(name for name in ours if name.upper() not in {*variable_names(), *_OTHERS})
