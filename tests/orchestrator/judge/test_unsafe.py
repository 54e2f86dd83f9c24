"""Warnings of loaders that would run, or trust too far, what a candidate left."""

import ast
import re

import pytest

from orchestrator.judge import unsafe
from orchestrator.judge.unsafe import Finding, unsafe_loaders


def lines(code: str, path: str = "judge.py") -> list[int]:
    return [finding.line for finding in unsafe_loaders({path: code.encode()})]


UNSAFE = [
    "import pickle\npickle.load(f)",
    "import pickle as p\np.loads(data)",
    "from pickle import loads as read\nread(data)",
    "import pickle\npickle.Unpickler(f).load()",
    "import dill\ndill.load(f)",
    "import cloudpickle\ncloudpickle.loads(x)",
    "import joblib\njoblib.load(path)",
    "import shelve\nshelve.open(path)",
    "import marshal\nmarshal.loads(x)",
    "import pandas as pd\npd.read_pickle(path)",
    "import numpy as np\nnp.load(path, allow_pickle=True)",
    "import numpy as np\nnp.load(path, None, True)",
    "import numpy\nnumpy.load(path, allow_pickle=flag)",
    "import torch\ntorch.load(path)",
    "import torch\ntorch.load(path, weights_only=False)",
    "import yaml\nyaml.load(f)",
    "import yaml\nyaml.load(f, Loader=yaml.Loader)",
    "import yaml\nyaml.full_load(f)",
    "x = 1\neval(text)",
    "x = 1\nexec(open(path).read())",
    "x = 1\ncompile(text, 'x', 'exec')",
    "import os\nos.system('cat ../outputs/a')",
    "import subprocess\nsubprocess.run(['python3', '../outputs/solve.py'])",
    "import importlib\nimportlib.import_module(output_name)",
    "import runpy\nrunpy.run_path('/work/src/outputs/solve.py')",
    "import importlib.util as u\nu.spec_from_file_location('it', '../outputs/solve.py')",
    "import sys\nsys.path.insert(0, '../outputs')",
    "import sys\nsys.path += ['../outputs']",
    "import sys\nsys.path = ['outputs']",
    "x = 1\nimport outputs.solve",
    "x = 1\nfrom candidate import solve",
    "x = 1\n__import__('outputs.solve')",
    "import xml.etree.ElementTree as ET\nET.parse(path)",
    "from xml.dom import minidom\nminidom.parseString(x)",
    "import zipfile\nzipfile.ZipFile(path).extractall()",
    "import tarfile\ntarfile.open(path).extractall('.', filter='data')",
    "import shutil\nshutil.unpack_archive(path)",
]


@pytest.mark.parametrize("code", UNSAFE)
def test_t55_found(code: str) -> None:
    """Each is found on its own line, with what it does and what to do instead."""
    (finding,) = unsafe_loaders({"judge.py": code.encode()})
    assert finding.line == 2
    assert all((finding.what, finding.instead))


SAFE = [
    "import json\njson.load(f)",
    "import numpy as np\nnp.load(path)",
    "import numpy as np\nnp.load(path, allow_pickle=False)",
    "import torch\ntorch.load(path, weights_only=True)",
    "import yaml\nyaml.safe_load(f)",
    "import yaml\nyaml.load(f, Loader=yaml.SafeLoader)",
    "from yaml import CSafeLoader, load\nload(f, CSafeLoader)",
    "import pickle\npickle.dumps(x)",
    "import subprocess\nsubprocess.run(['gcc', 'judge.c'])",
    "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))",
    "import importlib\nimportlib.import_module('numpy')",
    "import importlib.util\nimportlib.util.spec_from_file_location('candidate', path)",
    "import re\nre.compile(text)",
    "eval('1 + 1')",
    "model.eval()",
    "# pickle.load(f)\n'pickle.load'",
    "load(f)",
    "from blastdoor_judge import load_json\nload_json('a.json')",
]


@pytest.mark.parametrize("code", SAFE)
def test_not_found(code: str) -> None:
    """Safe forms, and words that only look alike, are left in peace."""
    assert lines(code) == []


def test_t79_paths_are_followed() -> None:
    """A name that was made from the folder of outputs counts as one, over a few steps."""
    code = """
import os, subprocess
from pathlib import Path
place = Path(os.environ["BLASTDOOR_OUTPUTS"])
program = place / "solve.py"
for each in program.parent.iterdir():
    subprocess.run(["python3", str(each)])
with open(program) as file:
    subprocess.run(["python3", "-"], stdin=file)
"""
    assert lines(code) == [7, 9]


def test_old_python_is_read_as_text() -> None:
    """A file that does not parse is still looked through, without its comments."""
    code = "print 'x'\nimport cPickle\ncPickle.load(f)\n# pickle.load(f)\nexec(code)\nnp.load(p, allow_pickle=True)\n"
    assert lines(code) == [3, 5, 6]


def test_which_files() -> None:
    """Python by its ending or its first line; data and other languages are not read."""
    code = b"#!/usr/bin/env python3\nimport pickle\npickle.load(f)\n"
    found = unsafe_loaders(
        {"b.py": code, "a/judge": code, "gold.txt": code[23:], "x.sh": b"pickle.load(f)", "y.py": b"\xff\0"}
    )
    assert [(finding.path, finding.line) for finding in found] == [("a/judge", 3), ("b.py", 3)]
    assert all(isinstance(finding, Finding) for finding in found)


@pytest.mark.parametrize("code", ["subprocess.run(" * 90 + "x" + ")" * 90, "a = " * 90 + "(" + "x," * 90 + ")"])
def test_a_part_is_looked_at_a_few_times(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However deep calls are nested, and to however many names a value goes, the cost grows with the text alone."""
    looked = 0

    class Counted:
        def search(self, text: str) -> re.Match[str] | None:
            nonlocal looked
            looked += 1
            return pattern.search(text)

    pattern = unsafe.OUTPUTS
    monkeypatch.setattr(unsafe, "OUTPUTS", Counted())
    assert lines(f"import subprocess\n{code}") == []
    assert looked < 5 * sum(1 for _ in ast.walk(ast.parse(code)))


def test_more_than_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge of any size is looked through: what is beyond the bound as text, which knows no names of one's own."""
    code = "from pickle import load as get\nget(file)\npickle.load(file)\n"
    files = {name: code.encode() for name in ("a.py", "b.py")}
    assert {(found.path, found.line) for found in unsafe_loaders(files)} >= {("a.py", 2), ("b.py", 2), ("b.py", 3)}
    monkeypatch.setattr(unsafe, "MAX_PARSED", len(code) + 1)
    bounded = {(found.path, found.line) for found in unsafe_loaders(files)}
    assert bounded >= {("a.py", 2), ("b.py", 3)}
    assert ("b.py", 2) not in bounded
