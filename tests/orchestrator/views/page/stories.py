"""Campaigns whose words are as bad as words can be: one that asked models, two that are compared."""

import random
import shutil
from pathlib import Path

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.ab import Scale
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Goal
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.proposal import Value
from orchestrator.domain.records import Role, Spent
from orchestrator.wiring.ab import SIDES, Asked, Ended, write_asked
from tests.orchestrator.views.campaign.builder import Story
from tests.orchestrator.views.campaign.conftest import Stage

EVIL = '<img src=x onerror="window.evil=1"><script>window.evil=1</script>'
_LOG = f"epoch 1\n\x1b[31mred\x1b[0m\n\u202eturned\n{EVIL}\n"
_KINDS = ("hex", "square", "ring")


def proposed_by_models(folder: Path, count: int = 24, seed: int = 5) -> Story:
    """Two metrics, eight tasks, three parameters, two models, a control, a failure now and then, one at work."""
    task = {"name": "speedup", "metrics": [{"name": "score"}, {"name": "seconds", "goal": "lower"}]}
    story = Story(folder, task=task).open(beside="grid", usd=50_000_000, proposer="llm")
    story.add_guard("1", "tests")
    story.baseline(1.0, seconds=9.0)
    draw, best, parent = random.Random(seed), 1.0, "1"
    for number in range(count):
        role = Role.CONTROL if number % 5 == 4 else Role.SEARCH
        rows, kind = draw.randint(2, 9), draw.choice(_KINDS)
        params: dict[str, Value] = {"rows": rows, "rate": float(10 ** draw.uniform(-4, -1)), "kind": kind}
        value = round(1 + 0.1 * rows + 0.5 * (kind == "hex") + draw.gauss(0, 0.1), 4)
        node = _proposed(story, "1" if role is Role.CONTROL else parent, role, number, params, draw)
        if number % 7 == 6:
            story.tell(e.TrialEnded(trial=story.trial(node), ending=Ending.FAILED, reason=EVIL, log=story.keep(b"x\n")))
            story.end(node, Ending.FAILED, why=EVIL)
            continue
        kept = value > best and role is Role.SEARCH
        tasks = {f"case {at} {EVIL if at == 3 else ''}": round(value + draw.gauss(0, 0.3), 3) for at in range(8)}
        seconds = round(9 - value + draw.random(), 3)
        story.score(node, {"score": value, "seconds": seconds}, tasks=tasks, notes=EVIL, log=_LOG.encode())
        story.end(node, Ending.SCORED, kept=kept, why=EVIL)
        if kept:
            best, parent = value, node
            before = story.state.champion()
            over = before.id if before else None
            story.tell(e.ChampionChanged(run=1, node=node, cohort=str(story.state.run.cohort), over=over))
    story.attempt(parent, None, description="at work")
    return story.tell(e.Steered(text=EVIL))


def _proposed(story: Story, parent: str, role: Role, number: int, params: dict[str, Value], draw: random.Random) -> str:
    """A node whose change, file name, description and answer are all hostile."""
    node = story.opened(parent, role)
    model = draw.choice(["claude-sonnet-5-5", "another-model"])
    answer = story.keep(f"answer of a model {EVIL}\n".encode())
    operator = draw.choice(["mutate", "rewrite"])
    described = f"case {params['kind']} {EVIL}"
    told = e.Proposed(
        node=node,
        draft=1,
        tree="b" * 64,
        operator=operator,
        model=model,
        description=described,
        params=params,
        change=answer,
    )
    spent, tokens = Spent(microdollars=draw.randint(1000, 90_000), tokens=1100), Tokens(input=700, output=400)
    of = {"node": node, "call": f"c{number}", "role": ModelRole.USER, "model": model}
    call = e.ModelCallIntended.model_validate({**of, "worst": spent})
    ended = e.ModelCallEnded.model_validate({**of, "ending": CallEnding.COMPLETE, "tokens": tokens, "spent": spent})
    story.tell(told, call, ended)
    code = f"# {EVIL}\ndef solve(rows={params['rows']}):\n    return [row * 2.5 for row in range(rows)]  # {number}\n"
    files = {"solve.py": code, f"{EVIL.replace('/', '')}.py": f"x = {number}\n"}
    story.promote(node, 1, Tree({**story.trees[parent], **Tree.of(files)}), parent)
    return node


def comparison(task: Path) -> Path:
    """One pair that is complete and one that is not begun, where `blastdoor ab` keeps them."""
    place = task / ".blastdoor" / "ab"
    for name, best in (("01a", 2.0), ("01b", 3.0)):
        made = Stage(task.parent / f"{task.name} {name}")
        made.story.open().baseline(1.0)
        made.story.attempt("1", best, kept=True, description=EVIL)
        made.story.attempt("1", 0.5)
        made.write()
        place.mkdir(parents=True, exist_ok=True)
        made.campaign.rename(place / name)
        shutil.rmtree(made.folder)
    ended = {name: Ended(why="2 of 2 attempts are used") for name in ("01a", "01b")}
    asked = Asked(
        task=EVIL,
        options={},
        sides={"a": {"proposer": "grid"}, "b": {"proposer": EVIL}},
        seeds=(0, 1),
        target=None,
        scale=Scale("score", Goal.HIGHER),
        values={side: {"attempts": 2} for side in SIDES},
        digests={},
        first=("a", "b"),
        ended=ended,
    )
    write_asked(place, asked)
    return place
