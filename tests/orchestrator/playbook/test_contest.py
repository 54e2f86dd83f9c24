"""What an attempt's result is, who gets which version, and when a challenger is decided."""

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.certify import Certify, Stand
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric, Ranking, Rule
from orchestrator.domain.records import Purpose
from orchestrator.playbook.contest import Contest, can_be_shown, level_of, open_contest
from orchestrator.playbook.results import NO_GAIN, result_of, tallies
from tests.orchestrator.views.campaign.builder import COHORT, Story

RANKING = Ranking((Metric(),))
FILES = "f" * 64


def begun() -> Story:
    story = Story().open()
    story.baseline(1.0)
    return story.tell(e.PlaybookChanged(version=1, files=FILES, parent=None, by="default", why="ships"))


def challenged(level: float = 0.025, pairs: int = 20) -> Story:
    told = {"files": FILES, "parent": 1, "by": "evolver", "why": "w", "used": False}
    return begun().tell(e.PlaybookChanged.model_validate({"version": 2, "level": level, "pairs": pairs, **told}))


def result(story: Story, node: str, ranking: Ranking = RANKING) -> tuple[float, ...] | None:
    return result_of(story.state, story.state.nodes[node], ranking)


def test_result_is_the_gain_over_the_parent() -> None:
    """Whatever the champion is; a score that is no better than the parent's brought nothing."""
    story = begun()
    first = story.attempt("1", 3.0, kept=True)
    assert result(story, first) == (2.0,)
    assert result(story, story.attempt(first, 3.5)) == (0.5,)
    assert result(story, story.attempt("1", 1.0)) == NO_GAIN
    assert result(story, story.attempt("1", 0.5)) == NO_GAIN


@pytest.mark.parametrize("ending", [it for it in Ending if it.charged and not it.scoreable])
def test_a_failure_brought_nothing(ending: Ending) -> None:
    """It counts like a score that is no better, not less; what is not over, or ended free, has no result."""
    story = begun()
    assert result(story, story.attempt("1", ending=ending)) == NO_GAIN
    for node in ("1", story.attempt("1"), story.attempt("1", ending=Ending.CANCELLED)):
        assert result(story, node) is None


def test_what_did_not_stand_brought_nothing() -> None:
    """Of a score that was run again, the worse one counts; what the verifier doubts is none, for a playbook that
    teaches gaming must not win by it.
    """
    story = begun()
    node = story.attempt("1", 9.0)
    trial = f"{node}-{story.state.nodes[node].trials + 1}"
    verdict = story.state.nodes[node].verdict
    assert verdict is not None
    story.tell(
        e.TrialIntended(trial=trial, node=node, purpose=Purpose.REPLAY, draft=1),
        e.TrialEnded(trial=trial, ending=None, outputs="o"),
        e.JudgingIntended(trial=trial, judging="j"),
        e.JudgingEnded(trial=trial, judging="j", verdict=verdict.model_copy(update={"metrics": {"score": 2.0}})),
    )
    assert result(story, node) == (1.0,)
    assert story.state.nodes[node].verdicts[COHORT].metrics["score"] == 9.0
    for finding in ("hold", "flag"):
        story.tell(e.Reviewed.model_validate({"node": node, "draft": 1, "finding": finding, "reasons": "r"}))
        assert result(story, node) == NO_GAIN


def test_several_metrics() -> None:
    """Gains are compared as scores are: left to right, or by dominance alone."""
    two = (Metric(), Metric("speed"))
    story = Story(task={"metrics": [{"name": "score"}, {"name": "speed"}]}).open()
    story.baseline(1.0, speed=5.0)
    node = story.attempt("1")
    story.score(node, {"score": 1.0, "speed": 7.0})
    story.end(node, Ending.SCORED)
    assert result(story, node, Ranking(two)) == (0.0, 2.0)
    assert result(story, node, Ranking(two, Rule.PARETO)) == (1.0,)


def contest_of(story: Story) -> Contest:
    found = open_contest(story.state)
    assert found is not None
    return found


def play_next(story: Story, *values: float | None, cancelled: bool = False) -> int:
    """One more attempt gets what it is dealt, and the value of that version; which version that was."""
    version = contest_of(story).next_version(7)
    assert version is not None
    ending = Ending.CANCELLED if cancelled and version == 2 else None
    node = story.attempt("1", None if ending else values[version - 1], ending=ending)
    story.tell(e.PlaybookGiven(node=node, version=version, challenger=2))
    return version


def stand(story: Story) -> Stand:
    return contest_of(story).evidence(story.state, RANKING).stand


def test_each_pair_has_one_of_each() -> None:
    """Which of the two comes first is a coin that depends on the seed: the same again, and both in their turn."""
    story = challenged()
    dealt = [play_next(story, 0.5, 0.5) for _ in range(40)]
    assert all(sorted(dealt[at : at + 2]) == [1, 2] for at in range(0, 40, 2))
    assert 4 <= dealt[::2].count(2) <= 16
    assert contest_of(story).next_version(7) is None, "all pairs are dealt"


def test_one_that_always_wins() -> None:
    """Seven pairs of seven are enough."""
    story = challenged()
    for pair in range(1, 8):
        for _ in range(2):
            play_next(story, 0.5, 2.0)
        assert stand(story) is (Stand.PROVEN if pair == 7 else Stand.OPEN)


def test_an_open_half_is_waited_for() -> None:
    """A pair of which one still runs says nothing yet, and later ones are not held up by it."""
    story = challenged(level=0.5, pairs=2)
    for values in ((None, None), (None, None), (0.5, 2.0), (0.5, 2.0)):
        play_next(story, *values)
    assert contest_of(story).evidence(story.state, RANKING).repeats == 1


def test_a_cancelled_half_is_no_result() -> None:
    """Its pair is over and counts for neither; so a challenger that leads to nothing new is given up in the end."""
    story = challenged(level=0.5, pairs=2)
    for _ in range(4):
        play_next(story, 0.5, None, cancelled=True)
    assert stand(story) is Stand.FUTILE


def test_levels_add_up() -> None:
    """However many challengers there are, the chance of ever adopting one that is no better stays below the error."""
    story, certify = begun(), Certify(error=0.05)
    levels = []
    for number in range(2, 60):
        levels.append(level_of(story.state, certify))
        told = {"version": number, "files": FILES, "parent": 1, "by": "evolver", "why": "w", "used": False}
        story.tell(
            e.PlaybookChanged.model_validate({**told, "level": levels[-1], "pairs": 20}),
            e.PlaybookDiscarded(version=number, why="not shown"),
        )
    assert sum(levels) < 0.05
    assert levels == sorted(levels, reverse=True)


def test_none_is_written_that_could_not_pass() -> None:
    """With too few attempts left, or an error that is used up, nobody is asked for a challenger."""
    story = begun()
    assert can_be_shown(story.state, Certify())
    assert can_be_shown(story.state, Certify(), attempts=14)
    assert not can_be_shown(story.state, Certify(), attempts=13)
    assert not can_be_shown(story.state, Certify(repeats=6))


def test_tallies() -> None:
    """What each version's attempts brought, apart for each run."""
    story = begun()
    story.attempt("1", 3.0, kept=True, playbook=1)
    story.attempt("1", 0.5, playbook=1)
    story.attempt("1", ending=Ending.FAILED, playbook=1)
    story.attempt("1", 2.0, playbook=2)
    story.attempt("1", 2.0)
    found = tallies(story.state, RANKING)
    assert found[1].words == "1 of 3 better than what they were built on, 1 kept, 1 without a score"
    assert (found[2].attempts, found[2].best) == (1, (1.0,))
    assert tallies(story.state, RANKING, run=2) == {}


def test_a_persons_word_sets_a_challenger_aside() -> None:
    """There is nothing left to compare it with; what it was tried for stays on record."""
    story = challenged()
    story.tell(e.PlaybookUsed(version=1, by="person", why="chosen"))
    assert open_contest(story.state) is None
    assert story.state.playbooks[2].fate == "not used: set aside for version 1, by person"
