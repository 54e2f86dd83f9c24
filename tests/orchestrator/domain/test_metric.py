"""Which metrics are times, by their names: no run of the same code takes the same time again."""

import pytest

from orchestrator.domain.metric import Metric

TIMES = (
    *("seconds", "p95_ms", "solveTime", "wall_s", "wallS", "t.s", "usecs", "hours", "walltime", "wall_time"),
    *("wallclock", "wall-clock", "wallClock", "cputime", "cpu_us", "ops_per_s", "opsPerS", "ops_per_second"),
    *("calls_per_ms", "tokens_per_minute", "games.per.hour", "qps", "rps", "fps", "iops", "slowdown", "speedup"),
    *("time_per_step", "time_to_accuracy", "ms_per_step", "error_time", "mean_latency", "time_score"),
)
NONE = (
    *("score", "points", "steps", "second_best", "bonus", "campus", "class", "s_measure", "model_s_score", "items"),
    *("accuracy_per_epoch", "depth_first_score", "points_per_step", "per_sample_loss", "superseded", "timeless"),
    *("long_time_error", "time_step", "time_series_score", "runtime_errors", "latency_rmse", "speed_error"),
    *(
        "time_complexity",
        "makespan",
        "overall",
        "clock_cycles",
        "tps",
        "flops",
        "wall_hits",
        "minimum",
        "max_per_minor",
    ),
)


@pytest.mark.parametrize("name", TIMES)
def test_a_time(name: str) -> None:
    assert Metric(name).is_time
    assert Metric(name.upper() if name.islower() else name).is_time


@pytest.mark.parametrize("name", NONE)
def test_no_time(name: str) -> None:
    """Unless the task says so."""
    assert not Metric(name).is_time
    assert Metric(name, timing=True).is_time
