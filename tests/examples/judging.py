"""Runs an example's judge as its chamber does: in its own folder, with the helper beside it and outputs as files; and
what else the tests of examples share.
"""

import csv
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
HELPER = REPOSITORY / "orchestrator/judge/guest/blastdoor_judge.py"


# Judges one folder of outputs after the other, each in a process of its own.
EACH = """
import csv, decimal, fractions, io, json, math, os, runpy, sys
sys.path[0] = os.getcwd()
words = sys.argv[1:sys.argv.index("--")]
for folder in sys.argv[sys.argv.index("--") + 1:]:
    if os.fork() == 0:
        os.environ |= {"BLASTDOOR_OUTPUTS": folder + "/outputs", "BLASTDOOR_RESULT_PATH": folder + "/result.json"}
        os.environ["BLASTDOOR_TRACES_DIR"] = folder + "/traces"
        sys.argv = ["judge.py", *words]
        runpy.run_path("judge.py", run_name="__main__")
        sys.exit()
    _, status = os.wait()
    assert not status, folder
"""
Outputs = Mapping[str, str | bytes]


def judged(example: str, outputs: Outputs, folder: Path, *arguments: str) -> dict[str, Any]:
    """The result that the judge publishes about these outputs; its exit is 0, whatever they are."""
    return judged_each(example, {".": outputs}, folder, *arguments)["."]


def judged_each(example: str, cases: Mapping[str, Outputs], folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    shutil.copytree(EXAMPLES / example / "judge", folder / "judge")
    shutil.copy(HELPER, folder / "judge")
    places = {name: folder / (name if name == "." else str(number)) for number, name in enumerate(cases)}
    for case, place in places.items():
        (place / "outputs").mkdir(parents=True)
        for name, content in cases[case].items():
            (place / "outputs" / name).write_bytes(content.encode() if isinstance(content, str) else content)
    command = [sys.executable, "-c", EACH, *arguments, "--", *map(str, places.values())]
    done = subprocess.run(command, cwd=folder / "judge", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return {name: json.loads((place / "result.json").read_text()) for name, place in places.items()}


def check_refused(example: str, file: str, wrong: Mapping[str, tuple[Any, str]], folder: Path, *arguments: str) -> None:
    """Each has no score at all, the judge is well, and its note says what was wrong. None is no file."""

    def outputs(content: Any) -> Outputs:
        plain = content if isinstance(content, str | bytes) else json.dumps(content)
        return {} if content is None else {file: plain}

    results = judged_each(example, {name: outputs(content) for name, (content, _) in wrong.items()}, folder, *arguments)
    for name, result in results.items():
        assert (result["valid"], "score" in result) == (False, False), name
        assert wrong[name][1] in result["notes"], name


def module_of(path: Path) -> ModuleType:
    """A program of an example, loaded as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parents[1].name}_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def lines(labels: Iterable[str]) -> str:
    return "".join(f"{label}\n" for label in labels)
