"""What the text of a Node package tells: its tests, how they are run, and what its image needs. Nothing of it is run,
and no script of its package.json ever is: what those would do is read from the tests themselves.

Packages are Debian's, from a table: a name on npm's index could be anybody's, and what it brings runs scripts when it
is installed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orchestrator.bounded_json import JsonRefused, loads
from orchestrator.discovery.repository import BENCHMARK, BESIDE, Parameter, Repository
from orchestrator.task import TaskError

_MANIFEST = "package.json"
_MANIFEST_BYTES = 1 << 20
_SUFFIXES = (".js", ".cjs", ".mjs")
_TEST_NAME = re.compile(r"(.+[._-])?(tests?|spec)\.[cm]?js|(test|spec)[._-].+\.[cm]?js")
_TEST_FOLDERS = frozenset(["__tests__", "spec", "test", "tests"])
_NO_TESTS = frozenset(["__fixtures__", "__mocks__", "fixture", "fixtures", "helper", "helpers", "mocks", "vendor"])
# Of a tool: with those of the tests' own, a candidate could leave out what guards it.
_SETTINGS = re.compile(r"(.+\.(config|conf|setup)|\..+rc|gulpfile|gruntfile)\.[cm]?js", re.IGNORECASE)
_IMPORT = re.compile(r"""(?:\brequire\(|\bfrom\s|\bimport\s|\bimport\()\s*['"]([^'"\n]{1,200})['"]""")
_BLOCK = re.compile(r"^[ \t]*(describe|it|suite) ?\(", re.MULTILINE)
_JEST = re.compile(r"\b(expect\(|jest\.|vi\.)|^[ \t]*(describe|it|test) ?\(", re.MULTILINE)
_JEST_GLOBALS = "@jest/globals"
# What brings a `describe` of its own, and what brings a `test`, too.
_DESCRIBING = frozenset(["jasmine", "node:test", "qunit", "vitest"])
_TESTING = _DESCRIBING | {"ava", "tap", "tape"}
_CONSTANT = re.compile(
    r"^(?:export )?(?:const|let|var) ([A-Z][A-Z0-9_]{1,59}) = (-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?);?$", re.MULTILINE
)
_MOST_TESTS = 60
_MOST_TEXT = 256 << 10
_BUILTIN = frozenset(
    [
        "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram", "dns",
        "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net", "os", "path", "perf_hooks",
        "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder", "sys", "test", "timers",
        "tls", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib",
    ]
)  # fmt: skip
# By the names that a program requires; Debian's archive has them, and nobody else can take a name there.
DEBIAN = {
    name: f"node-{name}"
    for name in (
        "ansi-regex", "assert", "async", "benchmark", "debug", "deep-equal", "es6-promise", "expect.js", "glob",
        "iconv-lite", "inherits", "is-buffer", "jasmine", "lodash", "minimist", "ms", "object-inspect", "once",
        "proxyquire", "safe-buffer", "seedrandom", "semver", "should", "sinon", "strip-ansi", "tap", "tape",
        "underscore", "vows", "xtend",
    )
} | {"ava": "ava", "chai": "chai", "jest": "jest", _JEST_GLOBALS: "jest", "mocha": "mocha"}  # fmt: skip
# Where Debian's packages are; Node from elsewhere does not look there by itself.
NODE_PATH = "/usr/share/nodejs:/usr/lib/nodejs"


@dataclass(frozen=True)
class NodePackage:
    """`runner` are the words before the name of a file of tests; `apt` is what the image needs; `unknown` are imports
    that no table has.
    """

    tests: tuple[str, ...]
    benchmarks: tuple[str, ...]
    code: tuple[str, ...]
    runner: tuple[str, ...]
    apt: tuple[str, ...]
    unknown: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def can_be_watched(self) -> bool:
        """Jest loads modules in a way of its own."""
        return self.runner != ("jest", "--runInBand")

    def plan(self) -> dict[str, object]:
        return {"tests": list(self.tests), "runner": list(self.runner), "files": list(self.code)}

    def guard(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        """The tests that passed, one after the other, until one fails."""
        files = [it for it in self.tests if it not in failed]
        each = 'for it do {} "$it" || exit 1; done'.format(" ".join(self.runner))
        return ("env", f"NODE_PATH={NODE_PATH}", "sh", "-c", each, "tests", *files)


def node_package(repository: Repository, given: Mapping[str, str]) -> NodePackage | None:
    """None where there is none that has tests or benchmarks. `given` are Debian's packages by the names that a program
    requires, said by a person.

    Raises TaskError for a package.json that cannot be read.
    """
    if _MANIFEST not in repository.names:
        return None
    manifest = _manifest(repository)
    files = [it for it in repository.names if it.endswith(_SUFFIXES) and not it.endswith(".min.js")]
    tests = tuple(it for it in files if _is_test(it))[:_MOST_TESTS]
    code = tuple(it for it in files if it not in tests and not _is_beside(it))
    benchmarks = tuple(it for it in files if BENCHMARK.search(it) and it not in tests)
    if not tests and not benchmarks:
        return None
    texts = {name: repository.files[name][:_MOST_TEXT].decode("utf-8", "replace") for name in (*tests, *code)}
    runner = _runner(manifest, [texts[it] for it in tests])
    own = manifest.get("name")
    wanted = {top for text in texts.values() for top in _tops(text) if top != own}
    known = {top: given.get(top) or DEBIAN.get(top) for top in sorted(wanted | ({runner[0]} & {*DEBIAN}))}
    return NodePackage(
        tests,
        benchmarks,
        code,
        runner,
        ("nodejs", *sorted({it for it in known.values() if it})),
        tuple(top for top, it in known.items() if not it),
        tuple(it for name in code for it in _parameters(name, texts[name])),
    )


def _manifest(repository: Repository) -> dict[str, Any]:
    try:
        found = loads(repository.files[_MANIFEST], max_bytes=_MANIFEST_BYTES, max_depth=16, max_digits=40)
    except JsonRefused:
        found = None
    if not isinstance(found, dict):
        raise TaskError(f"{repository.source.folder / _MANIFEST}: is not JSON that can be read; mend it")
    return found


def _is_test(name: str) -> bool:
    path = PurePosixPath(name)
    folders = {*path.parts[:-1]}
    return bool(folders & _TEST_FOLDERS or _TEST_NAME.fullmatch(path.name)) and not folders & _NO_TESTS


def _is_beside(name: str) -> bool:
    folders = {*PurePosixPath(name).parts[:-1]}
    beside = folders & {*BESIDE - {"dist"}, *_TEST_FOLDERS, *_NO_TESTS}
    return bool(beside or BENCHMARK.search(name) or _SETTINGS.fullmatch(PurePosixPath(name).name))


def _runner(manifest: Mapping[str, Any], texts: list[str]) -> tuple[str, ...]:
    """By what the tests use, and by what the manifest names; a file that needs neither runs itself."""
    scripts, needs = manifest.get("scripts"), manifest.get("devDependencies")
    script = set(re.findall(r"[\w-]+", str(scripts.get("test")) if isinstance(scripts, dict) else ""))
    packages = set(needs) if isinstance(needs, dict) else set[str]()
    imports = {it for text in texts for it in _IMPORT.findall(text)}
    is_mocha = "mocha" in script or ("mocha" in packages and "jest" not in script)
    is_jest = "jest" in script | packages | set(manifest) or _JEST_GLOBALS in imports
    if (is_mocha or not is_jest) and not imports & _DESCRIBING and any(_BLOCK.search(text) for text in texts):
        return ("mocha", "--exit")
    if is_jest and not imports & _TESTING and any(_JEST.search(text) for text in texts):
        return ("jest", "--runInBand")
    return ("node",)


def _tops(text: str) -> set[str]:
    """The packages that it imports: neither files of its own nor what Node brings."""
    found = set[str]()
    for name in _IMPORT.findall(text):
        parts = name.split("/")
        top = "/".join(parts[:2]) if name.startswith("@") else parts[0]
        if not name.startswith((".", "/", "node:", "file:", "data:")) and top not in _BUILTIN:
            found.add(top)
    return found


def _parameters(path: str, text: str) -> list[Parameter]:
    return [
        Parameter(path, text.count("\n", 0, it.start()) + 1, it[1], float(it[2])) for it in _CONSTANT.finditer(text)
    ]
