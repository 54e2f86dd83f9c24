"""A task as `discover` writes it, in use: what lies beside its functions stays as it is, whatever form a change has,
and a gate says the same of it.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.agents.messages import Work
from orchestrator.agents.offers import NoOffer, offer_of
from orchestrator.change import Tree
from orchestrator.change.canonical import difference
from orchestrator.discovery.targets import FunctionTarget, Pool
from orchestrator.discovery.writing import Made
from orchestrator.domain.audit import Asked
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.examine.audit import AuditReport
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.importing import write_task
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.proposers import Brief
from orchestrator.proposers.operators import Operators
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.audits import keep_audit, place_of
from orchestrator.task.snapshot import snapshot
from orchestrator.views.judging.audit_record import record
from orchestrator.views.judging.gate import command as gate
from sandbox.backends.fake.backend import Guest
from tests.clicking import runner
from tests.orchestrator.discovery.repositories import UNITTEST, WORDS, repository
from tests.orchestrator.loop.relay_script import RelayScript
from tests.orchestrator.loop.scripted import Act, scripted
from tests.orchestrator.proposers.operators.past import Remembered
from tests.orchestrator.views.judging.stage import whole

OLD = Tree.of({"words.py": WORDS})
BESIDE = WORDS.replace("LIMIT = 64", "LIMIT = 65")
FORMS = {
    "diff": difference(OLD, Tree.of({"words.py": BESIDE})),
    "whole": whole(BESIDE, "words.py"),
    "block": "words.py\n<<<<<<< SEARCH\nLIMIT = 64\n=======\nLIMIT = 65\n>>>>>>> REPLACE\n",
}
WHY = "not editable: words.py: line 3 of the new file is outside its regions and differs"


def act(form: str) -> Act:
    async def propose(_: Brief) -> Sequence[Proposal]:
        return [Proposal(operator=form, description=form, text=FORMS[form])]

    return propose


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """As `discover` writes it; nothing of it is run."""
    pool = Pool(b"", 10, 100, (1.0,), 90)
    target = FunctionTarget("words", "top", "words.py", 0.9, 9, ("words.py::top",), (), pool)
    there, folder = repository(tmp_path / "there", UNITTEST), tmp_path / "task"
    write_task(Made(there, (), (), (), 512).task(target, "words"), folder)
    (tmp_path / "beside.diff").write_text(FORMS["diff"])
    return folder


class Played(RelayScript):
    """Judge and candidate of such a task, as far as a baseline needs them."""

    async def program(self, guest: Guest) -> int:
        if guest.job.command == ("python3", "judge.py"):
            return await self._calls(guest)
        answers = {b"L": b"L" + encode(["each"]), b"N": b"N"}
        while request := await guest.request():
            nonce, payload = request
            guest.reply(nonce, answers.get(payload[:1], b"V" + encode(1)))
        return 0


async def test_no_form_of_a_change_reaches_beside_a_function(written: Path) -> None:
    """A campaign ends every such attempt before a chamber is opened; operators propose none, and what an agent left is
    no offer.
    """

    async with scripted(written, Played(), *map(act, FORMS), attempts=3) as session:
        await session.run()
        nodes = [session.bench.state.nodes[f"1.{at}"] for at in (1, 2, 3)]
        assert [(it.ending, WHY in it.why) for it in nodes] == [(Ending.INVALID, True)] * 3, [it.why for it in nodes]
        assert {it.node for it in session.bench.state.trials.values()} == {"1"}
        policy, root = session.bench.policy, session.bench.root
    drafts = await Operators(policy).propose(Remembered(root).brief(1, count=4))
    assert len(drafts) == 4
    assert all("in top(), line" in draft.description for draft in drafts)
    with pytest.raises(NoOffer, match=r"not editable: words\.py"):
        offer_of(root, Work({"words.py": BESIDE.encode()}, ()), policy)


@pytest.mark.parametrize("fails", ["", "nothing faster could be told from the baseline"])
def test_a_gate_with_the_audit_that_is_kept(written: Path, fails: str) -> None:
    """The change is rejected for its own sake, with exit code 1, and the audit is told as it was."""
    task, findings = load_task(written), Findings()
    if fails:
        findings.add(Section.WIRING, Sign.FAIL, fails)
    audit = record(task, snapshot(task, written), AuditReport(held=18, tried=18), findings, Asked(runs=3, quick=False))
    keep_audit(written, audit, audit.model_dump_json())
    words = ["--diff", str(written.parent / "beside.diff"), "--audit", str(place_of(written)), "--json", str(written)]
    result = runner().invoke(gate, words, obj=Settings(), standalone_mode=False)
    told = json.loads(result.stdout)
    assert (result.return_value, told["decision"]) == (1, "rejected"), result.output
    assert WHY in json.dumps(told)
    assert told["audit"]["good"] is not bool(fails)
    assert told["audit"]["score"] == f"held against 18 of 18{', but the baseline is at fault' * bool(fails)}"
