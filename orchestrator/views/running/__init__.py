"""Commands that run candidates: a whole campaign, a replay, a guard, a shell."""

from orchestrator.views.running import init, resume, run

commands = (init.command, run.command, resume.command)
