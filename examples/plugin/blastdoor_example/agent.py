"""An agent: how a program that its image has is started in a chamber of its own."""

from orchestrator.agents.presets import BRIEF, OURS, WORKSPACE, Preset, Start, Told

blastdoor_interface = 1

# It asks no model, so that it can be tried for nothing; a real one would start its program here.
_SCRIPT = f"""head -n 20 {BRIEF}
cd {WORKSPACE}
touch notes.txt
date >> notes.txt
blastdoor submit "a note of the time"
"""


def _start(told: Told) -> Start:
    """`told` has the rules for a system prompt, and the models that may be asked."""
    return Start(("sh", f"{OURS}/scribe.sh"), {"SCRIBE_MODEL": told.model}, {"scribe.sh": _SCRIPT})


SCRIBE = Preset(program="sh", start=_start)
