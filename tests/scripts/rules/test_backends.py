"""Each way to ask which backend it is."""

import pytest

from rules.backends import branches


@pytest.mark.parametrize(
    "line",
    [
        'if choice.backend == "docker": ...',
        'if choice.backend in ("modal", "skypilot"): ...',
        'later = site.name.startswith("skypilot")',
        'later = site.name.startswith("skypilot/")',
        'package = {"modal": "modal"}[name]',
        'lines = {("docker", "infra"): "means nothing"}',
        "if isinstance(config, ModalConfig | SkyPilotConfig): ...",
        "backend = cast(DockerBackend, backend)",
        "if type(config) is sandbox.DockerConfig: ...",
        'match backend:\n case "docker": ...',
        "match config:\n case DockerConfig(): ...",
    ],
)
def test_a_branch_is_found(line: str) -> None:
    """Each way to ask is seen."""
    assert branches(line)


def test_what_is_no_branch() -> None:
    """To hand a backend over, to look for a program or to name a default is no question."""
    code = (
        'config = DockerConfig(runtime="runc")\nwhich("docker")\nbackend: str = OWN_ENGINE\n"docker of others" == text'
    )
    assert branches(code) == []
