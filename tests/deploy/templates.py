"""The templates of `deploy/`, read as their providers read them."""

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
IMAGES = ROOT / "images"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
# Of Blastdoor, wherever a template names one.
_OURS = re.compile(r"\bblastdoor-([a-z]+)(?=:latest)")


def load(path: Path) -> Any:
    """YAML 1.2, where `on` is a word and not a truth."""
    return YAML(typ="safe", pure=True).load(path.read_text())


def vendored(name: str) -> dict[str, Any]:
    """A provider's own schema, from the files of check-jsonschema, whose command wants a newer click than SkyPilot."""
    spec = importlib.util.find_spec("check_jsonschema")
    assert spec is not None
    assert spec.origin is not None
    schema: dict[str, Any] = json.loads(
        Path(spec.origin).parent.joinpath("builtin_schemas/vendor", f"{name}.json").read_text()
    )
    return schema


def conforms(content: Any, schema: dict[str, Any]) -> None:
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    problems = [
        f"{'/'.join(map(str, it.absolute_path))}: {it.message}" for it in validator(schema).iter_errors(content)
    ]
    assert not problems, problems


def files() -> list[Path]:
    return sorted(path for path in DEPLOY.rglob("*") if path.is_file())


def definitions() -> list[Path]:
    return sorted(path for path in IMAGES.rglob("*") if path.is_file() and path.suffix != ".md")


def named_images(text: str) -> Iterator[str]:
    for match in _OURS.finditer(text):
        yield match[1]
