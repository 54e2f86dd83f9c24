"""A leaky judge and its fixed twin: two texts of one file, in a task that is small and otherwise sound."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_DATA = """name = "leaky"
statement = "Solve it."
editable = ["solve.py"]

[trial]
command = ["python3", "solve.py"]

[limits]
wall = "60s"

[judge]
command = ["python3", "judge.py"]
limits = {wall = "60s"}

"""
_RELAY = """name = "leaky"
statement = "Solve it."
editable = ["solve.py"]

[trial]
command = ["python3", "-m", "blastdoor_candidate", "solve.py"]

[limits]
wall = "60s"

[judge]
mode = "relay"
command = ["python3", "judge.py"]
limits = {wall = "60s"}

"""
HIGHER = '[[metrics]]\nname = "score"\ngoal = "higher"\n'
LOWER = '[[metrics]]\nname = "seconds"\ngoal = "lower"\n'


@dataclass(frozen=True)
class Leaky:
    """`leak` and `mend` are what stands in the judge in the place of LEAK. `by` is an adversary that should find it."""

    name: str
    hole: str
    by: str
    judge: str
    leak: str
    mend: str
    solve: str
    metrics: str = HIGHER
    calls: bool = False
    gold: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path, *, fixed: bool) -> Path:
        files = {
            "blastdoor.toml": (_RELAY if self.calls else _DATA) + self.metrics,
            "workspace/solve.py": self.solve,
            "judge/judge.py": self.judge.replace("LEAK", self.mend if fixed else self.leak),
            "judge/gold/note.txt": "what is gold lies here\n",
            **{f"judge/gold/{name}": text for name, text in self.gold.items()},
        }
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return folder
