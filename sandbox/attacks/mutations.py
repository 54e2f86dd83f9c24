"""The mutation check: each hardening flag is switched off in turn, and at least one attack must then succeed.

A flag whose removal no attack notices is useless or untested. Red counts only when the row was good with everything
on, and when the attack ran; an honest candidate must still get its outputs through, else the chamber is what broke.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sandbox.attacks.attack import Result, Target
from sandbox.attacks.suite import run_suite
from sandbox.errors import Refused
from sandbox.posture import FULL

CONTROL = "C01"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A flag, the rows that should notice, and why a runtime's own kernel may keep it from being noticed there."""

    flag: str
    rows: tuple[str, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)


def _sentry(reason: str) -> dict[str, str]:
    return {"runsc": reason}


MUTATIONS = (
    Mutation("user", ("T03", "T06", "T23")),
    Mutation(
        "network",
        ("T01", "T12", "T59", "T60", "T61"),
        _sentry("registered with --network=none, the sentry has no network whatever the container is given"),
    ),
    Mutation("ipc", ("T12",), _sentry("shared memory and queues live in the sentry, one a chamber")),
    Mutation("cgroup_namespace", ("T05",), _sentry("the sentry shows no cgroup path of the host")),
    Mutation("read_only_root", ("T17",)),
    Mutation("drop_capabilities", ("T02",)),
    Mutation("no_new_privileges", ("T03",), _sentry("the sentry ignores the set-user-ID bit")),
    Mutation(
        "seccomp",
        ("T04", "T06", "T07", "T08", "T14", "T82", "T83", "T97"),
        _sentry("the sentry is the kernel; no profile applies to guests"),
    ),
    Mutation("masked_paths", ("T09",), _sentry("the sentry's /proc has none of these files")),
    Mutation("read_only_paths", ("T09",), _sentry("the sentry's /proc/sys is its own and has nothing of the host's")),
    Mutation("memory", ("T14", "T15")),
    Mutation("pids", ("T13",)),
    Mutation("cpus", ("T23",)),
    Mutation("open_files", ("T19",)),
    Mutation("core", ("T21",)),
    Mutation("own_files", ("T97",), _sentry("locks are the sentry's, one a chamber")),
    Mutation(
        "other_limits",
        ("T98",),
        _sentry("processes are the sentry's, and so are their limits, whatever the host's are"),
    ),
    Mutation("work_size", ("T15",)),
    Mutation("work_inodes", ("T16",), _sentry("this build knows no limit on inodes; memory is the bound there")),
    Mutation("work_nosuid", ("T03",), _sentry("the sentry's mount table shows no such option; it ignores the bit")),
    Mutation("work_nodev", ("T03",), _sentry("the sentry's mount table shows no such option; it has no host devices")),
    Mutation("no_terminals", ("T23",)),
    Mutation("log_driver", ("T18",)),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happened to the rows of one mutation on one runtime. `never`: why it cannot be switched off there."""

    mutation: Mutation
    runtime: str
    control: Result
    results: Sequence[Result]
    baseline: Sequence[Result]
    never: str = ""

    @property
    def red(self) -> list[str]:
        """Ids of attacks that succeeded now and did not before."""
        steady = {(result.attack.id, result.attack.title) for result in self.baseline if result.good}
        succeeded = [result.attack for result in self.results if result.finding.ran and not result.finding.blocked]
        return sorted({item.id for item in succeeded if (item.id, item.title) in steady})

    @property
    def unseen(self) -> str:
        """Why nothing needs to turn red here; empty when something must."""
        return self.never or self.mutation.unseen.get(self.runtime, "")

    @property
    def good(self) -> bool:
        return self.control.good and bool(self.red or self.unseen)


OnVerdict = Callable[[Verdict], None]


async def run_mutations(
    target: Target,
    flags: Collection[str] = (),
    on_verdict: OnVerdict | None = None,
    baseline: Sequence[Result] = (),
) -> list[Verdict]:
    """Measure these flags, or all. `baseline` is a run of the same rows with everything on; without it, one is made."""
    chosen = _chosen(flags)
    rows = {row for mutation in chosen for row in mutation.rows}
    baseline = baseline or await run_suite(target, rows)
    verdicts = []
    for mutation in chosen:
        never = target.never.get(mutation.flag, "")
        posture = FULL if never else replace(FULL, **{mutation.flag: False})
        control, *results = await run_suite(target, {CONTROL, *mutation.rows}, posture=posture)
        verdict = Verdict(mutation, target.runtime, control, results, baseline, never)
        verdicts.append(verdict)
        if on_verdict:
            on_verdict(verdict)
    return verdicts


def _chosen(flags: Collection[str]) -> list[Mutation]:
    known = {mutation.flag for mutation in MUTATIONS}
    if unknown := sorted(set(flags) - known):
        raise Refused(f"there is no hardening flag {unknown[0]}; known are {', '.join(sorted(known))}")
    return [mutation for mutation in MUTATIONS if not flags or mutation.flag in flags]
