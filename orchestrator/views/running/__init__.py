"""Commands that run candidates: a whole campaign, a replay, a guard, a shell."""

from orchestrator.views.running import guards, init, replay, resume, run, shell

commands = (init.command, run.command, resume.command, replay.command, guards.command, shell.command)
