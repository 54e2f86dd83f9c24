"""Commands about the chamber itself; the only views that know the sandbox."""

from orchestrator.views.chamber import attack, doctor, execute, reap

commands = (doctor.command, attack.command, execute.command, reap.command)
