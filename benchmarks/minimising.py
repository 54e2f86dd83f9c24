"""How much ballast `minimise` finds in winners whose useless edits are known, with how many trials, and what it loses.

Programs are made up by a seed: functions whose constants count for the score, and edits that do nothing: renamed
locals, comments, loops nobody needs, comparisons turned round, statements whose value is never read. Some useful edits
only count together. Whole campaigns are run, on the fake backend; the judge reads what the program printed.
"""

import asyncio
import random
import re
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chance import of_mean, wilson
from benchmarks.fake_site import fake_site, write_task
from benchmarks.figure import Figure
from orchestrator.budget import Account
from orchestrator.change import Tree
from orchestrator.change.canonical import difference
from orchestrator.domain.proposal import Proposal
from orchestrator.proposers import Brief
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import open_campaign
from sandbox.backends.fake.backend import Guest

SEEDS = 20
_TASK = """name = "ballast"
statement = "Raise the score."
editable = ["*.py", "params.json"]

[trial]
command = ["trial"]

[judge]
command = ["judge"]

[parameters]
file = "params.json"
[parameters.space]
level = {type = "int", low = 0, high = 9}
idle = {type = "int", low = 0, high = 9}

[budget]
minimisation = 200

"""
_NOISY = '[certify]\nrule = "noisy"\n'
_FUNCTIONS = 10
# In deviations: less than two of them can be missed by the tests of a noisy task.
_SEEN = 0.5


@dataclass(frozen=True)
class Made:
    """A baseline, a winner, and how many of the winner's places are useful and how many do nothing."""

    old: str
    new: str
    useful: int
    useless: int


@dataclass(frozen=True)
class Told:
    useful: int
    useless: int
    dropped: int
    trials: int
    loss: float
    offered: bool
    complete: bool


def make(seed: int) -> Made:
    """Each function holds one place for a useful edit and several for useless ones."""
    chance = random.Random(seed)
    useful = chance.sample(range(_FUNCTIONS), chance.randint(2, 4))
    old, new, useless = [], [], 0
    for at in range(_FUNCTIONS):
        body = [
            f"def f{at}(x):",
            f"    step = {at}",
            f"    gain = {at} * 0",
            "    if step < 99:",
            "        x += gain",
            "    return x",
        ]
        changed = list(body)
        if at in useful:
            changed[2] = f"    gain = {at} + 1"
        for edit in chance.sample(_USELESS, chance.randint(0, 2)):
            edit(changed)
            useless += 1
        old += [*body, "", ""]
        new += [*changed, "", ""]
    calls = ["", f"total = sum(f(0) for f in [{', '.join(f'f{at}' for at in range(_FUNCTIONS))}])", "print(total)", ""]
    return Made("\n".join([*old, *calls]), "\n".join([*new, *calls]), len(useful), useless)


def _comment(lines: list[str]) -> None:
    lines.insert(1, "    # a remark")


def _loop(lines: list[str]) -> None:
    at = lines.index("    return x")
    lines[at:at] = ["    for _ in range(3):", "        step += 1", "        step -= 1"]


def _turned(lines: list[str]) -> None:
    lines[:] = [line.replace("if step < 99", "if step <= 98") for line in lines]


def _unread(lines: list[str]) -> None:
    lines.insert(len(lines) - 1, "    spare = [step, step * 2]")


def _added(lines: list[str]) -> None:
    """In the line of a useful edit, where there is one: behind its tokens."""
    lines[:] = [re.sub(r"(gain = .*)", r"\1 - len('')", line) for line in lines]


def _wrapped(lines: list[str]) -> None:
    """The same, around them: neither bracket can go alone."""
    lines[:] = [re.sub(r"gain = (.*)", r"gain = int(\1)", line) for line in lines]


_USELESS = [_comment, _loop, _turned, _unread, _added, _wrapped]


class OneWinner:
    """Proposes the winner, and nothing else."""

    serial = True
    branching = True

    def __init__(self, made: Made) -> None:
        self._made = made

    def exhausted(self, number: int) -> str | None:
        return None if number == 1 else "all is proposed"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        new = Tree({**brief.tree, "main.py": type(brief.tree["main.py"])(self._made.new.encode())})
        text = difference(brief.tree, new)
        return [Proposal(operator="winner", description="a winner with ballast", text=text)]


def score_of(source: str) -> float:
    """What the program comes to. It is one of ours, so it is run here."""
    found: dict[str, float] = {}
    exec(compile(source.replace("print(total)", ""), "main.py", "exec"), found)  # noqa: S102  ours, see above
    return float(found["total"])


def program(noise: float, chance: random.Random) -> Callable[[Guest], Awaitable[int]]:
    async def play(guest: Guest) -> int:
        if guest.job.command[0] == "trial":
            try:
                value = score_of(guest.files["main.py"].decode())
            except Exception:  # noqa: BLE001  # a candidate that does not run is one that failed
                return 1
            guest.out["answer"] = str(value).encode()
        elif guest.job.command[0] == "judge":
            value = float(guest.files["outputs/answer"]) + chance.gauss(0.0, noise)
            guest.out["result.json"] = b'{"score": %r}' % value
        return 0

    return play


async def take_apart(seed: int, noise: float, width: int) -> Told | None:
    """None where the winner was not kept: then there is nothing to take apart."""
    made = make(seed)
    with tempfile.TemporaryDirectory() as place:
        folder, certify = Path(place), _NOISY if noise else ""
        write_task(folder, _TASK + certify, "{}\n", {"workspace/main.py": made.old})
        site = fake_site(program(noise, random.Random(seed)), width)
        flags = Flags(attempts=1, minimise=True, width=width, rate=1e6)
        async with open_campaign(folder, site, flags=flags, proposer=OneWinner(made)) as opened:
            await opened.campaign.run()
            state, accounts = opened.bench.state, opened.bench.book.accounts
            node = state.nodes.get("1.1.1")
            if node is None or node.minimal is None:
                return None
            text = (await opened.bench.tree(node.id if node.kept else "1.1"))["main.py"].data.decode()
            loss = score_of(made.new) - score_of(text)
            left = _left(text) if node.kept else made.useless
            used = accounts.used(Account.MINIMISATION)
            return Told(made.useful, made.useless, made.useless - left, used, loss, node.kept, node.minimal.complete)


def _left(text: str) -> int:
    """How many of the useless edits are still there, whole or in part."""
    marks = (r"# a remark", r"for _ in range\(3\)|step [+-]= 1", r"<= 98", r"spare", r"- len", r"= int\(")
    found = 0
    for body in re.split(r"(?m)^def ", text):
        found += sum(bool(re.search(mark, body)) for mark in marks)
    return found


_SETTINGS = {
    "strict": (0.0, 1),
    "strict, 4 at a time": (0.0, 4),
    "noisy, parts worth 3 deviations and more": (0.3, 1),
    "noisy, parts worth 1 deviation and more": (1.0, 1),
}


def _one(name: str, seed: int) -> Told | None:
    return asyncio.run(take_apart(seed, *_SETTINGS[name]))


async def measure(seeds: int = SEEDS) -> list[Figure]:
    """A campaign waits for its ledger more than it works, so each has a process of its own."""
    jobs = [(name, seed) for name in _SETTINGS for seed in range(seeds)]
    figures: list[Figure] = []
    with ProcessPoolExecutor() as pool:
        told = list(pool.map(_one, *zip(*jobs, strict=True)))
    for at, (name, (noise, _)) in enumerate(_SETTINGS.items()):
        figures += _figures(name, noise, [it for it in told[at * seeds : (at + 1) * seeds] if it])
    return figures


def _figures(name: str, noise: float, found: Sequence[Told]) -> list[Figure]:
    shares = [it.dropped / it.useless for it in found if it.useless]
    mean, (low, high) = statistics.fmean(shares), of_mean(shares)
    worse = sum(it.loss > 1e-9 for it in found)
    sees_all = noise < _SEEN  # the smallest useful part is worth 1
    told = [
        Figure(
            f"minimise, {name}: share of ballast removed ({low:.2f} to {high:.2f})",
            mean,
            "",
            "" if noise else ">= 1",
        ),
        Figure(f"minimise, {name}: trials at the median", statistics.median(it.trials for it in found), ""),
        Figure(f"minimise, {name}: useless edits of a winner", statistics.fmean(it.useless for it in found), ""),
        Figure(f"minimise, {name}: winners made worse of {len(found)}", worse, "", "<= 0" if sees_all else ""),
    ]
    if noise:
        most = max(it.loss for it in found)
        offered = sum(it.offered for it in found)
        low, high = wilson(offered, len(found))
        told.append(Figure(f"minimise, {name}: most that one lost, in deviations", most / noise, ""))
        told.append(Figure(f"minimise, {name}: offered ({low:.2f} to {high:.2f})", offered / len(found), ""))
    return told
