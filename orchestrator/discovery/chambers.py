"""What a stranger's repository does, seen from outside: our guests run it in chambers, and what they leave is bytes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from orchestrator.bounded_json import JsonRefused, loads
from orchestrator.discovery.node import NODE_PATH
from orchestrator.judge.helpers import HELPERS_FOLDER, helpers
from orchestrator.text import short
from sandbox import Bundle, Ending, Job, Limits, Outcome

_GUEST = Path(__file__).parent / "guest"
_WATCH = (
    "blastdoor_watch.py",
    "blastdoor_watch.cjs",
    "blastdoor_node.py",
    "blastdoor_vary.py",
    "blastdoor_replay.py",
)
_LENT = (
    "blastdoor_batch.cjs",
    "blastdoor_batch.py",
    "blastdoor_candidate.py",
    "blastdoor_frames.py",
    "blastdoor_kinds.py",
    "blastdoor_same.py",
    "blastdoor_values.py",
)
CALLS = f"{HELPERS_FOLDER}/calls.bin"
_REPORT_BYTES = 4 << 20
_REPORT_DEPTH = 8
# Of a chamber's time, what a guest takes before it writes down what it saw.
_PART = 0.6
_DIGITS = 40


class Runs(Protocol):
    """Runs one job in a fresh chamber. Raises the sandbox's errors."""

    async def __call__(self, job: Job, bundle: Bundle) -> Outcome: ...


@dataclass(frozen=True)
class Seen:
    """What came out of a chamber: its ending, files, the end of its log, and the seconds by our own clock."""

    outcome: Outcome

    @property
    def seconds(self) -> float:
        return self.outcome.usage.run_s

    @property
    def why(self) -> str:
        """The last line that says something, and how it ended."""
        lines = [line for line in self.outcome.log_tail.decode("utf-8", "replace").splitlines() if line.strip()]
        told = f"{self.outcome.ending}{f' ({self.outcome.why})' if self.outcome.why else ''}"
        return f"{told}: {short(lines[-1], 200)}" if lines else told

    def report(self, name: str) -> dict[str, Any] | None:
        """A table that a guest wrote; None where there is none. It is a stranger's word: a reader of a member of it
        asks for its type.
        """
        try:
            found = loads(
                self.outcome.outputs[name], max_bytes=_REPORT_BYTES, max_depth=_REPORT_DEPTH, max_digits=_DIGITS
            )
        except (KeyError, JsonRefused):
            return None
        return found if isinstance(found, dict) else None


@dataclass(frozen=True)
class Laboratory:
    """A repository's files and an image for them, and a way into chambers."""

    run: Runs
    image: str
    files: Mapping[str, bytes]
    roots: Sequence[str]
    limits: Limits

    async def guest(self, words: Sequence[str], plan: Mapping[str, object], calls: bytes = b"") -> Seen:
        """One of our guests, with a plan and recorded calls beside it."""
        ours = {name: (_GUEST / name).read_bytes() for name in _WATCH}
        ours |= {name: file.data for name, file in helpers(_LENT).items()}
        ours |= {
            "plan.json": json.dumps({"seconds": _PART * self.limits.wall, **plan, "roots": list(self.roots)}).encode(),
            "calls.bin": calls,
        }
        command = ("python3", "-m", *words, f"{HELPERS_FOLDER}/plan.json")
        return await self.command(command, {f"{HELPERS_FOLDER}/{name}": data for name, data in ours.items()})

    async def command(self, words: Sequence[str], beside: Mapping[str, bytes] | None = None) -> Seen:
        """Any command in the repository's folder."""
        job = Job(
            command=tuple(words),
            image=self.image,
            env={
                "PYTHONPATH": f"/work/src/{HELPERS_FOLDER}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "NODE_PATH": NODE_PATH,
            },
            limits=self.limits,
        )
        return Seen(await self.run(job, Bundle({**self.files, **(beside or {})})))


def completed(seen: Seen) -> bool:
    return seen.outcome.ending is Ending.COMPLETED
