"""The task file: read strictly, checked against its folder, and bound to what lay there when a run began.

A name is loaded when it is asked for: one who looks at a campaign does not wait for all that a task can say.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.task.combining import POOL_INPUT, CombineSpec, MemberTerms
    from orchestrator.task.conditions import active_part, in_order, is_in, is_point, is_there, needs_of, takes
    from orchestrator.task.crosschecks import playbook_of
    from orchestrator.task.errors import FILE, TaskError, refuse_unnameable
    from orchestrator.task.files import input_digest
    from orchestrator.task.model import Target, Task, diff_of
    from orchestrator.task.reading import load_task
    from orchestrator.task.sections import (
        AgentSpec,
        ArchiveSpec,
        Budget,
        FeatureSpec,
        GuardSpec,
        HeldOutSpec,
        ImageSpec,
        JudgeSpec,
        MetricSpec,
        ModelSpec,
        PruningSpec,
        RankingSpec,
        Repository,
        SearchSpec,
        StallSpec,
        Trial,
        Tune,
    )
    from orchestrator.task.snapshot import Snapshot
    from orchestrator.task.space import Bool, Choice, Float, Int, Parameter, Parameters, Space
    from orchestrator.task.stored import Criteria, StoredTask
    from orchestrator.task.template import write_template
    from orchestrator.units import format_duration, format_size, parse_duration, parse_money, parse_rate, parse_size

__all__ = [
    "FILE",
    "POOL_INPUT",
    "AgentSpec",
    "ArchiveSpec",
    "Bool",
    "Budget",
    "Choice",
    "CombineSpec",
    "Criteria",
    "FeatureSpec",
    "Float",
    "GuardSpec",
    "HeldOutSpec",
    "ImageSpec",
    "Int",
    "JudgeSpec",
    "MemberTerms",
    "MetricSpec",
    "ModelSpec",
    "Parameter",
    "Parameters",
    "PruningSpec",
    "RankingSpec",
    "Repository",
    "SearchSpec",
    "Snapshot",
    "Space",
    "StallSpec",
    "StoredTask",
    "Target",
    "Task",
    "TaskError",
    "Trial",
    "Tune",
    "active_part",
    "diff_of",
    "format_duration",
    "format_size",
    "in_order",
    "input_digest",
    "is_in",
    "is_point",
    "is_there",
    "load_task",
    "needs_of",
    "parse_duration",
    "parse_money",
    "parse_rate",
    "parse_size",
    "playbook_of",
    "refuse_unnameable",
    "takes",
    "write_template",
]

_HOMES = {
    "orchestrator.task.combining": "CombineSpec MemberTerms POOL_INPUT",
    "orchestrator.task.conditions": "active_part in_order is_in is_point is_there needs_of takes",
    "orchestrator.task.crosschecks": "playbook_of",
    "orchestrator.task.errors": "FILE TaskError refuse_unnameable",
    "orchestrator.task.files": "input_digest",
    "orchestrator.task.model": "Target Task diff_of",
    "orchestrator.task.reading": "load_task",
    "orchestrator.task.sections": (
        "AgentSpec ArchiveSpec Budget FeatureSpec GuardSpec HeldOutSpec ImageSpec JudgeSpec MetricSpec ModelSpec "
        "PruningSpec RankingSpec Repository SearchSpec StallSpec Trial Tune"
    ),
    "orchestrator.task.snapshot": "Snapshot",
    "orchestrator.task.space": "Bool Choice Float Int Parameter Parameters Space",
    "orchestrator.task.stored": "Criteria StoredTask",
    "orchestrator.task.template": "write_template",
    "orchestrator.units": "format_duration format_size parse_duration parse_money parse_rate parse_size",
}
HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(HOME_OF[name]), name)
    globals()[name] = found
    return found
