"""Optuna's TPE as it comes, on the same functions."""

from collections.abc import Mapping, Sequence

import optuna

from benchmarks.functions import Function
from orchestrator.domain.proposal import Value
from orchestrator.task import Bool, Choice, Float, Int, Parameter, in_order, is_there


def bare_regret(function: Function, start: Sequence[Mapping[str, Value]], seed: int, trials: int) -> float:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for point in start:
        study.enqueue_trial({name: _outside(function.space[name], value) for name, value in point.items()})

    def objective(trial: optuna.Trial) -> float:
        point: dict[str, Value] = {}
        for name in in_order(function.space):
            if is_there(function.space[name], point):
                point[name] = _suggested(trial, name, function.space[name])
        return function.regret(point)

    study.optimize(objective, n_trials=trials)
    return study.best_value


def _suggested(trial: optuna.Trial, name: str, parameter: Parameter) -> Value:
    match parameter:
        case Float():
            return trial.suggest_float(name, parameter.low, parameter.high, log=parameter.log)
        case Int():
            return trial.suggest_int(name, parameter.low, parameter.high, step=parameter.step)
        case Choice():
            return parameter.values[trial.suggest_categorical(name, range(len(parameter.values)))]
        case Bool():
            return bool(trial.suggest_categorical(name, range(2)))


def _outside(parameter: Parameter, value: Value) -> Value:
    """Choices go by their number."""
    if isinstance(parameter, Choice):
        return parameter.values.index(value)
    return int(value) if isinstance(parameter, Bool) else value
