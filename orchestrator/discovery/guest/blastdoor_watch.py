"""Runs the tests or a benchmark of a repository in a chamber, and writes down where the time goes, or what was called.
Standard library only, Python 3.9 up.

    python3 -m blastdoor_watch profile plan.json     writes profile.json
    python3 -m blastdoor_watch record plan.json      writes record.json, and a file of calls for each function

The plan says what to run (`runner` is "pytest", "unittest", "script" or "module", with its `arguments`), for how many
`seconds`, the `roots` to import from, and the `functions` to record, as [file, name]. Everything written is the word of
a stranger's code.
"""

from __future__ import annotations

import ast
import cProfile
import functools
import hashlib
import importlib.machinery
import json
import os
import random
import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blastdoor_kinds import encode_exact, error_name
from blastdoor_values import NotPlain, encode

_ROWS = 400
_EDGES = 8000
_SEEN = 20_000
_KEPT = 300
_ERRORS = 20
_CALL_BYTES = 1 << 19
_ALL_BYTES = 3 << 20
_FAILED = 200
_OUT = Path(os.environ.get("BLASTDOOR_OUT", "."))


class Outcomes:
    """Which tests passed: a plugin of pytest's, and what unittest is counted with."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.broken: list[str] = []
        self.cut = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broken.append(report.nodeid)

    def told(self) -> dict[str, Any]:
        told = {"passed": self.passed, "failed": self.failed[:_FAILED], "broken": self.broken[:_FAILED]}
        return {**told, "cut": self.cut}


def run(plan: dict[str, Any], outcomes: Outcomes) -> int:
    """Until it ends, or its time is over: what was seen until then counts."""

    def enough(_number: int, _frame: Any) -> None:
        outcomes.cut = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, enough)
    signal.setitimer(signal.ITIMER_REAL, plan["seconds"], 5.0)
    try:
        return _run(plan, outcomes)
    except KeyboardInterrupt:
        if not outcomes.cut:
            raise
        return 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _run(plan: dict[str, Any], outcomes: Outcomes) -> int:
    arguments: list[str] = plan["arguments"]
    if plan["runner"] == "pytest":
        import pytest

        return int(pytest.main(arguments, plugins=[outcomes]))
    if plan["runner"] == "unittest":
        return _run_unittest(arguments, outcomes)
    sys.argv = arguments
    try:
        if plan["runner"] == "module":
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _run_unittest(arguments: list[str], outcomes: Outcomes) -> int:
    import unittest

    found = unittest.TestResult()
    unittest.main(module=None, argv=["unittest", *arguments], exit=False, testRunner=_Quiet(found, outcomes))
    wrong = [str(test.id()) for test, _ in [*found.failures, *found.errors]]
    outcomes.broken = [name for name in wrong if name.startswith("unittest.loader.")]
    outcomes.failed = [name for name in wrong if name not in outcomes.broken]
    outcomes.passed = found.testsRun - len(wrong) - len(found.skipped)
    return int(bool(wrong))


class _Quiet:
    """Runs tests of unittest's into one result, which is there when they are cut short, too."""

    def __init__(self, result: Any, outcomes: Outcomes) -> None:
        self._result = result
        self._outcomes = outcomes

    def run(self, tests: Any) -> Any:
        try:
            tests(self._result)
        except KeyboardInterrupt:
            if not self._outcomes.cut:
                raise
        return self._result


def profile(plan: dict[str, Any]) -> None:
    outcomes = Outcomes()
    profiler = cProfile.Profile()
    began = time.perf_counter()
    profiler.enable()
    try:
        code = run(plan, outcomes)
    finally:
        profiler.disable()
        seconds = time.perf_counter() - began
    rows, edges = _graph(profiler)
    told = {
        "code": code,
        "seconds": seconds,
        "tests": outcomes.told(),
        "rows": rows,
        "edges": edges,
    }
    (_OUT / "profile.json").write_text(json.dumps(told), encoding="utf-8")


def _graph(profiler: cProfile.Profile) -> tuple[list[list[Any]], list[int]]:
    """The repository's own functions with their figures, and who calls whom, as one list of pairs. What a function of
    Python's own calls back (a join, a sort, a map) counts as called by the caller of that.
    """
    here = f"{Path.cwd()}{os.sep}"
    entries: dict[Any, Any] = {entry.code: entry for entry in profiler.getstats()}
    own = [it for it in entries.values() if not isinstance(it.code, str) and it.code.co_filename.startswith(here)]
    own = sorted(own, key=lambda it: -it.totaltime)[:_ROWS]
    numbers = {it.code: number for number, it in enumerate(own)}
    edges: list[int] = []
    for it in own:
        direct = {to.code for to in it.calls or ()}
        through = {to.code for name in direct if name not in numbers for to in entries[name].calls or ()}
        edges += [number for to in direct | through if to in numbers for number in (numbers[it.code], numbers[to])]
    rows = [
        [
            it.code.co_filename[len(here) :],
            it.code.co_firstlineno,
            it.code.co_name,
            it.callcount,
            it.inlinetime,
            it.totaltime,
        ]
        for it in own
    ]
    return rows, edges[: 2 * _EDGES]


class Recorder:
    """The calls of one function: those that are made of plain values, without two of the same arguments."""

    def __init__(self) -> None:
        self.seen = 0
        self.inside = 0
        self.bytes = 0
        self.plain = 0
        self.why = ""
        self.calls: dict[bytes, bytes] = {}
        self.errors = 0
        self._rng = random.Random(0)  # noqa: S311  # a sample, the same each time

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*arguments: Any, **keywords: Any) -> Any:
            if self.inside or self.seen >= _SEEN:
                return function(*arguments, **keywords)
            self.inside += 1
            self.seen += 1
            try:
                return self._called(function, arguments, keywords)
            finally:
                self.inside -= 1

        for name in dir(function):  # what a cache adds to its function, tests may ask for
            if not name.startswith("__") and not hasattr(watched, name):
                setattr(watched, name, getattr(function, name))
        return watched

    def _called(self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        before = self._encoded([list(arguments), keywords])
        try:
            value = function(*arguments, **keywords)
        except Exception as error:
            if before is not None and self.errors < _ERRORS:
                self.errors += self._keep(before, arguments, keywords, False, error_name(error))
            raise
        if before is not None:
            self._keep(before, arguments, keywords, True, value)
        return value

    def _keep(self, before: bytes, arguments: Any, keywords: Any, well: bool, value: Any) -> bool:
        """Whether there is one call more."""
        digest = hashlib.sha256(before).digest()
        if digest in self.calls:
            return False
        if self._encoded([list(arguments), keywords]) != before:
            self.why = self.why or "it changes its arguments"
            return False
        whole = self._encoded([list(arguments), keywords, well, value])
        if whole is None:
            return False
        self.plain += 1
        if len(self.calls) >= _KEPT or self.bytes + len(whole) > _ALL_BYTES:
            if not well or not self.calls or self._rng.random() > _KEPT / self.plain:
                return False
            gone = self._rng.choice(list(self.calls))
            self.bytes -= len(self.calls.pop(gone))
        if self.bytes + len(whole) > _ALL_BYTES:
            return False
        self.calls[digest] = whole
        self.bytes += len(whole)
        return True

    def _encoded(self, value: Any) -> bytes | None:
        try:
            data: bytes = encode_exact(value)
        except NotPlain as error:
            self.why = self.why or f"{error}"[:200]
            return None
        except (RecursionError, RuntimeError) as error:  # a value that another thread changes meanwhile
            self.why = self.why or type(error).__name__
            return None
        if len(data) > _CALL_BYTES:
            self.why = self.why or f"a call of more than {_CALL_BYTES >> 10} KiB"
            return None
        return data


def record(plan: dict[str, Any]) -> None:
    recorders = [Recorder() for _ in plan["functions"]]
    wanted: dict[str, dict[str, int]] = {}
    for number, (path, name) in enumerate(plan["functions"]):
        wanted.setdefault(str(Path(path).resolve()), {})[name] = number
    _watch_imports(wanted, recorders)
    outcomes = Outcomes()
    code = run(plan, outcomes)
    told = []
    for number, it in enumerate(recorders):
        (_OUT / f"calls-{number}.bin").write_bytes(encode(list(it.calls.values())))
        told.append({"seen": it.seen, "kept": len(it.calls) - it.errors, "why": it.why})
    (_OUT / "record.json").write_text(
        json.dumps({"code": code, "functions": told, "tests": outcomes.told()}), encoding="utf-8"
    )


def _watch_imports(wanted: dict[str, dict[str, int]], recorders: list[Recorder]) -> None:
    """Each definition gets one decorator more, before anybody imports its name."""
    import builtins

    hook = "__blastdoor_watch__"
    setattr(builtins, hook, lambda number: recorders[number].watch)
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        path = os.path.realpath(self.get_filename(name))
        if path not in wanted:
            return usual(self, name)
        tree = ast.parse(Path(path).read_bytes(), path)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in wanted[path]:
                number = ast.Constant(wanted[path][node.name])
                node.decorator_list.insert(0, ast.Call(ast.Name(hook, ast.Load()), [number], []))
        return compile(ast.fix_missing_locations(tree), path, "exec")

    setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010  # only for this process


def _main(arguments: list[str]) -> int:
    plan = json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
    sys.path[:0] = [str(Path(root).resolve()) for root in plan["roots"]]
    sys.dont_write_bytecode = True
    {"profile": profile, "record": record}[arguments[0]](plan)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
