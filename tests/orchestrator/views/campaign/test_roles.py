"""What models cost by role, how the dollars are shared, and what the verifier found: told wherever a person looks."""

from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Role, Spent
from tests.orchestrator.views.campaign.builder import Story
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage

ROLES: dict[str, dict[str, dict[str, int]]] = {"roles": {"evolver": {}, "verifier": {}}}


@pytest.fixture
def asked(tmp_path: Path) -> Stage:
    """A flagged node that is the best, one that is held, and calls of two roles."""
    stage = Stage(tmp_path / "task")
    stage.story = story = Story(stage.folder, task=ROLES)
    story.open(usd=5_000_000)
    story.baseline(1.0)
    best = story.attempt("1", 2.0, kept=True)
    _call(story, best, ModelRole.USER, "a-user", 300_000)
    story.tell(e.Reviewed(node=best, draft=1, finding="flag", reasons=HOSTILE))
    held = "1.2"
    story.tell(e.AttemptOpened(node=held, parent="1", role=Role.SEARCH, number=2))
    story.tell(e.Proposed(node=held, draft=1, operator="llm", description="reads the gold"))
    _call(story, held, ModelRole.USER, "a-user", 100_000)
    _call(story, held, ModelRole.VERIFIER, "a-verifier", 20_000)
    story.tell(e.Reviewed(node=held, draft=1, finding="hold", reasons="it opens the answers"))
    why = "the verifier holds it: it opens the answers; blastdoor release 1.2 lets it go on"
    story.tell(e.AttemptQuarantined(node=held, ending=Ending.HELD, why=why))
    return stage


def _call(story: Story, node: str, role: ModelRole, model: str, microdollars: int) -> None:
    call = f"c{len(story.events)}"
    spent = Spent(microdollars=microdollars, tokens=1_100)
    tokens = Tokens(input=700, output=300, cache_read=60, cache_write=40)
    story.tell(
        e.ModelCallIntended(node=node, call=call, role=role, model=model, worst=spent),
        e.ModelCallEnded(
            node=node, call=call, role=role, model=model, ending=CallEnding.COMPLETE, tokens=tokens, spent=spent
        ),
    )


def test_status(asked: Stage) -> None:
    """Dollars and calls by role and model, the shares and why, what was found, and what is held with its reason."""
    text = " ".join(asked.run("status").split())
    assert "user a-user $0.4000 in 2 calls, verifier a-verifier $0.0200 in 1 call" in text
    assert "from now on user" in text
    assert "so evolution gets" in text
    assert "verifier 1 flag, 1 hold" in text
    assert "H 1.2 held the verifier holds it: it opens the answers" in text


def test_tree(asked: Stage) -> None:
    """A flag is seen beside the node, and so is what is held."""
    lines = asked.run("tree").splitlines()
    assert any("1.1" in line and "flagged" in line for line in lines)
    assert any("1.2" in line and "held" in line for line in lines)


def test_show(asked: Stage) -> None:
    """The verifier's words on each draft; words of others do no harm on a screen."""
    text = asked.run("show", "1.1")
    assert "draft 1 flag: [red]evil[/red]" in " ".join(text.split())
    assert "\x1b[2J" not in text
    assert "hold: it opens the answers" in " ".join(asked.run("show", "1.2").split())


def test_report(asked: Stage) -> None:
    """A table of calls, tokens and dollars by role and model, the shares, and the nodes to look at."""
    text = asked.run("report")
    assert "| user | `a-user` | 2 | 1,400 | 600 | 120 | 80 | $0.4000 |" in text
    assert "| verifier | `a-verifier` | 1 | 700 | 300 | 60 | 40 | $0.0200 |" in text
    assert "from now on user" in text
    assert "- **verifier**: 1 flag, 1 hold, which never score; see 1.1, 1.2" in text


def test_json(asked: Stage) -> None:
    """The same for programs; shares sum to 1."""
    for command in ("status", "report"):
        roles = asked.json(command)["roles"]
        assert [(it["role"], it["model"], it["calls"]) for it in roles["models"]] == [
            ("user", "a-user", 2),
            ("verifier", "a-verifier", 1),
        ]
        assert sum(roles["shares"].values()) == pytest.approx(1.0)
        assert roles["findings"] == {"flag": 1, "hold": 1}


def test_release_is_offered(asked: Stage) -> None:
    """What is held can be released like anything in quarantine."""
    assert "1.2 leaves quarantine" in asked.run("release", "1.2")


def test_without_models(stage: Stage) -> None:
    """A campaign that asks nobody has no line for it, and a report that says so."""
    assert "models" not in stage.run("status")
    assert "No model was asked." in stage.run("report")
    assert stage.json("status")["roles"] == {"models": [], "shares": None, "why": None, "findings": {}}
