"""Settings: a flag wins over the environment, that over the user's file, that over the default."""

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource


def user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "blastdoor" / "settings.toml"


class Settings(BaseSettings):
    """Every variable is named BLASTDOOR_ and the field, e.g. BLASTDOOR_RUNTIME."""

    model_config = SettingsConfigDict(env_prefix="BLASTDOOR_", extra="forbid", frozen=True)

    docker_host: str | None = Field(default=None, description="engine; else DOCKER_HOST, else the default socket")
    runtime: str = Field(default="runc", description="container runtime: runc or runsc (gVisor)")
    image: str = Field(default="blastdoor-trial:latest", description="image of a chamber")
    warm: int = Field(default=0, ge=0, le=256, description="chambers to keep ready at most")

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
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, user_file())
