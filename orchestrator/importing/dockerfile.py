"""What a Dockerfile asks for, as far as a task can say it: packages, files beneath one folder, variables.

Its lines are read and never run. What a task has no words for is told, for a person to decide on.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import isabs, join, normpath

from orchestrator.change import shown
from orchestrator.importing.source import Source, refuse_odd_name
from orchestrator.task import TaskError

_APT = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
_PIP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?((==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!]+,?)*")
_SEPARATOR = re.compile(r"&&|\|\|?|;|\n|(?<![<>])&(?!>)")
# Options of installers that take the next word with them.
_WITH_VALUE = {"-t", "-i", "--index-url", "--extra-index-url", "--python", "-p", "-c", "-r", "--target", "--prefix"}
# The image that has nothing but the installer uv; what uv installs is read from the lines that start it.
_UV_IMAGE = re.compile(r"--from=((ghcr\.io/)?astral-sh|(docker\.io/)?astral)/uv([:@][A-Za-z0-9._:@-]+)?")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_TIDYING = ("rm", "mkdir", "true", "echo", "export", "set", "chmod")
# More than anybody copies or sets: COPY of the whole folder, and `ENV A=$A$A`, multiply from line to line.
_MOST_COPIED = 20_000
_MOST_VALUE_CHARACTERS = 32_768
_IGNORED = {"LABEL", "MAINTAINER", "CMD", "EXPOSE", "STOPSIGNAL", "SHELL", "ARG"}


@dataclass
class Recipe:
    """`files` are names of the source by the absolute paths that they are copied to."""

    base: str = ""
    workdir: str = "/"
    files: dict[str, str] = field(default_factory=dict)
    apt: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Installs:
    apt: list[str]
    pip: list[str]


def read_dockerfile(source: Source, name: str) -> Recipe:
    """Raises TaskError for what cannot be done without running it."""
    recipe, context, where = Recipe(), name.rpartition("/")[0], source.folder / name
    for line in _instructions(source.text(name)):
        word, _, rest = line.partition(" ")
        word, rest = word.upper(), rest.strip()
        if word == "FROM":
            if recipe.base:
                raise TaskError(f"{where}: has more than one stage; make it one image, or import by hand")
            recipe.base = rest.split()[0] if rest else ""
        elif word == "WORKDIR":
            recipe.workdir = normpath(join(recipe.workdir, rest.strip("\"'")))
        elif word in ("COPY", "ADD"):
            _copy(recipe, source, context, rest, where)
        elif word == "ENV":
            _set(recipe, rest, name, where)
        elif word == "RUN":
            _run(recipe, rest)
        elif word not in _IGNORED:
            recipe.left_out.append(f"{word} {shown(rest, 80)} of {name}")
    return recipe


def installs(command: list[str]) -> Installs | None:
    """What one command installs from Debian or the package index; None for a command that does something else."""
    words = [it for it in command if it != "sudo"]
    if words[:2] in (["apt-get", "install"], ["apt", "install"]) or (
        words[:1] in (["apt-get"], ["apt"]) and "install" in words
    ):
        return Installs([it for it in _named(words[words.index("install") + 1 :]) if _APT.fullmatch(it)], [])
    for prefix in (["pip"], ["pip3"], ["python", "-m", "pip"], ["python3", "-m", "pip"], ["uv", "pip"], ["uv"]):
        at = len(prefix)
        if words[:at] == prefix and words[at : at + 1] in (["install"], ["add"]):
            return Installs([], [it for it in _named(words[at + 1 :]) if _PIP.fullmatch(it) and it != "pip"])
    if words[:1] in (["apt-get"], ["apt"]):
        return Installs([], [])
    return None


def one_each(pip: list[str]) -> list[str]:
    """One requirement for each package: the first that says a version, else the first."""
    found: dict[str, str] = {}
    for it in pip:
        name = re.split(r"[\[=<>~!]", it, maxsplit=1)[0].lower().replace("_", "-")
        if name not in found or (found[name] == name and it != name):
            found[name] = it
    return list(found.values())


def commands_of(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a shell's text, roughly."""
    text = re.sub(r"\\\n", " ", text)
    text = "\n".join("" if line.lstrip().startswith("#") else line for line in text.split("\n"))
    for part in _SEPARATOR.split(text):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            words = part.split()
        if words:
            yield words


def _named(words: list[str]) -> list[str]:
    """Without options and what they take with them."""
    found, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            found.append(word)
        skip = not skip and word in _WITH_VALUE
    return found


def _instructions(text: str) -> Iterator[str]:
    lines = [it for it in text.splitlines() if not it.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    return (line.strip() for line in joined.splitlines() if line.strip())


def _run(recipe: Recipe, line: str) -> None:
    if line.startswith("["):
        recipe.left_out.append(f"RUN {shown(line, 80)}: write it as image.run, if you trust it")
        return
    for words in commands_of(line):
        if (found := installs(words)) is not None:
            recipe.apt += found.apt
            recipe.pip += found.pip
        elif words[0] not in _TIDYING:
            recipe.left_out.append(f"RUN {shown(' '.join(words), 80)}: write it as image.run, if you trust it")


def _copy(recipe: Recipe, source: Source, context: str, line: str, where: object) -> None:
    """Raises TaskError for what comes from elsewhere."""
    words = [it for it in _words(line) if not it.startswith(("--chown", "--chmod", "--link"))]
    if words and _UV_IMAGE.fullmatch(words[0]):
        recipe.left_out.append(f"COPY {shown(line, 80)}: what uv installs is in the image")
        return
    strange = next((it for it in words if it.startswith("--") or "://" in it or "<<" in it), None)
    if strange or len(words) < 2:
        raise TaskError(
            f"{where}: copies {shown(strange or line, 80)}, and only files beside it can be; put them there"
        )
    *sources, target = words
    into = len(sources) > 1 or target.endswith("/") or target in (".", "./")
    target = normpath(target if isabs(target) else join(recipe.workdir, target))
    for given in sources:
        pattern = normpath(given).lstrip("/")
        pattern = "" if pattern == "." else pattern
        # Some build in the task's own folder, which has the names of all that is beneath it.
        found = dict(_matching(source, context, pattern, into=into)) or dict(_matching(source, "", pattern, into=into))
        if not found:
            raise TaskError(f"{where}: copies {shown(given, 80)}, which is not there; mend it")
        places = {normpath(join(target, end)): name for end, name in found.items()}
        for place in places:
            refuse_odd_name(source.folder, place.lstrip("/"))
        recipe.files.update(places)
        if len(recipe.files) > _MOST_COPIED:
            raise TaskError(f"{where}: copies files to more than {_MOST_COPIED:,} places; copy each of them once")


def _matching(source: Source, context: str, pattern: str, *, into: bool) -> Iterator[tuple[str, str]]:
    """Names by where they go beneath the target: what is in a folder, or the file itself, which may get its name."""
    prefix = f"{context}/" if context else ""
    has_signs = not {*pattern}.isdisjoint("*?[")
    for name in source.names:
        if name.startswith(prefix) and name != f"{prefix}Dockerfile":
            inner = name.removeprefix(prefix)
            if not pattern or inner.startswith(f"{pattern}/"):
                yield inner.removeprefix(f"{pattern}/") if pattern else inner, name
            elif inner == pattern or (has_signs and fnmatchcase(inner, pattern)):
                yield (inner.rpartition("/")[2] if into or inner != pattern else ""), name


def _words(line: str) -> list[str]:
    if line.startswith("["):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return []
        return [str(it) for it in found] if isinstance(found, list) else []
    return line.split()


def _set(recipe: Recipe, line: str, name: str, where: object) -> None:
    """A value that is made of what the base image sets is left out: another image has a PATH of its own.

    Raises TaskError for a value without end.
    """
    before = dict(recipe.env)  # a line sees the variables of the lines before it
    for variable, value in _variables(line).items():
        named = ["".join(it) for it in _VARIABLE.findall(value)]
        unknown = [it for it in named if it not in before]
        if unknown:
            recipe.left_out.append(f"ENV {variable} of {name}: it names {shown(unknown[0], 40)} of the base image")
        elif len(value) + sum(len(before[it]) for it in named) > _MOST_VALUE_CHARACTERS:
            raise TaskError(f"{where}: ENV {shown(variable, 40)} grows too long; write a shorter one")
        else:
            recipe.env[variable] = _VARIABLE.sub(lambda it: before[it[1] or it[2]], value)


def _variables(line: str) -> dict[str, str]:
    try:
        words = shlex.split(line)
    except ValueError:
        return {}
    if words and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)
