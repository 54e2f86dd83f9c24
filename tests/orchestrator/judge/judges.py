"""Runs judges as a chamber does: in a folder of their own, the helper beside them and the outputs next door."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.judge import guest

GUEST = Path(guest.__file__).parent


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: str
    stderr: str
    outputs: dict[str, bytes]


class Chamber:
    """A pretended one: folders and variables as a judge finds them, nothing isolated."""

    def __init__(self, folder: Path) -> None:
        self.judge, self.candidate, self.out = folder / "judge", folder / "outputs", folder / "out"
        for each in (self.judge, self.candidate, self.out):
            each.mkdir()
        for file in GUEST.iterdir():
            if file.is_file():
                (self.judge / file.name).write_bytes(file.read_bytes())
        self.env = {
            "PATH": os.environ["PATH"],
            "BLASTDOOR_RESULT_PATH": str(self.out / "result.json"),
            "BLASTDOOR_TRACES_DIR": str(self.out / "traces"),
            "BLASTDOOR_OUTPUTS": str(self.candidate),
        }

    def run(self, code: str, without: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> Ran:
        """Run Python code as the judge."""
        return self.call([sys.executable, "-c", code], without, env)

    def call(self, argv: list[str], without: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> Ran:
        seen = {key: value for key, value in self.env.items() if key not in without} | dict(env or {})
        done = subprocess.run(argv, cwd=self.judge, env=seen, capture_output=True, text=True, timeout=60, check=False)
        return Ran(done.returncode, done.stdout, done.stderr, self.harvest())

    def harvest(self) -> dict[str, bytes]:
        files = (path for path in sorted(self.out.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.out)): path.read_bytes() for path in files}
