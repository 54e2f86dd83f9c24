"""A budget of steps: whoever reports more of them than the task gives is ended, and pays."""

from pathlib import Path

from orchestrator.domain.ending import Ending
from tests.orchestrator.loop.scripted import scripted, write_task
from tests.orchestrator.loop.test_pruning import last, reporting


async def test_more_steps_than_the_task_gives(tmp_path: Path) -> None:
    """Its own word can end it early; within the budget it is judged as usual."""
    task = write_task(tmp_path, trial="steps = 2")
    over = reporting(4, 0.1, 0.2, 0.3, 0.4, hangs=True)
    async with scripted(task, None, over, reporting(5, 0.1, 0.2, 0.3)) as session:
        await session.run()
        node, trial = last(session, 1)
        assert node.ending is Ending.TIMED_OUT
        assert "more than 2 steps" in trial.reason
        assert last(session, 2)[0].ending is Ending.SCORED
        assert session.charged == 2
