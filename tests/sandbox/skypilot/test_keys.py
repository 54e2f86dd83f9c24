"""Keys of this account that SkyPilot would copy to machines all the same: found before anything is rented."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import Refused

Say = Callable[[str], None]


@pytest.fixture
def say(sdk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Say]:
    """Writes SkyPilot's own settings, and has them read by SkyPilot itself."""
    monkeypatch.setattr(sdk.sky_check, "get_cloud_credential_file_mounts", lambda _: {})
    monkeypatch.setenv("SKYPILOT_GLOBAL_CONFIG", str(tmp_path / "config.yaml"))

    def write(text: str) -> None:
        (tmp_path / "config.yaml").write_text(text)
        sdk.skypilot_config.reload_config()

    yield write
    monkeypatch.undo()
    sdk.skypilot_config.reload_config()


@pytest.mark.parametrize("store", ["aws", "gcp"])
def test_keys_for_logs_that_are_kept_elsewhere(sdk: Any, say: Say, store: str) -> None:
    """No switch keeps SkyPilot from copying them; logs that need no key of ours are no reason to refuse."""
    say(f"logs: {{store: {store}, {store}: {{credentials_file: /keys/logs}}}}")
    with pytest.raises(Refused, match=r"would copy .* to every rented machine.*take logs: out"):
        sdk.refuse_keys()
    say(f"logs: {{store: {store}}}")
    sdk.refuse_keys()


@pytest.mark.parametrize("active", ["team", "other"])
def test_a_workspace_that_wants_keys_copied(sdk: Any, say: Say, active: str) -> None:
    """Its word would win over what each launch says, and the server may choose the workspace."""
    workspaces = "workspaces: {other: {}, team: {gcp: {remote_identity: LOCAL_CREDENTIALS}}}"
    say(f"active_workspace: {active}\n{workspaces}")
    with pytest.raises(Refused, match=r"set workspaces\.team\.gcp\.remote_identity to NO_UPLOAD"):
        sdk.refuse_keys()
    say(f"active_workspace: {active}\n{workspaces.replace('LOCAL_CREDENTIALS', 'NO_UPLOAD')}")
    sdk.refuse_keys()


async def test_keys_are_looked_for_before_anything_is_rented(sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a place ends with it."""

    def found() -> None:
        raise Refused("keys would travel")

    monkeypatch.setattr(sdk.server_common, "is_api_server_local", lambda: True)
    monkeypatch.setattr(sdk, "refuse_forwarding", lambda: None)
    monkeypatch.setattr(sdk.sdk, "enabled_clouds", lambda: ["gcp"])
    monkeypatch.setattr(sdk.sdk, "get", lambda request: request)
    monkeypatch.setattr(sdk, "refuse_keys", found)
    with pytest.raises(Refused, match="keys would travel"):
        await sdk.SkyPilot().check("gcp")
