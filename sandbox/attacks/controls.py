"""Two controls beside the attacks: an honest candidate must score, an honest wrong one must lose."""

from sandbox.attacks.attack import Arena, Finding, attack
from sandbox.job import Ending

ANSWER = b"42\n"


@attack("C01", "control: an honest candidate's outputs arrive whole")
async def honest(arena: Arena) -> Finding:
    outcome = await arena.run("open('/work/out/answer', 'w').write('42\\n'); print('done')")
    right = outcome.ending is Ending.COMPLETED and outcome.outputs == {"answer": ANSWER}
    return Finding(bool(outcome.outputs), right, str(outcome.ending), f"outputs {dict(outcome.outputs)}")


@attack("C02", "control: an honest wrong candidate is told from a right one")
async def wrong(arena: Arena) -> Finding:
    outcome = await arena.run("open('/work/out/answer', 'w').write('41\\n')")
    loses = outcome.ending is Ending.COMPLETED and outcome.outputs.get("answer") not in (None, ANSWER)
    return Finding(bool(outcome.outputs), loses, str(outcome.ending), f"outputs {dict(outcome.outputs)}")
