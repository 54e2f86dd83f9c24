"""The kinds of text in a task: names, commands, globs, places, variables. Each says what it takes when it refuses."""

import re
from pathlib import PurePosixPath
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from orchestrator.change import Policy

_Item = TypeVar("_Item")

# The chamber sets these; a value of the task's own would be lost, or mislead the judge.
_RESERVED = ("BLASTDOOR_", "EVO_")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_INPUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("contains a NUL byte; remove it")
    return value


def _line(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("must be one line of plain text, and not empty")
    return value


def _task_name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", value):
        raise ValueError(f'"{value}" is not a name; use up to 64 small letters, digits and -')
    return value


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(f'"{value}" is not a name; use up to 64 letters, digits, _, . and -')
    return value


def _input_name(value: str) -> str:
    if not _INPUT.fullmatch(value):
        raise ValueError(f'"{value}" is not a name; use letters, digits, ., _ and -, with a letter or digit first')
    return value


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", value):
        raise ValueError(f'"{value}" is not a variable; use letters, digits and _')
    if value.upper().startswith(_RESERVED):
        raise ValueError("names that start with BLASTDOOR_ or EVO_ are set by the chamber; choose another")
    return value


def _inside(value: str) -> str:
    path = PurePosixPath(_line(value))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f'"{value}" leaves the folder; name a place inside it, relative and without ..')
    return str(path)


def _glob(value: str) -> str:
    Policy(editable=(), hidden=(value,))
    return value


def _editable(value: str) -> str:
    Policy(editable=(value,))
    return value


def _no_option(value: str) -> str:
    if value.startswith("-"):
        raise ValueError(f'"{value}" looks like an option; name the thing itself')
    return _line(value)


def _package(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]*(=[A-Za-z0-9.+:~-]+)?", value):
        raise ValueError(f'"{value}" is not a package of Debian; write it like gcc or gcc=4:12.2.0-3')
    return value


def _image(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}", value):
        raise ValueError(f'"{value}" is not the name of an image; write it like blastdoor-trial:latest')
    return value


def parse_command(value: object) -> object:
    """A list is run as it is; a text is a line for the shell."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("is empty; write a command or leave the key out")
        return ("sh", "-c", value)
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list of words, ["python3", "solve.py"], or one line for the shell')
    return tuple(value)


def _program(value: tuple[str, ...]) -> tuple[str, ...]:
    if value and (not value[0].strip() or value[0].startswith("-")):
        raise ValueError(f'"{value[0]}" is not a program; name one first')
    return value


def _in_order(value: dict[str, _Item]) -> dict[str, _Item]:
    return dict(sorted(value.items()))


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, AfterValidator(_line)]
TaskName = Annotated[str, AfterValidator(_task_name)]
Name = Annotated[str, AfterValidator(_name)]
InputName = Annotated[str, AfterValidator(_input_name)]
Variable = Annotated[str, AfterValidator(_variable)]
Place = Annotated[str, Field(max_length=1024), AfterValidator(_line)]
Inside = Annotated[str, Field(max_length=1024), AfterValidator(_inside)]
Glob = Annotated[str, AfterValidator(_glob)]
Editable = Annotated[str, AfterValidator(_editable)]
Requirement = Annotated[str, Field(max_length=512), AfterValidator(_no_option)]
Package = Annotated[str, AfterValidator(_package)]
ImageName = Annotated[str, AfterValidator(_image)]
Revision = Annotated[str, Field(max_length=255), AfterValidator(_no_option)]

_Words = Annotated[tuple[Text, ...], Field(max_length=1024), BeforeValidator(parse_command), AfterValidator(_program)]
Command = Annotated[_Words, Field(min_length=1)]
MaybeCommand = _Words

# Kept in order of their names: a stored task, whose keys are sorted, must read back as the very same value.
InOrder = AfterValidator(_in_order)
Env = Annotated[dict[Variable, Text], InOrder]
Inputs = Annotated[dict[InputName, Place], Field(max_length=64), InOrder]
