"""The files of a playbook: few, small, known by name, plain text. A task's own folder lies over those that we ship."""

import difflib
import os
import re
import stat
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from orchestrator.units import format_size

PROMPTS = tuple(f"prompts/{name}.md" for name in ("system", "draft", "improve", "debug", "params"))
NOTES = "notes.md"
CORRECTIONS = "corrections.md"

# They go into prompts, and prompts are paid for by the word.
PAGE_BYTES = 16 * 1024
TOTAL_BYTES = 96 * 1024
SKILLS = 32
VARIANTS = 16

_KNOWN = (*PROMPTS, NOTES, CORRECTIONS)
_SKILL = re.compile(r"skills/[a-z0-9][a-z0-9-]{0,63}\.md")
_VARIANT = re.compile(r"prompts/(draft|improve|debug|params)-[a-z0-9][a-z0-9-]{0,31}\.md")
_DEPTH = 2

Pages = Mapping[str, str]


class PlaybookError(Exception):
    """A playbook that cannot be used; the message is one line that says what to do."""


def default_pages() -> dict[str, str]:
    """What ships with the program."""
    return pages_of(dict(_shipped(resources.files("orchestrator.playbook") / "default", "")))


def load_pages(folder: Path | None) -> dict[str, str]:
    """The pages of a folder over those that we ship. Raises PlaybookError."""
    if folder is None:
        return default_pages()
    try:
        own = checked(pages_of(_read(folder)), str(folder))
    except OSError as error:
        raise PlaybookError(
            f"{error.filename or folder}: cannot be read ({error.strerror}); check the name and rights"
        ) from None
    return checked({**default_pages(), **own}, str(folder))


def pages_of(raw: Mapping[str, bytes]) -> dict[str, str]:
    """Stored or read files as text, in the order of their names. Raises PlaybookError for what is no text."""
    pages = {}
    for name, data in sorted(raw.items()):
        try:
            pages[name] = data.decode().replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise PlaybookError(f"{name!a} of the playbook is not UTF-8 text; save it as such") from None
    return pages


def raw_of(pages: Pages) -> dict[str, bytes]:
    return {name: text.encode() for name, text in sorted(pages.items())}


def checked(pages: Pages, where: str = "the playbook") -> dict[str, str]:
    """The same, in order. Raises PlaybookError for a name that nobody reads, or more than fits into a prompt."""
    for name, text in pages.items():
        _check_name(name, where)
        if len(text.encode()) > PAGE_BYTES:
            raise PlaybookError(
                f"{where}: {name} has more than {format_size(PAGE_BYTES)}; shorten it, prompts are paid for"
            )
        if odd := next((one for one in text if not one.isprintable() and one not in "\n\t"), None):
            raise PlaybookError(f"{where}: {name} has the character {odd!a}, which nobody sees; remove it")
        if name.startswith("prompts/") and not text.strip():
            raise PlaybookError(f"{where}: {name} is empty; write it, or remove it for the one that ships")
    skills = sum(name.startswith("skills/") for name in pages)
    if skills > SKILLS:
        raise PlaybookError(f"{where} has {skills} skills, at most {SKILLS} are read; remove some")
    if (variants := sum(map(is_variant, pages))) > VARIANTS:
        raise PlaybookError(f"{where} has {variants} variants of prompts, at most {VARIANTS} are read; remove some")
    if sum(len(text.encode()) for text in pages.values()) > TOTAL_BYTES:
        raise PlaybookError(
            f"{where} has more than {format_size(TOTAL_BYTES)} in all; shorten it, prompts are paid for"
        )
    return dict(sorted(pages.items()))


def is_variant(name: str) -> bool:
    """Whether it is another way to put a prompt."""
    return _VARIANT.fullmatch(name) is not None


def _check_name(name: str, where: str) -> None:
    if name in _KNOWN or _SKILL.fullmatch(name) or is_variant(name):
        return
    if name.startswith("skills/"):
        raise PlaybookError(
            f"{where}: {name!a} is not a skill; call it skills/name.md, with small letters, digits and -"
        )
    close = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.5)
    hint = (
        f"did you mean {close[0]}?"
        if close
        else f"pages are {', '.join(_KNOWN)}, skills/NAME.md and prompts/improve-NAME.md"
    )
    raise PlaybookError(f"{where}: {name!a} is not a page of a playbook; {hint}")


def _read(folder: Path) -> dict[str, bytes]:
    """Plain files only, each opened once; a link could lead anywhere, and what it leads to would go to a provider."""
    if not folder.is_dir():
        raise PlaybookError(f"{folder} is not a folder; put the playbook there, or take the key out")
    found: dict[str, bytes] = {}
    for parent, folders, names in os.walk(folder, onerror=_raise):
        # Tools leave such files behind.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        depth = len(Path(parent).relative_to(folder).parts)
        if depth >= _DEPTH:
            raise PlaybookError(f"{parent}: a playbook has no folders but prompts and skills; move it out")
        for name in (*folders, *names):
            if Path(parent, name).is_symlink():
                raise PlaybookError(f"{Path(parent, name)} is a link; put what it points to in its place")
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(parent, name)
            _check_name(path.relative_to(folder).as_posix(), str(folder))
            found[path.relative_to(folder).as_posix()] = _contents(path)
    return found


def _contents(path: Path) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise PlaybookError(f"{path} is not a plain file; remove it")
        # One more than is allowed: then it is refused for its size, and nothing large was read.
        return file.read(PAGE_BYTES + 1)


def _shipped(place: Traversable, above: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for inside in place.iterdir():
        if inside.is_dir():
            found += _shipped(inside, f"{above}{inside.name}/")
        elif inside.name.endswith(".md"):
            found.append((f"{above}{inside.name}", inside.read_bytes()))
    return found


def _raise(error: OSError) -> None:
    raise error
