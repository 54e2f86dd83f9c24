"""A config.yaml as plain values, within bounds. This is the only file that knows the YAML library."""

from typing import Any

import yaml

from orchestrator.change import shown
from orchestrator.importing.source import Source
from orchestrator.task import TaskError

_MAX_DEPTH = 32
_MAX_VALUE_CHARACTERS = 1000
_TEXT = "tag:yaml.org,2002:str"


def read_config(source: Source, name: str) -> dict[str, Any]:
    """Raises TaskError for what is no mapping of plain values."""
    path = source.folder / name
    text = source.text(name)
    try:
        if why := _unfit(text):
            raise TaskError(f"{path}: {why}")
        found = yaml.safe_load(text)
    except TaskError:
        raise
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise TaskError(f"{path}{line}: is not YAML ({shown(str(error.problem))}); mend it") from None
    except Exception:  # noqa: BLE001  the library raises whatever int, float and its own tables do for a value
        raise TaskError(f"{path}: is not YAML that can be read; mend it") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise TaskError(f"{path}: is no table of settings; mend it")
    return found


def _unfit(text: str) -> str:
    """What would take the library without end, found while it reads on: deep nesting and long
    numbers take the square of their time.
    """
    depth, resolver = 0, yaml.SafeLoader("")
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            return f"is nested more than {_MAX_DEPTH} deep; make it flatter"
        if isinstance(event, yaml.AliasEvent):
            return "has an alias (*name), which can unfold without end; write the value out"
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > _MAX_VALUE_CHARACTERS:
            plain = event.tag is None or event.tag == "!"
            if (resolver.resolve(yaml.ScalarNode, event.value, event.implicit) if plain else event.tag) != _TEXT:
                return f"has a value of more than {_MAX_VALUE_CHARACTERS:,} characters that is no text; mend it"
    return ""


def section(config: dict[str, Any], name: str) -> dict[str, Any]:
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def number(value: object, low: float, high: float, otherwise: float) -> float:
    """A number of the config within bounds; anything else counts as not said."""
    if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
        return float(value)
    return otherwise
