"""Runs the tests of a task of Harbor: `bash tests/test.sh`, which leaves a reward. Standard library only, Python 3.9
up.

    from blastdoor_harbor import judge

    judge(root="/app", workdir="/app")

There the tests run in the container that an agent worked in. Here the files that a candidate left are put where the
tests look for them, in a chamber of the judge's own, or, with `shared`, the candidate's commands run first in the same
chamber. The image has links from the paths that the tests know (`/app`, `/tests`, `/logs`) to others that can be
written.
Tests that install something find it installed: what they start for that is a stand-in that does nothing.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blastdoor_judge import BadOutput, judging, publish

__all__ = ["Broken", "judge"]

SCRATCH = Path("/work/tmp")
REWARD = "reward"
_NOTES = 1000
_SETTINGS = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_NOTHING = "#!/bin/sh\nexit 0\n"
# Takes off what says where a tool comes from, and starts the tool that is in the image.
_UVX = """#!/bin/sh
[ "$(basename "$0")" = uv ] && case "$1" in
    run) shift ;;
    tool) shift 2 ;;
    venv) shift; for last; do :; done; mkdir -p "${last:-.venv}/bin"; : >"${last:-.venv}/bin/activate"; exit 0 ;;
    *) exit 0 ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
        -p|--python|-w|--with|--from|--with-requirements|--project|--directory|--index-url) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
tool=$1; shift
case "$tool" in
    pytest|pytest@*|pytest==*) exec python3 -m pytest "$@" ;;
    python|python3|python3.*) exec python3 "$@" ;;
    *) exec "$tool" "$@" ;;
esac
"""
_STAND_INS = dict.fromkeys(("apt", "apt-get", "curl", "wget", "pip", "pip3"), _NOTHING) | {"uv": _UVX, "uvx": _UVX}


class Broken(Exception):
    """The tests' own fault, or that of the way they were brought here: no verdict on the candidate."""


@judging()  # type: ignore[untyped-decorator]  # the helper beside it has no types where this is checked
def judge(
    *, root: str, workdir: str, metric: str = REWARD, shared: str = "", env: Mapping[str, str] | None = None
) -> None:
    """Publish the reward. `shared` is the candidate's script, where it must run beside the tests."""
    app, logs = SCRATCH / "app", SCRATCH / "logs"
    for name in ("verifier", "agent", "artifacts"):
        (logs / name).mkdir(parents=True, exist_ok=True)
    given = os.environ["BLASTDOOR_CANDIDATE" if shared else "BLASTDOOR_OUTPUTS"]
    shutil.copytree(given, app, dirs_exist_ok=True)
    # Outputs come without empty folders, and the tests begin in this one.
    folder = app / Path(workdir).relative_to(root)
    folder.mkdir(parents=True, exist_ok=True)
    told = environment_of(env or {}, shared=bool(shared))
    if shared:
        # Its exit code says nothing; what it left does.
        subprocess.run(["bash", str(app / shared)], cwd=folder, env=told, check=False)
    tests = Path(__file__).resolve().parent / "tests" / "test.sh"
    ended = subprocess.run(["bash", str(tests)], cwd=workdir, env=told, check=False, stdout=sys.stderr)
    numbers = _reward(logs / "verifier")
    if metric not in numbers:
        said = f"it gave: {', '.join(numbers)}" if numbers else "it left neither reward.json nor reward.txt"
        raise Broken(f"test.sh ended with {ended.returncode} and gave no {metric} ({said})")
    score = numbers[metric]
    if not math.isfinite(score):
        raise BadOutput(f"the tests gave {metric} {score}")
    others = {name: it for name, it in numbers.items() if math.isfinite(it) and name != "score"}
    tasks = _tests(logs / "verifier" / "ctrf.json")
    failed = [name for name, it in tasks.items() if it < 1]
    notes = f"failed: {', '.join(failed)}"[:_NOTES] if failed else ""
    publish(score, metrics={**others, metric: score}, tasks=tasks or None, notes=notes)


def environment_of(given: Mapping[str, str], *, shared: bool) -> dict[str, str]:
    home = SCRATCH
    stand_ins = home / "stand-ins"
    stand_ins.mkdir(exist_ok=True)
    for name, text in _STAND_INS.items():
        (stand_ins / name).write_text(text)
        (stand_ins / name).chmod(0o755)
    # What the installer of uv would have left, to be sourced.
    (home / ".local" / "bin").mkdir(parents=True, exist_ok=True)
    (home / ".local" / "bin" / "env").write_text("")
    own = {"PATH": f"{stand_ins}:{os.environ.get('PATH', '/usr/bin:/bin')}", "HOME": str(home), "TEST_DIR": "/tests"}
    if shared:
        return {**os.environ, **own, **given}
    # What a candidate left lies in the tests' working folder: no module, conftest or setting is to be found there.
    settings = next((f"/tests/{name}" for name in _SETTINGS if Path("/tests", name).is_file()), os.devnull)
    options = f"-p no:cacheprovider -c {settings} --rootdir=/tests --confcutdir=/tests"
    own |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": "/tests", "PYTEST_ADDOPTS": options}
    return {**os.environ, **given, **own}


def _reward(folder: Path) -> dict[str, float]:
    """The numbers of reward.json, and that of reward.txt where it has none of that name."""
    found: dict[str, float] = {}
    try:
        told = json.loads((folder / "reward.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        told = {}
    if isinstance(told, dict):
        found = {str(name): float(it) for name, it in told.items() if _is_number(it)}
    if REWARD not in found:
        try:
            found[REWARD] = float((folder / "reward.txt").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            if len(found) == 1:
                found[REWARD] = next(iter(found.values()))
    return found


def _tests(report: Path) -> dict[str, float]:
    """Each test and whether it passed, where a report in the form of CTRF was written."""
    try:
        told = json.loads(report.read_text(encoding="utf-8"))["results"]["tests"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return {}
    rows: Sequence[Any] = told if isinstance(told, list) else []
    named = [it for it in rows if isinstance(it, dict) and isinstance(it.get("name"), str)]
    return {it["name"][:200]: float(it.get("status") == "passed") for it in named[:1000]}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
