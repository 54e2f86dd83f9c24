"""The task file: read strictly, checked against its folder, and bound to what lay there when a run began."""

from orchestrator.task.combining import POOL_INPUT, CombineSpec
from orchestrator.task.conditions import active_part, in_order, is_in, is_point, is_there, needs_of, takes
from orchestrator.task.crosschecks import playbook_of
from orchestrator.task.errors import TaskError, refuse_unnameable
from orchestrator.task.files import input_digest
from orchestrator.task.model import Target, Task, diff_of
from orchestrator.task.reading import FILE, load_task
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
from orchestrator.task.snapshot import Snapshot, snapshot
from orchestrator.task.space import Bool, Choice, Float, Int, Parameter, Parameters, Space
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
    "FeatureSpec",
    "Float",
    "GuardSpec",
    "HeldOutSpec",
    "ImageSpec",
    "Int",
    "JudgeSpec",
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
    "snapshot",
    "takes",
    "write_template",
]
