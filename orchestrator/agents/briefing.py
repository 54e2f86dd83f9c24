"""What an agent is told: rules for its system prompt, and a brief of its branch as a file.

The brief is made by the same means as what a model is asked directly: results are rounded, words of programs are
escaped and framed as data.
"""

from collections.abc import Sequence

from orchestrator.change import Policy, shown
from orchestrator.domain.metric import Metric
from orchestrator.llm.allowance import Allowance
from orchestrator.proposers.base import Brief
from orchestrator.proposers.llm.context import Fixed, Telling
from orchestrator.proposers.llm.rules import FRAMES, about_task
from orchestrator.task import Task

_PATHS = 100

_ALONE = """\
You work alone on one change to a program, in a chamber without network. Nobody answers questions.
In {workspace} you may edit, create and delete only these paths: {paths}
(* stands for any characters within one name, ** for any folders.) All else there is for reading; what you do to it is
left out. So is what tools leave behind (caches, histories, swap files), unless a path above has its name in it.
{regions}Only text files are taken over, at most {files} of them with {size} bytes in all.
{tools}
You have {minutes} for all of it{caps}. What is in {workspace} when the time is over is handed in as it is.
What you print, and what you write about scores, counts for nothing: a judge that neither you nor the program can reach
measures what you hand in."""

_TUNE = """\
`blastdoor tune` runs what is in the workspace now against a cheaper target, in tune mode, and prints its score{left}.
The program sees $BLASTDOOR_MODE: tune then, submit where it counts. It may leave out what is expensive while it tunes.
"""
_SUBMIT = """\
`blastdoor submit "what you changed and why, in one line"` hands in what is in the workspace now, and ends your work.
It is then run for real, in submit mode. Without it, what is there when you finish is handed in."""

_QUESTION = """\
Improve what is measured by changing the files of the workspace, which are those of {parent}. {branch} Make one change
that you have a reason for, try that the program still works, and hand it in."""
_BEGINS = "You begin a branch of its own: try another idea than those above."
_GOES_ON = "You are at step {step} of this branch: go on with what it is about, as its last steps show."


def rules_of(policy: Policy, brief: Brief, seconds: float, allowance: Allowance | None, workspace: str) -> str:
    more = f" and {len(policy.editable) - _PATHS} more" if len(policy.editable) > _PATHS else ""
    left = f"; {brief.tunes} are left in all" if brief.tunes is not None else ""
    return _ALONE.format(
        paths=", ".join(shown(it, 1000) for it in policy.editable[:_PATHS]) + more,
        regions=policy.told_regions(),
        files=policy.caps.files,
        size=policy.caps.total_bytes,
        workspace=workspace,
        tools=(_TUNE.format(left=left) if brief.tune else "") + _SUBMIT,
        minutes=f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds // 60:.0f} minutes",
        caps=_caps(allowance),
    )


def brief_of(task: Task, policy: Policy, metrics: Sequence[Metric], brief: Brief, rules: str) -> str:
    """The same bytes for the same brief; within the tokens that the task allows for context."""
    branch = _GOES_ON.format(step=brief.step) if brief.step > 1 else _BEGINS
    fixed = Fixed(f"# Rules\n{rules}\n\n{FRAMES}", about_task(task, policy, changes_code=False))
    telling = Telling(fixed, brief, policy, metrics, task.model.context, files=False)
    question = "# What you are asked for\n" + _QUESTION.format(parent=brief.parent, branch=branch)
    context = telling.context(question, others=task.model.others)
    return "\n\n".join((*context.system, context.question)) + "\n"


def _caps(allowance: Allowance | None) -> str:
    if allowance is None:
        return ""
    said = f", and ${allowance.microdollars / 1e6:g} of the model"
    return said + (f" or {allowance.tokens:,} tokens, whichever is first" if allowance.tokens is not None else "")
