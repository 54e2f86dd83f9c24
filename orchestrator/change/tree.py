"""A whole file tree as a value: what a candidate is made of. It can hold plain files and nothing else."""

import hashlib
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    executable: bool = False


class Tree(Mapping[str, File]):
    """Path → file, in the order of the paths; never changes."""

    def __init__(self, files: Mapping[str, File] | None = None) -> None:
        self._files = dict(sorted((files or {}).items()))

    @classmethod
    def of(cls, files: Mapping[str, str | bytes]) -> "Tree":
        """A tree of plain files given by their text."""
        return cls({path: File(text.encode() if isinstance(text, str) else text) for path, text in files.items()})

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def items(self) -> ItemsView[str, File]:
        return self._files.items()

    def __len__(self) -> int:
        return len(self._files)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Tree of {len(self)} files, {self.digest[:12]}>"

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names, modes and contents: equal for equal trees, and for no others."""
        seal = hashlib.sha256()
        for path, file in self._files.items():
            content = hashlib.sha256(file.data).hexdigest()
            raw = path.encode("utf-8", "surrogatepass")
            seal.update(f"{content} {'x' if file.executable else '-'} {len(raw)} ".encode() + raw + b"\n")
        return seal.hexdigest()
