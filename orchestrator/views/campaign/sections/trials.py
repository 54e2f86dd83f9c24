"""What ran for a node, and what is left of it: its trials and how they were timed, guards, and what is stored."""

from orchestrator.domain import figures
from orchestrator.domain.node import path_to
from orchestrator.domain.records import Calibration, Trial
from orchestrator.views.campaign.sections.material import NodeMaterial
from orchestrator.views.campaign.sections.pruning import reports_of
from orchestrator.views.render.model import Block, Figure, Own, Part, Quote, Section, Table, Words, facts, others

_CELL = 500
_PASSED = {True: Own("passes", "green"), False: Own("does not pass", "red"), None: Own("not asked", "bright_black")}


def trials(it: NodeMaterial) -> Section:
    found = list(it.state.trials_of(it.node.id))
    rows: list[list[Words]] = []
    for trial in found:
        took = it.history.took(trial.id)
        rows.append(
            [
                trial.id,
                trial.purpose,
                str(trial.draft),
                figures.clock(trial.started_at),
                Figure(took, figures.duration(took) if took is not None else ""),
                Quote(_ending(trial), _CELL),
                Figure(trial.exit_code, "" if trial.exit_code is None else str(trial.exit_code)),
                figures.spent(trial.spent),
            ]
        )
    columns = ["trial", "purpose", "draft", "started", "took", "ending", "exit", "cost"]
    data = {"trials": [trial.model_dump(mode="json") for trial in found]}
    return Section("trials", "trials", "", [Table(columns, rows)] if rows else [], data)


def _ending(trial: Trial) -> str:
    if not trial.ended:
        return "runs"
    if trial.ending:
        return f"{trial.ending}: {trial.reason}" if trial.reason else trial.ending
    if trial.fault:
        return f"the judge's fault code: {trial.fault}"
    return "judged" if trial.judged else "waits for the judge"


def channel(it: NodeMaterial) -> Section:
    """How the judge's calls were timed, for every trial in which it called."""
    found = [(trial.id, trial.calibration) for trial in it.state.trials_of(it.node.id) if trial.calibration]
    told = {
        name: f"an empty call takes {made.median_s * 1e3:.3g} ms, jitter {made.jitter_s * 1e3:.3g} ms; "
        f"{figures.plural(made.calls, 'call')}{_each(made)}; seed {made.seed}"
        for name, made in found
    }
    return Section("channel", "channel", "", facts(told), {})


def _each(made: Calibration) -> str:
    """What a call took, the way there and back included, and whether the channel was measured more than once."""
    took = f" of {made.call_s * 1e3:.3g} ms" if made.call_s is not None else ""
    return took + (f", measured {made.measured} times" if made.measured > 1 else "")


def reports(it: NodeMaterial) -> Section:
    return Section("reports", "reports", "", others(reports_of(it.state, it.node)), {})


def guards(it: NodeMaterial) -> Section:
    """Each with the node that it came from: the nearest one wins."""
    found = it.state.guards_of(it.node.id)
    origins = {guard.name: place for place in path_to(it.node.id) for guard in it.state.nodes[place].guards}
    rows: list[list[Words]] = []
    for guard in found:
        word: list[Part] = [_PASSED[it.node.guarded.get(guard.name)]]
        if reason := it.history.guard_reasons.get(guard.name):
            word += [": ", Quote(reason, 120)]
        command = Quote(" ".join(guard.command), _CELL)
        rows.append([Quote(guard.name, _CELL), origins[guard.name], guard.place, command, word])
    table: list[Block] = [Table(["guard", "from", "in", "command", ""], rows)] if rows else []
    return Section("guards", "guards", "", table, {"guards": [guard.model_dump(mode="json") for guard in found]})


def fingerprint(it: NodeMaterial) -> Section:
    trial = it.state.trials.get(it.node.submitted or "")
    return Section("fingerprint", "fingerprint", "", others(trial.fingerprint if trial else {}), {})


def artifacts(it: NodeMaterial) -> Section:
    """Digests of what is stored of a node, by what they are."""
    found = {"diff": it.node.diff, "agent log": it.node.agent_log}
    for draft in it.state.drafts(it.node.id):
        found |= {f"draft {draft.number} text": draft.change}
    gone: dict[str, str] = {}
    for trial in it.state.trials_of(it.node.id):
        parts = {"outputs": trial.outputs, "log": trial.log, "traces": trial.traces}
        kept = {"log": trial.log} if trial.let_go else parts
        found |= {f"trial {trial.id} {part}": digest for part, digest in kept.items()}
        gone |= {f"trial {trial.id} outputs": "let go, to keep within --artifacts"} if trial.let_go else {}
    stored = {name: digest for name, digest in found.items() if digest}
    return Section("artifacts", "artifacts", "", others(stored | gone), {"artifacts": stored})
