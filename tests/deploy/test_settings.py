"""Settings that templates name: each exists and has a value that we take; all that a backend can be told is there."""

import re
from pathlib import Path

import pytest

from orchestrator.settings import PREFIX, Settings, variable_names
from orchestrator.wiring.choice import OF_A_SITE, SiteChoice, choice_of
from orchestrator.wiring.sites import planned_site
from tests.deploy.templates import DEPLOY, IMAGES, files, named_images

BACKENDS = ("modal", "skypilot")
# What only the other one is told, or nobody who rents from this one.
OF_MODAL = {"modal_app", "modal_environment", "modal_idle"}
OF_SKYPILOT = {"skypilot_lifetime", "skypilot_autodown"}
NOT_FOR = {"modal": {"infra", "runtime", *OF_SKYPILOT}, "skypilot": OF_MODAL}
_KEY = re.compile(r"^(?:# )?([a-z_]+) = ", re.MULTILINE)
_VARIABLE = re.compile(rf"\b{PREFIX}[A-Z_]*[A-Z]\b")
# Of the script that builds images, and of a template's own.
OTHERS = {"BLASTDOOR_BASE_IMAGE", "BLASTDOOR_HOME"}


def _template(backend: str) -> Path:
    return DEPLOY / backend / "settings.toml"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def _settings(backend: str, home: Path, monkeypatch: pytest.MonkeyPatch, text: str | None = None) -> Settings:
    """The template in the place where a user has it."""
    (home / "blastdoor").mkdir()
    (home / "blastdoor" / "settings.toml").write_text(_template(backend).read_text() if text is None else text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    for name in variable_names():
        monkeypatch.delenv(name, raising=False)
    return Settings()


def test_taken_as_it_is(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own reader takes the template, and the backend opens with it."""
    settings = _settings(backend, tmp_path, monkeypatch)
    assert settings.backend == backend
    assert planned_site(settings, _choice(settings)).name.startswith(backend)


def test_commented_lines_are_taken_too(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the mark away from a line has a file that is still right."""
    text = re.sub(r"^# (?=[a-z_]+ = )", "", _template(backend).read_text(), flags=re.MULTILINE)
    assert len(_settings(backend, tmp_path, monkeypatch, text).model_fields_set) >= len(set(_KEY.findall(text)))


def test_every_knob_is_there(backend: str) -> None:
    """All that says where a candidate runs, and what it may cost, has a line, and a word on it above or beside."""
    text = _template(backend).read_text()
    named = set(_KEY.findall(text))
    knobs = {*OF_A_SITE, "usd_per_hour_most", "usd", "image", "docker_host", *OF_MODAL, *OF_SKYPILOT}
    assert named >= knobs - NOT_FOR[backend]
    assert not named & NOT_FOR[backend]
    for block in text.split("\n\n")[1:]:
        assert "#" in block, block


def test_no_secret_in_a_file(backend: str) -> None:
    """Tokens come by the environment or the provider's own file."""
    keys = set(_KEY.findall(_template(backend).read_text()))
    assert not {key for key in keys if re.search(r"token|secret|key|password", key)}


def test_variables_and_images_exist() -> None:
    """A variable of ours that a template names is one that we read, an image one that scripts/build-images makes."""
    made = {folder.parent.name for folder in IMAGES.glob("*/Dockerfile")} | {"orchestrator"}
    for path in files():
        assert set(_VARIABLE.findall(path.read_text())) <= {*variable_names(), *OTHERS}, path
        assert set(named_images(path.read_text())) <= made, path


def test_the_default_image_is_one_of_them() -> None:
    """What a chamber starts from when nobody says anything is built from images/, too."""
    assert list(named_images(str(Settings.model_fields["image"].default))) == ["trial"]


def _choice(settings: Settings) -> SiteChoice:
    return choice_of({name: getattr(settings, name) for name in OF_A_SITE})
