"""What an importer is given and what it gives back. An importer is a function from one to the other.

It raises TaskError, with one line for a person, for a source that cannot become a task.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ImportRequest:
    """`source` is a folder. The rest is what a person said where the folder alone does not tell; `packages` are names
    on the package index, by the names that a program imports; `placed` are folders that the evaluator looks for, by
    where it does. With `stub_text`, an evaluator is taken that looks at the program's text and can be given none.
    """

    source: Path
    name: str
    evaluator: str | None = None
    program: str | None = None
    config: str | None = None
    metric: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    placed: Mapping[str, Path] = field(default_factory=dict)
    stub_text: bool = False


@dataclass(frozen=True)
class Imported:
    """A task as files, by their paths in its folder. `mapped` says what became of what was there, `left_out` what has
    no counterpart, `findings` what a person should know before trusting a score.
    """

    files: Mapping[str, bytes]
    mapped: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
