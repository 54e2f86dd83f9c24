"""Commands that look at the judging itself: is a task fit to be searched, and may one untrusted change come in."""

from orchestrator.views.judging import check, gate

commands = (check.command, gate.command)
