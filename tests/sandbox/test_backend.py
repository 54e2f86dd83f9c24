"""A job is admitted only where the backend gives what it needs."""

import dataclasses

import pytest

from sandbox import Capabilities, Enforcer, Job, Limits, Mode, Needs, Refused

ALL = Capabilities("test", True, True, True, dict.fromkeys(Limits.model_fields, Enforcer.ENGINE))
JOB = Job(command=("true",))


def test_what_is_given_is_admitted() -> None:
    """A backend that has everything refuses nothing."""
    enforced = dict.fromkeys(Limits.model_fields, Enforcer.CONTROLLER)
    ALL.admit(Job(command=("true",), mode=Mode.RELAY, needs=Needs(live_log=True, enforced=enforced)))
    ALL.admit(Job(command=("true",), needs=Needs(live_log=True, stop=True, enforced=enforced)))


def test_relay_has_no_grace() -> None:
    """A relay job that wants to be stopped with grace is refused wherever it goes."""
    with pytest.raises(Refused, match="no grace"):
        ALL.admit(Job(command=("true",), mode=Mode.RELAY, needs=Needs(stop=True)))


@pytest.mark.parametrize(
    ("lack", "job"),
    [
        ("relay", Job(command=("true",), mode=Mode.RELAY)),
        ("live_log", Job(command=("true",), needs=Needs(live_log=True))),
        ("stop", Job(command=("true",), needs=Needs(stop=True))),
    ],
)
def test_missing_capability_is_refused(lack: str, job: Job) -> None:
    """What a job needs and a backend lacks is named; a job that does not need it is admitted."""
    poor = Capabilities("poor", lack != "relay", lack != "live_log", lack != "stop", ALL.enforced)
    with pytest.raises(Refused, match=f"poor.* has no {lack.replace('_', ' ')}"):
        poor.admit(job)
    poor.admit(JOB)


@pytest.mark.parametrize("held", [Enforcer.GUEST, Enforcer.NOBODY, None])
def test_weak_enforcement_is_refused(held: Enforcer | None) -> None:
    """A limit that is held by less than the job accepts refuses it; one that is not mentioned is held by nobody. A job
    that says nothing wants time, memory, log and outputs held by more than the guest.
    """
    for limit in Limits.model_fields:
        enforced = {name: holder for name, holder in {**ALL.enforced, limit: held}.items() if holder}
        weak = dataclasses.replace(ALL, enforced=enforced)
        with pytest.raises(Refused, match=f"enforces {limit}, but the job accepts no less than engine"):
            weak.admit(Job(command=("true",), needs=Needs(enforced={limit: Enforcer.ENGINE})))
        weak.admit(Job(command=("true",), needs=Needs(enforced={limit: held or Enforcer.NOBODY})))
        if limit in ("wall", "memory", "log_bytes", "output_bytes"):
            with pytest.raises(Refused, match=limit):
                weak.admit(JOB)
