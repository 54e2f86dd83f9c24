"""An option of a run is declared once: flag, setting, keyword and what is said of it are made from that."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pydantic import ValidationError

from orchestrator.api import search
from orchestrator.run_options import (
    OPTIONS,
    Choice,
    Flags,
    Named,
    Names,
    Number,
    Quantity,
    Scope,
    Share,
    Switch,
    Text,
    UserOptions,
    options_of,
)
from orchestrator.settings import Settings
from orchestrator.task import Budget, SearchSpec, TaskError
from orchestrator.views.commands import COMMANDS, load
from orchestrator.views.flags import RunFlag
from orchestrator.wiring.options import Options

# Flags that are called like an option and mean something else, each on purpose.
OF_ANOTHER_MEANING = {
    ("ab", "--arms"),  # the two sides of a comparison
    ("attack", "--runtime"),  # of several, one after the other
    ("audit", "--proposer"),  # who is asked for cheats
    ("chart", "--width"),  # of a picture
    ("discover", "--proposer"),  # who is asked for a statement and questions
    ("discover", "--wall"),  # of the repository's own tests
    ("doctor", "--runtime"),
    ("exec", "--gpu"),  # a limit of one chamber
    ("exec", "--wall"),
    ("serve", "--control"),  # whether the page acts
    ("shell", "--wall"),
    ("tree", "--depth"),  # of a picture
}


def flags_by_hand() -> Iterator[tuple[str, str]]:
    """Of every command, those flags that have an option's name and are not made from its declaration."""
    spelt = {f"--{name.replace('_', '-')}" for name in OPTIONS}
    for name in COMMANDS:
        for flag in load(name).params:
            if isinstance(flag, click.Option) and not isinstance(flag, RunFlag):
                yield from ((name, it) for it in flag.opts if it in spelt)


def test_nothing_is_declared_by_hand() -> None:
    """A command takes an option of a run from the model; a flag that only sounds like one is named above. Two settings
    always have a value, and say which; no other field of the settings is an option of a run.
    """
    assert set(flags_by_hand()) == OF_ANOTHER_MEANING
    assert set(Settings.__annotations__) & set(OPTIONS) == {"backend", "runtime"}


@pytest.mark.parametrize(
    ("command", "scopes"),
    [
        ("run", [Scope.RUN, Scope.CAP, Scope.SITE]),
        ("resume", [Scope.CAP, Scope.SITE]),
        *((name, [Scope.SITE]) for name in ("check", "gate", "guards", "replay", "shell")),
    ],
)
def test_commands_take_whole_scopes(command: str, scopes: list[Scope]) -> None:
    """With the type, the bounds and the words of the declaration."""
    flags = {str(it.name): it for it in load(command).params if isinstance(it, RunFlag)}
    assert set(flags) == {name for scope in scopes for name in options_of(scope)}
    assert {name: flag.help for name, flag in flags.items()} == {name: OPTIONS[name].help for name in flags}
    assert isinstance(flags["standing"].type, click.IntRange)
    assert (flags["standing"].type.min, flags["standing"].type.max) == (0, 64)


def test_keywords_of_search() -> None:
    """Each is in its signature and in its docstring; a typo is one, and a value that cannot be gets one line."""
    assert set(OPTIONS) <= set(inspect.signature(search).parameters)
    text = inspect.getdoc(search) or ""
    assert all(f"    {name}: {option.help}" in text for name, option in OPTIONS.items() if name != "proposer")


async def test_bad_keywords_of_search(tmp_path: Path) -> None:
    """A name that is none is a TypeError, as in every function; a bad value gets one line with its name."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'atempts'"):
        await search(tmp_path, atempts=3)
    with pytest.raises(TaskError, match=r"^wall: 'soon' is not a duration; write it like 90s or 1h30m$"):
        await search(tmp_path, wall="soon")
    with pytest.raises(TaskError, match=r"^attempts: Input should be a valid integer"):
        await search(tmp_path, attempts="many")


def test_as_people_write_it() -> None:
    """Flags take numbers, and text as on the command line; both are shown as people write them."""
    said = Flags(usd="$5", wall="1h30m", artifacts="2GiB", rate="30/min", stall_losses=0.5, review=False)
    assert (said.usd, said.wall, said.artifacts, said.rate) == (5.0, 5400.0, 2 << 30, 0.5)
    options = Options(dict(said), dict.fromkeys(OPTIONS, "flag"))
    shown = {name: options.shown(name) for name in OPTIONS if options[name] is not None}
    assert shown == {
        "usd": "$5",
        "wall": "1h30m",
        "artifacts": "2GiB",
        "stall_losses": "$0.5",
        "rate": "30/min",
        "review": "off",
    }


def test_another_value() -> None:
    """What was said stays, but for what is said again; a name that is none is refused."""
    assert Flags(attempts=3, width=2).but(width=5) == Flags(attempts=3, width=5)
    with pytest.raises(ValidationError, match="widht"):
        Flags().but(widht=5)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("attempts = 0", "attempts\n.*greater than or equal to 1"),
        ("standing = 65", "standing\n.*less than or equal to 64"),
        ('usd = "five"', "usd\n.*is not a sum of money"),
        ("usd = -1", "usd\n.*greater than or equal to 0"),
        ("usd = nan", "usd\n.*greater than or equal to 0"),
        ('wall = "0s"', "wall\n.*greater than 0"),
        ('proposer = "foo"', 'proposer\n.*must be "grid"'),
        ('backend = "foo"', 'backend\n.*must be "docker"'),
    ],
)
def test_bounds_of_settings(own_settings: Path, line: str, says: str) -> None:
    """A setting is held to what its option can be."""
    own_settings.write_text(line + "\n")
    with pytest.raises(ValidationError, match=says):
        Settings()


SAMPLES: dict[str, tuple[str, object]] = {
    "money": ("$5", 5.0),
    "duration": ("8h", 28_800.0),
    "size": ("1MiB", 1 << 20),
    "rate": ("30/min", 0.5),
}


def sample(kind: Text) -> tuple[str, object]:
    """How people write a value, and the value."""
    match kind:
        case Number():
            return "7", 7
        case Switch():
            return "true", True
        case Quantity():
            return SAMPLES[kind.noun]
        case Share():
            return "0.9", 0.9
        case Choice():
            return kind.names[0], kind.names[0]
        case Named():
            name = kind.kind.names()[0]
            return name, name
        case Names():
            return "some, more", ("some", "more")
    return "some", "some"


TASK_KEYS = {name: table for table in (Budget, SearchSpec) for name in table.model_fields}


def test_keys_of_the_task_file() -> None:
    """What [budget] and [search] say of a run is an option, and is read there like the flag."""
    for name in TASK_KEYS.keys() - {"archive", "combination", "saturates"}:
        written, value = sample(OPTIONS[name].kind)
        said = {name: written if isinstance(OPTIONS[name].kind, Quantity) else value}
        assert getattr(TASK_KEYS[name].model_validate(said), name) == getattr(Flags(**said), name) == value, name


def test_every_setting_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As people write it."""
    samples = {name: sample(OPTIONS[name].kind) for name in UserOptions.model_fields}
    for name, (written, _) in samples.items():
        monkeypatch.setenv(f"BLASTDOOR_{name.upper()}", written)
    read = Settings()
    assert {name: getattr(read, name) for name in samples} == {name: value for name, (_, value) in samples.items()}


@pytest.mark.parametrize("said", ["2", "0", "-1", "nan", "much"])
def test_a_share_that_is_none(said: str) -> None:
    """One line says how to write it."""
    with pytest.raises(ValidationError, match=f'"{said}" is no share; write "off" or "learn", or a number like 0.95'):
        Flags(novelty=said)
