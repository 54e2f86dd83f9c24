"""Two runs of a baseline: whether the same program gets the same score."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from orchestrator.loop.rehearsal import rehearse
from orchestrator.loop.workbench import Parts
from orchestrator.task import TaskError
from sandbox import SandboxError


@dataclass(frozen=True)
class TwoRuns:
    """`scores` of the first metric, or `why` there are not two of them."""

    scores: tuple[float, ...] = ()
    why: str = ""

    @property
    def noisy(self) -> bool:
        return len(set(self.scores)) > 1


async def score_twice(open_parts: Callable[[], AbstractAsyncContextManager[Parts]]) -> TwoRuns:
    """Records nothing. Trouble of the engine is an answer, too."""
    scores: list[float] = []
    try:
        async with open_parts() as parts:
            name = parts.task.metrics[0].name
            for _ in range(2):
                run = await rehearse(parts)
                result = run.judgement.result if run.judgement else None
                if not run.scored or result is None:
                    return TwoRuns(why=f"the baseline got no score ({run.reason or 'its judge gave none'})")
                scores.append(result.metrics.get(name, result.score or 0.0))
    except (SandboxError, TaskError) as error:
        return TwoRuns(why=f"no chamber could be had ({error})")
    return TwoRuns(tuple(scores))
