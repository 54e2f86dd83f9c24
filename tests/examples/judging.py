"""Runs an example's judge as its chamber does: in its own folder, with the helper beside it and outputs as files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
HELPER = REPOSITORY / "orchestrator/judge/guest/blastdoor_judge.py"


def judged(example: str, outputs: dict[str, str | bytes], folder: Path, *arguments: str) -> dict[str, Any]:
    """The result that the judge publishes about these outputs; its exit is 0, whatever they are."""
    shutil.copytree(EXAMPLES / example / "judge", folder / "judge")
    shutil.copy(HELPER, folder / "judge")
    (folder / "outputs").mkdir()
    for name, content in outputs.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / "outputs" / name).write_bytes(data)
    variables = {
        "BLASTDOOR_OUTPUTS": str(folder / "outputs"),
        "BLASTDOOR_RESULT_PATH": str(folder / "result.json"),
        "BLASTDOOR_TRACES_DIR": str(folder / "traces"),
    }
    command = [sys.executable, "judge.py", *arguments]
    done = subprocess.run(command, cwd=folder / "judge", env=os.environ | variables, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result
