"""What can be chosen by a name: what is built in, and what installed packages bring by entry points.

Both are looked up in the same way, and loaded when they are used. What is wrong with one package never keeps the others
from being used.
"""

import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any

# What packages of others are written against; it changes when one of the protocols does.
INTERFACE = 1
MARK = "blastdoor_interface"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ChoiceError(ValueError):
    """A name that stands for nothing that can be used. One line for a person."""


class UnknownName(ChoiceError):
    """Nothing has this name: neither we nor an installed package."""


@dataclass(frozen=True)
class Entry:
    """`code` is a module and, after a colon, a name in it. `traits` say what has to be known before it is loaded; those
    of another package are attributes of what is loaded. `package` is empty for what is built in, and for
    `lent`, which a caller handed over itself.
    """

    code: str = ""
    traits: tuple[str, ...] = ()
    package: str = ""
    version: str = ""
    lent: object = None

    @property
    def is_outside(self) -> bool:
        return bool(self.package) or self.lent is not None

    def __str__(self) -> str:
        """For a sentence, after the name: whose it is."""
        return f" of the package {self.package} {self.version}" if self.package else ""


# By group and name. A context of its own for each search: two of them may run beside each other.
_LENT: ContextVar[Mapping[tuple[str, str], Entry]] = ContextVar("lent")


@dataclass(frozen=True)
class Kind:
    """`noun` is what people call one of them, `group` where packages announce theirs."""

    noun: str
    group: str
    built_in: Mapping[str, Entry] = field(repr=False)

    def names(self) -> list[str]:
        return [*self.built_in, *sorted(_installed(self.group, tuple(sys.path)).usable(self.built_in))]

    def with_trait(self, trait: str) -> list[str]:
        """Of what is built in."""
        return [name for name, entry in self.built_in.items() if trait in entry.traits]

    def find(self, name: str) -> Entry:
        """Raises UnknownName, and ChoiceError for a name that two packages have; nothing is loaded."""
        lent = _LENT.get({}).get((self.group, name))
        if found := lent or self.built_in.get(name):
            return found
        installed = _installed(self.group, tuple(sys.path))
        brought = installed.entries.get(name, ())
        if len(brought) > 1:
            both = " and ".join(f"{it.package} {it.version}" for it in brought)
            raise ChoiceError(f'the {self.noun} "{name}" is brought by two packages, {both}; remove one of them')
        if not brought:
            raise UnknownName(self._unknown(name))
        return brought[0]

    def load(self, name: str) -> Any:
        """Raises ChoiceError for what cannot be loaded, or is written for another interface."""
        entry = self.find(name)
        if entry.lent is not None:
            return entry.lent
        module, _, attribute = entry.code.partition(":")
        if not entry.package:
            return getattr(importlib.import_module(module), attribute)
        whose = f'the {self.noun} "{name}"{entry}'
        try:
            home: Any = importlib.import_module(module)
            loaded = home
            for part in attribute.split("."):
                loaded = getattr(loaded, part)
        except (Exception, SystemExit) as error:
            raise ChoiceError(f"{whose} cannot be loaded ({told(error)}); mend or remove the package") from error
        written_for = getattr(loaded, MARK, getattr(home, MARK, None))
        if written_for != INTERFACE:
            said = f"{MARK} = {written_for!r}" if written_for is not None else f"no {MARK}"
            mend = f"its author adds {MARK} = {INTERFACE}" if written_for is None else "install a version that fits"
            raise ChoiceError(f"{whose} says {said}, and this is interface {INTERFACE}; {mend}")
        return loaded

    def has(self, name: str, trait: str) -> bool:
        """False for what is not there or cannot be loaded: to look at a campaign, nobody needs it."""
        try:
            entry = self.find(name)
            return trait in entry.traits or (entry.is_outside and getattr(self.load(name), trait, False) is True)
        except ChoiceError:
            return False

    def faults(self) -> list[str]:
        """What packages announce and nobody can use, as far as it can be told without loading them."""
        return _installed(self.group, tuple(sys.path)).faults(self)

    @contextmanager
    def lend(self, name: str, lent: object) -> Iterator[None]:
        """Known by this name meanwhile. Raises ChoiceError for a name that is taken, or is none."""
        if not _NAME.fullmatch(name):
            raise ChoiceError(f'"{name}" is no name of a {self.noun}; use letters, digits and . _ -')
        if name in self.names():
            raise ChoiceError(f'the name "{name}" is that of another {self.noun}{self.find(name)}; give yours its own')
        before = _LENT.get({})
        _LENT.set({**before, (self.group, name): Entry(lent=lent)})
        try:
            yield
        finally:
            _LENT.set(before)

    def _unknown(self, name: str) -> str:
        known = self.names()
        near = get_close_matches(name, known, n=1)
        return f'must be {listed(known)}, not "{name}"{f"; did you mean {_quoted(near[0])}?" if near else ""}'


@dataclass(frozen=True)
class _Installed:
    """What packages announce in one group."""

    entries: Mapping[str, Sequence[Entry]]

    def usable(self, taken: Mapping[str, Entry]) -> list[str]:
        return [
            name for name, found in self.entries.items() if len(found) == 1 and name not in taken and _is_name(name)
        ]

    def faults(self, kind: Kind) -> list[str]:
        lines = []
        for name, found in self.entries.items():
            packages = " and ".join(f"{it.package} {it.version}" for it in found)
            if not _is_name(name):
                lines.append(f"{packages} brings a {kind.noun} whose name is none ({name!r}); it is left out")
            elif name in kind.built_in:
                lines.append(
                    f'{packages} brings a {kind.noun} "{name}", a name that is built in; it is left out; rename it'
                )
            elif len(found) > 1:
                lines.append(f'{packages} both bring a {kind.noun} "{name}"; neither can be used')
        return lines


@cache
def _installed(group: str, path: tuple[str, ...]) -> _Installed:
    """What is on the path; it is read once."""
    from importlib.metadata import entry_points  # takes longer to load than all else here

    del path
    entries: dict[str, list[Entry]] = {}
    for point in entry_points(group=group):
        package, version = (point.dist.name, point.dist.version) if point.dist else ("an unknown package", "")
        found = Entry(f"{point.module}:{point.attr}", package=package, version=version)
        if found not in entries.setdefault(point.name, []):  # a package that is on the path twice is one
            entries[point.name].append(found)
    return _Installed(entries)


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _quoted(name: str) -> str:
    return f'"{name}"'


def listed(names: Sequence[str]) -> str:
    """As a sentence has them: "a", "b" or "c"."""
    *most, last = map(_quoted, names)
    return f"{', '.join(most)} or {last}" if most else last


def told(error: BaseException) -> str:
    """What went wrong in somebody else's code, in one line."""
    words = " ".join(str(error).split())
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}…"
