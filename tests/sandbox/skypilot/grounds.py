"""Two kinds of machines in the yard: this one, with a real engine, and one that is only on paper."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from sandbox.backends.skypilot.machine import ROOT
from sandbox.backends.skypilot.pipe import bounded_output
from sandbox.box.errand import archive
from sandbox.box.report import LOG, OUTPUTS, PAGE, Ended, Greeted, Measured, Report
from sandbox.errors import Unavailable
from sandbox.job import Ending

REPOSITORY = Path(__file__).resolve().parents[3]
# In the place of the uv that SkyPilot brings: this interpreter, which has all that the machine's would have.
UV = f"""#!/bin/sh
[ "$1" = venv ] || exit 0
for last; do :; done
mkdir -p "$last/bin"
printf '#!/bin/sh\\nPYTHONPATH={REPOSITORY} exec {sys.executable} "$@"\\n' >"$last/bin/python"
chmod +x "$last/bin/python"
"""


class ThisMachine:
    """A home of its own on this machine. `raze` ends every process that was started in it."""

    def __init__(self, name: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        uv = self.home / ".local" / "bin" / "uv"
        uv.parent.mkdir(parents=True)
        uv.write_text(UV)
        uv.chmod(0o755)
        self.jobs: list[subprocess.Popen[bytes]] = []

    async def send(self, source: Path, target: str) -> None:
        place = self.home / target.removeprefix("~/")
        await asyncio.to_thread(shutil.copytree, source, place, dirs_exist_ok=True)

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        return await asyncio.to_thread(bounded_output, command, cap, lambda line, path: self._run(line, path, timeout))

    def _run(self, line: str, path: Path, timeout: float) -> int:
        with path.open("wb") as output:
            process = self._start(line, output.fileno())
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Unavailable("the machine did not answer in time") from None
        finally:
            _end(process)

    async def submit(self, command: str) -> None:
        self.jobs.append(self._start(command, subprocess.DEVNULL))

    async def raze(self) -> None:
        for job in self.jobs:
            await asyncio.to_thread(_end, job)
        timer = self.home / ROOT.removeprefix("~/") / "timer"
        if timer.exists():
            os.kill(int(timer.read_text()), signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)

    def _start(self, line: str, output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", line],
            env=os.environ | {"HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """As a scheduler does: asked first, so that an errand ends its chamber, then made to."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def report_bytes(report: Report) -> bytes:
    return archive({PAGE: report.page.model_dump_json().encode(), OUTPUTS: archive(report.outputs), LOG: report.log})


GREETED = Report(Greeted(facts={"cpu": "paper"}), {}, b"")
ENDED = Report(
    Ended(
        ending=Ending.COMPLETED,
        exit_code=0,
        reason="",
        told=True,
        measured=Measured(build_s=0.0, run_s=0.0, collect_s=0.0, log_bytes=3, bad_reports=0),
    ),
    {"answer": b"42"},
    b"hi\n",
)


class PaperMachine:
    """Says what a machine says that does all it is asked; `words` replaces the outcome of a trial."""

    def __init__(self, words: bytes = b"") -> None:
        self._words = words or report_bytes(ENDED)
        self._submitted = 0
        self.lines: list[str] = []

    async def send(self, source: Path, target: str) -> None:
        pass

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        self.lines.append(command)
        if "furnish.sh" in command:
            return 0, b"ready\n"
        if "-m sandbox.box" in command:
            return 0, report_bytes(GREETED)
        if "exec tar" in command:
            return (0, self._words[:cap]) if self._submitted else (75, b"")
        return 0, b""

    async def submit(self, command: str) -> None:
        self._submitted += 1

    async def raze(self) -> None:
        pass
