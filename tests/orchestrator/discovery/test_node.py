"""A Node package: read as text, its tests watched, its functions asked again. What runs, runs in processes of this
machine; the package is our own.
"""

import asyncio
import importlib
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.discovery.bench import Found
from orchestrator.discovery.discover import discover
from orchestrator.discovery.node import NodePackage, node_package
from orchestrator.discovery.targets import CommandTarget, FunctionTarget
from orchestrator.discovery.writing import Made
from orchestrator.importing import write_task
from orchestrator.judge.helpers import GUEST
from orchestrator.task import TaskError, load_task
from tests.orchestrator.discovery.repositories import decoded, laboratory, repository

pytestmark = pytest.mark.touching("importing")

# Linear in its words: questions that are made of others are long, and a block of them is waited for.
WORDS = """
const LIMIT = 40;
function top(words, most) {
  if (most < 0) throw new RangeError("most");
  const counts = new Map();
  for (const it of words) counts.set(it, (counts.get(it) || 0) + 1);
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1)).slice(0, most);
}
exports.top = top;
exports.first = (words) => { let it; for (let i = 0; i < 30; i++) it = words.find((it) => it.length > 2); return it; };
exports.shuffle = (words) => words.reverse();
exports.Counter = class Counter {};
exports.counter = () => new exports.Counter();
"""
TESTS = """
const assert = require("assert");
const words = require("../lib/words.js");
for (let size = 1; size < 20; size++) {
  const given = Array.from({ length: 3 * size }, (_, i) => "w" + (i % (size + 1)));
  assert.ok(words.top(given, 3).length <= 3);
  words.first(given);
  words.shuffle(given.slice());
  words.counter();
}
assert.throws(() => words.top(["a"], -1));
console.log("score: 1000000");
"""
PACKAGE = {"package.json": '{"name": "words"}', "lib/words.js": WORDS, "test/words.js": TESTS}


async def look(folder: Path, files: dict[str, str], wall_s: float = 300) -> tuple[Found, NodePackage]:
    there = repository(folder, files)
    package = node_package(there, {})
    assert package
    return await discover(there, laboratory(there, wall_s), lambda _: None, work_s=0.001, package=package), package


def function(found: Found, name: str) -> FunctionTarget:
    return next(it for it in found.targets if isinstance(it, FunctionTarget) and it.function == name)


async def test_a_package_becomes_a_task(tmp_path: Path) -> None:
    """What the tests ask of an exported function is recorded and asked again: undefined is an answer, an error is one
    by its name. What changes its arguments or gives an object is left alone. Files are editable as a whole.
    """
    found, package = await look(tmp_path / "there", PACKAGE)
    assert {it.function for it in found.targets if isinstance(it, FunctionTarget)} == {"top", "first"}
    target = function(found, "top")
    assert target.editable == ("lib/words.js",)
    calls = decoded(target.pool.data)
    assert [["a"], -1] in [it[0] for it in calls if it[2:4] == [False, "RangeError"]]
    assert any(it[5] for it in calls)
    assert () in [it[3] for it in decoded(function(found, "first").pool.data)]
    assert [str(it) for it in target.parameters] == ["lib/words.js:2 LIMIT = 40"]
    folder = tmp_path / "task"
    there = repository(tmp_path / "there", {})
    write_task(Made(there, (), package.apt, found.guards, 512).task(target, "words"), folder)
    task = load_task(folder)
    assert task.trial.command[-3:] == (".blastdoor/blastdoor_batch.cjs", "lib/words.js", "top")
    assert task.image.apt == ("nodejs",)
    assert task.guards[0].command[-1] == "test/words.js"


async def test_a_module(tmp_path: Path) -> None:
    """Functions of an ECMAScript module are recorded where they are declared, named as they are exported."""
    files = {
        "package.json": '{"type": "module"}',
        "sum.js": "const twice = (x) => 2 * x;\n"
        "export default function sum(n) { let all = 0; for (let i = 0; i < n; i++) all += twice(i); return all; }\n",
        "sum.test.js": 'import sum from "./sum.js";\nfor (let i = 0; i < 90; i++) sum(10 * i);\n',
    }
    found, _ = await look(tmp_path / "there", files)
    assert {it.function for it in found.targets if isinstance(it, FunctionTarget)} >= {"default"}
    assert function(found, "default").pool.made


async def test_hostile_tests(tmp_path: Path) -> None:
    """One that fails guards nothing, one that never ends is cut, what they print is no result; no script of the package
    is ever run. Where nothing could be recorded, the tests as a whole are offered.
    """
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare", "pretest", "test"), "touch ran")
    files = {
        "package.json": json.dumps({"scripts": scripts}),
        "index.js": "exports.now = () => new Date();\n",
        "test/a.js": 'require("..").now(); console.log(JSON.stringify({tests: {passed: 99}}));\n',
        "test/b.js": "process.exit(3);\n",
        "test/c.js": "setInterval(() => {}, 1000);\n",
    }
    found, _ = await look(tmp_path / "there", files, wall_s=15)
    assert found.guards[0].command[-1] == "test/a.js"
    assert "test/b.js, test/c.js" in found.notes[0]
    assert "an object of Date" in found.notes[1]
    whole = found.targets[-1]
    assert isinstance(whole, CommandTarget)
    assert whole.how == "exact"
    assert "ran" not in await asyncio.to_thread(os.listdir, tmp_path / "there")


@pytest.mark.parametrize("text", ["{", "[]", '{"name": 1e999}', '{"a": 1, "a": 2}', "[" * 9999])
def test_a_manifest_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    there = repository(tmp_path / "there", {"package.json": text, "test.js": ""})
    with pytest.raises(TaskError, match=r"package\.json: is not JSON that can be read"):
        node_package(there, {})


@pytest.mark.parametrize(
    ("manifest", "tests", "runner", "apt"),
    [
        ({}, "require('tape')('x', t => t.end());", ("node",), ("nodejs", "node-tape")),
        ({"devDependencies": {"mocha": "*"}}, "describe('x', () => {});", ("mocha", "--exit"), ("nodejs", "mocha")),
        ({"scripts": {"test": "jest"}}, "test('x', () => expect(1));", ("jest", "--runInBand"), ("nodejs", "jest")),
        ({}, "import test from 'node:test';\ntest('x', () => {});", ("node",), ("nodejs",)),
        ({"scripts": {"test": 7}, "devDependencies": []}, "require('fs/promises');", ("node",), ("nodejs",)),
    ],
)  # fmt: skip
def test_how_tests_are_run(
    tmp_path: Path, manifest: dict[str, Any], tests: str, runner: tuple[str, ...], apt: tuple[str, ...]
) -> None:
    """By what they use; packages are Debian's, and nothing is guessed. A manifest alone is no package to look at."""
    files = {"package.json": json.dumps(manifest), "test/x.js": tests, "index.js": "require('left-pad');"}
    package = node_package(repository(tmp_path / "there", files), {})
    assert package
    assert (package.runner, package.apt, package.unknown) == (runner, apt, ("left-pad",))
    assert node_package(repository(tmp_path / "other", {"package.json": "{}", "index.js": ""}), {}) is None


JEST: dict[str, Any] = {"scripts": {"test": "jest --coverage"}, "devDependencies": {"eslint-plugin-mocha": "*"}}
ASSERTS = "const assert = require('assert');\ndescribe('x', () => {\n  it('y', () => assert.ok(1));\n});\n"
GLOBALS = "import { expect, test } from '@jest/globals';\ntest('x', () => { expect(1).toBe(1); });\n"


@pytest.mark.parametrize(
    ("manifest", "tests"),
    [
        (JEST, ASSERTS),
        ({"jest": {"testEnvironment": "node"}}, ASSERTS),
        ({}, GLOBALS),
        ({"devDependencies": {"jest": "*"}}, "const assert = require('assert');\ntest('x', () => assert.ok(1));\n"),
    ],
    ids=["by its script", "by its settings", "by what tests import", "by its packages"],
)
def test_jest(tmp_path: Path, manifest: dict[str, Any], tests: str) -> None:
    """It is known by script, settings, packages or imports, whatever tests assert with. Its mocks, and the settings of
    any tool, are no code that a candidate may change: with them the tests that guard it could be left out.
    """
    files = {
        **dict.fromkeys(["jest.config.js", "jest.setup.js", ".mocharc.cjs", "babel.config.cjs", "gulpfile.js"], "\n"),
        **dict.fromkeys(["index.js", "lib/config.js", "lib/__mocks__/words.js"], "\n"),
        "package.json": json.dumps(manifest),
        "lib/words.js": WORDS,
        "lib/__tests__/words.js": tests,
    }
    package = node_package(repository(tmp_path / "there", files), {})
    assert package
    assert (package.runner, package.apt, package.unknown) == (("jest", "--runInBand"), ("nodejs", "jest"), ())
    assert (package.tests, package.can_be_watched) == (("lib/__tests__/words.js",), False)
    assert package.code == ("index.js", "lib/config.js", "lib/words.js")
    each = 'for it do jest --runInBand "$it" || exit 1; done'
    assert package.guard(())[2:] == ("sh", "-c", each, "tests", "lib/__tests__/words.js")


VALUES = [
    None, True, False, 0, -1, 2**53 - 1, -(2**53) + 1, 0.5, -0.0, math.inf, "", "ä€😀\0", b"", b"\0\xff", [], {}, (),
    [1, [2, [3.25, "x", None, ()]]], {"a": {"b": [1]}, "__proto__": 1, "": 2}, "x" * 70_000, list(range(20_000)),
]  # fmt: skip
_ECHO = """
const { decode, encode } = require(process.argv[1]);
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(given.map((it) => {
  try { return encode(decode(Buffer.from(it, "hex"))).toString("hex"); }
  catch (error) { return error.constructor.name; }
})));
"""


def echoed(values: list[bytes]) -> list[str]:
    words = ["node", "-e", _ECHO, str(GUEST / "blastdoor_batch.cjs")]
    told = json.dumps([it.hex() for it in values])
    ended = subprocess.run(words, input=told, capture_output=True, text=True, check=True, timeout=300)
    found: list[str] = json.loads(ended.stdout)
    return found


def test_values_cross_both_ways() -> None:
    """What Node reads and writes again is the same to the byte; what it cannot hold, and bytes that are no value, it
    refuses: nothing is rounded, guessed or read past its end.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GUEST))
        encode = importlib.import_module("blastdoor_kinds").encode_exact
    good = [encode(it) for it in VALUES]
    cut = [data[:at] for data in good[:19] for at in range(len(data))]
    odd = [2**53, -(2**53), 10**30, (1,), {1}, {1: 2}, 1j]
    bad = [*cut, *map(encode, odd), good[3] + b"N", b"l\xff\xff\xff\xff", b"d\xff\xff\xff\xff", b"?", b"l\1\0\0\0" * 40]
    found = echoed([*good, *bad])
    assert found[: len(good)] == [it.hex() for it in good]
    assert set(found[len(good) :]) == {"Malformed"}
