"""Lists each guarantee of SECURITY.md with the tests that hold it.

usage: promises.py      exit code: 1 where a promise has no test, or names one that is not there
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "| guarantee | how | enforced by |"
THREATS = re.compile(r"\bT(\d+)(?:\u2013T(\d+))?")
IN_CODE = re.compile(r"(?:\bT|_[tT])(\d\d+)(?=\b|_)")


@dataclass(frozen=True)
class Promise:
    """What is promised, and the tests behind each name that the page gives for it."""

    what: str
    held: dict[str, list[str]]

    @property
    def missing(self) -> list[str]:
        return [name for name, tests in self.held.items() if not tests] if self.held else ["no test is named"]


class Index:
    """All tests and rows of the contract, `file::name`, and those in whose file a threat is named."""

    def __init__(self, root: Path) -> None:
        self.tests: list[str] = []
        self.threats: dict[str, list[str]] = {}
        for folder, begins in (("tests", "test"), ("sandbox/conformance", ""), ("sandbox/attacks", "_")):
            for path in sorted((root / folder).rglob("*.py")):
                file, text = path.relative_to(root).as_posix(), path.read_text()
                tests = [f"{file}::{name}" for name in functions(text) if name.startswith(begins)]
                self.tests += tests
                for number in set(IN_CODE.findall(text)):
                    self.threats.setdefault(f"T{int(number):02}", []).extend(tests)

    def behind(self, name: str) -> list[str]:
        """Tests of a threat, a file, a folder, or a name; with … at its end, of all names that begin so."""
        if THREATS.fullmatch(name):
            return self.threats.get(name, [])
        if name.endswith(("…", "*")):
            return [test for test in self.tests if test.partition("::")[2].startswith(name[:-1])]
        if name.endswith((".py", "/")):
            return [test for test in self.tests if f"/{name.rstrip('/')}" in re.sub("::|$", "/", f"/{test}", count=1)]
        return [test for test in self.tests if test.partition("::")[2] == name]


def functions(text: str) -> list[str]:
    return [it.name for it in ast.walk(ast.parse(text)) if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]


def promises(root: Path) -> Iterator[Promise]:
    """Each row of the table of guarantees."""
    index = Index(root)
    for line in (root / "SECURITY.md").read_text().partition(HEADER)[2].splitlines()[2:]:
        if not line.startswith("|"):
            return
        what, _, cell = (it.strip() for it in re.split(r"(?<!\\)\|", line)[1:4])
        names = set(re.findall(r"`([^` ]+)`", cell))
        for low, high in THREATS.findall(re.sub(r"`[^`]*`", "", cell)):
            names |= {f"T{number:02}" for number in range(int(low), int(high or low) + 1)}
        yield Promise(what, {name: index.behind(name) for name in sorted(names)})


def main() -> int:
    lacking = 0
    for promise in promises(ROOT):
        print(promise.what)
        for name, tests in promise.held.items():
            print(f"  {len(tests):4} {name}")
        lacking += bool(promise.missing)
    print(f"{lacking} promises without a test that they name")
    return int(lacking > 0)


if __name__ == "__main__":
    sys.exit(main())
