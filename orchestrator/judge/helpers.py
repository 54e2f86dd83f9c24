"""Our modules that travel into chambers: beside a judge, beside a candidate that is called, and in the place of one."""

import re
from collections.abc import Sequence
from pathlib import Path

from orchestrator.change import Tree

GUEST = Path(__file__).parent / "guest"
_OURS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(blastdoor_[a-z]+)", re.MULTILINE)
# Beside the candidate's files, where no change of its own can be.
HELPERS_FOLDER = ".blastdoor"
CHEAT_HELPERS = ("blastdoor_cheat.py", "blastdoor_twists.py")
# What an earlier candidate answered, beside a cheat that learnt it by heart.
RECORDED = "recorded"
CANDIDATE_HELPERS = (
    "blastdoor_batch.cjs",
    "blastdoor_batch.py",
    "blastdoor_candidate.py",
    "blastdoor_programs.py",
    "blastdoor_frames.py",
    "blastdoor_kinds.py",
    "blastdoor_values.py",
)
HARBOR = "blastdoor_harbor.py"
JUDGE_HELPERS = (
    "blastdoor_relay.py",
    "blastdoor_clock.py",
    "blastdoor_door.py",
    "blastdoor_source.py",
    "blastdoor_stub.py",
    "blastdoor_carry.py",
    "blastdoor_command.py",
    "blastdoor_programs.py",
    "blastdoor_evaluator.py",
    "blastdoor_evo.py",
    "blastdoor_openevolve.py",
    "blastdoor_recorded.py",
    "blastdoor_same.py",
    "blastdoor_shinka.py",
    "blastdoor_frames.py",
    "blastdoor_kinds.py",
    "blastdoor_values.py",
)

PROFILE = "blastdoor_profile.py"
COMBINATION_HELPERS = ("blastdoor_members.py", "blastdoor_frames.py", "blastdoor_kinds.py", "blastdoor_values.py")


def profiler() -> Tree:
    """Under the name by which every Python begins with it."""
    return Tree.of({"sitecustomize.py": (GUEST / PROFILE).read_bytes()})


def imported_by(code: Tree) -> tuple[str, ...]:
    """The modules that a judge's Python files import, and what these need themselves; most import none of them."""
    found = {
        f"{name.decode()}.py"
        for path, file in code.items()
        if path.endswith(".py")
        for name in _OURS.findall(file.data)
    }
    more = JUDGE_HELPERS if found & set(JUDGE_HELPERS) else ()
    return (*more, HARBOR) if HARBOR in found else more


def helpers(names: Sequence[str]) -> Tree:
    """Our modules, as files."""
    return Tree.of({name: (GUEST / name).read_bytes() for name in names})
