"""The compose file: read by Compose itself and by the official schema; what each service may and may not have."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from distribution import program, require
from tests.deploy.templates import COMPOSE, conforms, load, vendored


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The file as Compose understands it, installed where it is missing."""
    log = tmp_path_factory.mktemp("compose")
    require("docker-compose", log=log / "apt.log")
    result = _compose("config", TASK="mine", POSTGRES_PASSWORD="chosen")
    assert result.returncode == 0, result.stderr
    path = log / "resolved.yaml"
    path.write_text(result.stdout)
    return load(path)


def _compose(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [program("docker-compose") or "docker-compose", "--file", str(COMPOSE), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=kept | variables)


def test_official_schema() -> None:
    """It is what the Compose specification allows."""
    conforms(load(COMPOSE), vendored("compose-spec"))


@pytest.mark.parametrize(
    ("variables", "missing"), [({"TASK": "mine"}, "POSTGRES_PASSWORD"), ({"POSTGRES_PASSWORD": "x"}, "TASK")]
)
def test_what_must_be_chosen(resolved: Any, variables: dict[str, str], missing: str) -> None:
    """Without a task or a password nothing starts: there is no default for either."""
    result = _compose("config", **variables)
    assert result.returncode != 0
    assert missing in result.stderr


def test_services(resolved: Any) -> None:
    """An orchestrator, its engine and a database; the port of the dashboard is kept on loopback alone."""
    services = resolved["services"]
    assert set(services) == {"orchestrator", "engine", "postgres"}
    ports = {name: _ports(service) for name, service in services.items()}
    assert ports == {"orchestrator": ["127.0.0.1:8321:8321/tcp"], "engine": [], "postgres": []}
    assert services["orchestrator"]["command"] == ["/tasks/mine"]
    assert services["orchestrator"]["environment"]["BLASTDOOR_LEDGER"] == (
        "postgresql://blastdoor:chosen@postgres/blastdoor"
    )


def test_only_the_orchestrator_reaches_the_engine(resolved: Any) -> None:
    """The folder of the engine's socket is mounted in the two that need it, and the socket of the machine in none."""
    holders = {name for name, service in resolved["services"].items() if "engine" in _mounts(service)}
    assert holders == {"orchestrator", "engine"}
    assert _host_of(resolved, "orchestrator") == "unix:///run/engine/docker.sock"
    assert not any("tcp:" in word for word in resolved["services"]["engine"]["command"])


def test_orchestrator_has_no_more_than_it_needs(resolved: Any) -> None:
    """It writes to its volumes only, has no privileges, and is no root."""
    service = resolved["services"]["orchestrator"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert [name for name, it in resolved["services"].items() if it.get("privileged")] == ["engine"]


def test_networks(resolved: Any) -> None:
    """The engine has no network; the database is reached from inside only."""
    services = resolved["services"]
    assert services["engine"]["network_mode"] == "none"
    assert list(services["postgres"]["networks"]) == ["ledger"]
    assert resolved["networks"]["ledger"]["internal"] is True


def test_inputs_lie_at_one_path(resolved: Any) -> None:
    """The orchestrator names folders that the engine mounts into chambers: both see them at the same place."""
    places = {
        name: Path(_mounts(service)["inputs"])
        for name, service in resolved["services"].items()
        if "inputs" in _mounts(service)
    }
    assert places == {"orchestrator": places["engine"], "engine": places["engine"]}
    assert f"XDG_CACHE_HOME={places['engine']}" in (COMPOSE.parents[1] / "orchestrator" / "Dockerfile").read_text()


@pytest.mark.parametrize(
    "service",
    [
        {"ports": ["127.0.0.1:8321:8321/tcp"], "volumes": ["engine:/run/engine:rw", "inputs:/inputs"]},
        {
            "ports": [{"mode": "ingress", "host_ip": "127.0.0.1", "target": 8321, "published": "8321"}],
            "volumes": [
                {"type": "volume", "source": "engine", "target": "/run/engine", "volume": {}},
                {"type": "volume", "source": "inputs", "target": "/inputs"},
            ],
        },
    ],
    ids=["short", "long"],
)
def test_both_forms(service: Any) -> None:
    """Compose 1 writes ports and mounts as words, Compose 2 as fields; what is left out is none of them."""
    assert _ports(service) == ["127.0.0.1:8321:8321/tcp"]
    assert _mounts(service) == {"engine": "/run/engine", "inputs": "/inputs"}
    assert (_ports({}), _mounts({"volumes": None})) == ([], {})


def _ports(service: Any) -> list[str]:
    return [
        port
        if isinstance(port, str)
        else f"{port.get('host_ip', '')}:{port['published']}:{port['target']}/{port.get('protocol', 'tcp')}"
        for port in service.get("ports") or []
    ]


def _mounts(service: Any) -> dict[str, str]:
    """Where each source is mounted."""
    pairs = [
        mount.split(":")[:2] if isinstance(mount, str) else (mount.get("source", ""), mount["target"])
        for mount in service.get("volumes") or []
    ]
    return {str(source): str(target) for source, target in pairs}


def _host_of(resolved: Any, name: str) -> str:
    host: str = resolved["services"][name]["environment"]["BLASTDOOR_DOCKER_HOST"]
    return host
