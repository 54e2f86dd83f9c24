"""What a task lets an agent change: the paths, the sizes and the modes. Asked before anything is looked at."""

from dataclasses import dataclass
from functools import cached_property

from orchestrator.change.names import check_name, folded, is_special
from orchestrator.change.patterns import is_exact, matches
from orchestrator.change.refusal import Reason, Refusal, shown_path
from orchestrator.change.regions import Region, difference_outside, split_entry
from orchestrator.change.tree import File
from orchestrator.text import shown
from orchestrator.units import format_size

_PATTERNS_TOLD = 20
_FOLDERS = 50  # of one path; what stores the tree takes no more than twice as many


@dataclass(frozen=True)
class Caps:
    """Of one change: its raw text, the files and hunks in it, and what it writes into each file and in all.

    What it replaces or deletes has to be compared as well, so both sides together have a bound.
    """

    text_bytes: int = 1 << 20
    text_lines: int = 150_000
    files: int = 64
    hunks: int = 512
    file_bytes: int = 1 << 20
    total_bytes: int = 4 << 20
    compared_bytes: int = 16 << 20
    compared_lines: int = 400_000
    path_bytes: int = 240


DEFAULT_CAPS = Caps()


@dataclass(frozen=True)
class Policy:
    """Editable and hidden paths are patterns (see patterns.py); a path that is both is hidden. An editable one may name
    a region of its file (see regions.py): then only its regions may change, whatever other patterns match it.

    Hidden patterns ignore case, and one that matches a folder hides all beneath it. Names that tools read unasked
    (conftest.py, .gitignore, …) are editable only where `editable` has their exact path. Raises ValueError for a
    pattern that could never match, or not mean what it seems to.
    """

    editable: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    caps: Caps = DEFAULT_CAPS
    mode_may_change: bool = False

    def __post_init__(self) -> None:
        for pattern in (*self.patterns, *self.hidden):
            _check_pattern(pattern)
        whole = {entry for entry in self.editable if ":" not in entry}
        for path, regions in self.regions.items():
            if path in whole:
                raise ValueError(f"{shown(path)}: is editable as a whole too; take {path} or {path}{regions[0]} out")
            if len(set(regions)) < len(regions):
                raise ValueError(f"{shown(path)}: names a region twice; take one out")

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """The paths and globs of what is editable, in whole or in part."""
        return tuple(dict.fromkeys(split_entry(entry)[0] for entry in self.editable))

    @cached_property
    def regions(self) -> dict[str, tuple[Region, ...]]:
        """The files of which only parts are editable."""
        found: dict[str, tuple[Region, ...]] = {}
        for path, region in map(split_entry, self.editable):
            if region:
                found[path] = (*found.get(path, ()), region)
        return found

    @property
    def only(self) -> str | None:
        """The one editable file, where there is just one: a block without a path can only mean this."""
        alone = len(self.patterns) == 1 and is_exact(self.patterns[0])
        return self.patterns[0] if alone else None

    def check(self, path: str) -> None:
        """Refuse a path that a change may not have on any of its sides."""
        if len(path.encode("utf-8", "surrogatepass")) > self.caps.path_bytes:
            raise Refusal(Reason.PATH_TOO_LONG, shown(path))
        if path.count("/") > _FOLDERS:
            raise Refusal(Reason.PATH_TOO_LONG, shown(path))
        check_name(path)
        if is_special(path) and not (is_exact(path) and path in self.patterns):
            raise Refusal(Reason.NAME_RESERVED, shown(path))
        if self.hides(path) or not any(matches(pattern, path) for pattern in self.patterns):
            raise self.not_editable(path)

    def check_regions(self, path: str, old: File | None, new: File | None) -> None:
        """Refuse a file that differs outside its regions, or comes or goes although it has some."""
        regions = self.regions.get(path)
        if not regions or old == new:
            return
        if old is None or new is None:
            why = "it has regions, so it stays where it is"
        else:
            why = difference_outside(path, old.data, new.data, regions)
        if why:
            names = ", ".join(f"{shown(path)}{region}" for region in regions[:_PATTERNS_TOLD])
            raise Refusal(Reason.NOT_EDITABLE, f"{shown_path(path)}: {why}", f"of this file you may edit: {names}")

    def hides(self, path: str) -> bool:
        """Whether the path, or a folder above it, is hidden; so is the name of a folder whose contents are."""
        names = folded(path).split("/")
        above = ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]
        asked = [*above, f"{above[-1]}/\0"]
        return any(matches(folded(pattern), name) for pattern in self.hidden for name in asked)

    def not_editable(self, path: str) -> Refusal:
        """One answer, whether the path is hidden, read-only or not there: it must not tell which."""
        return Refusal(Reason.NOT_EDITABLE, shown_path(path), f"you may edit: {self._listed(_PATTERNS_TOLD)}")

    def told(self) -> str:
        """What the agent's system prompt says of all this. Hidden paths are not mentioned."""
        caps = self.caps
        modes = "The executable bit may change." if self.mode_may_change else "File modes may not change."
        return (
            f"You may edit, create and delete only these paths: {self._listed(len(self.editable))}\n"
            "(* stands for any characters within one name, ** for any folders.) Any other path is refused, and with it "
            f"the whole change.\n{self.told_regions()}"
            f"A change has at most {format_size(caps.text_bytes)} and {caps.text_lines} lines of text, {caps.files} "
            f"files and {caps.hunks} hunks; a file has at most {format_size(caps.file_bytes)}, all files of a change "
            f"together {format_size(caps.total_bytes)}, and {caps.compared_lines} lines with those that they replace, "
            f"a path {caps.path_bytes} bytes. Text files only, no links, no submodules. {modes}"
        )

    def told_regions(self) -> str:
        """Which parts of which files, a line for each; empty where files are editable as a whole."""
        lines = [
            f"Of {shown(path, 1000)} you may change only {'; and '.join(region.told for region in regions)}."
            for path, regions in self.regions.items()
        ]
        more = " All else in these files stays as it is, byte for byte, or the whole change is refused.\n"
        return "\n".join(lines) + more if lines else ""

    def _listed(self, count: int) -> str:
        listed = ", ".join(shown(pattern, 1000) for pattern in self.editable[:count])
        more = len(self.editable) - count
        return (listed or "nothing") + (f" and {more} more" if more > 0 else "")


def _check_pattern(pattern: str) -> None:
    if any("**" in part and part != "**" for part in pattern.split("/")):
        raise ValueError(f"{shown(pattern)}: ** stands alone between slashes; write src/**/name or src/*")
    try:
        check_name(pattern.replace("*", "x").replace("?", "x"))
    except Refusal as refusal:
        raise ValueError(f"{shown(pattern)}: {refusal.reason}; write a plain relative path or glob") from None
