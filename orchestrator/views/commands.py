"""The commands: what each is for, and where its code is. Only the code of the one that is called is loaded."""

import difflib
import gc
import importlib
from typing import NamedTuple

import click


class Place(NamedTuple):
    """`code` is a module of this package, and after a colon the name in it where that is not `command`."""

    code: str
    help: str


COMMANDS = {
    "up": Place("chamber.up:up", "Start a private Docker engine where none answers."),
    "down": Place("chamber.up:down", "Stop the private Docker engine."),
    "images": Place("chamber.images", "List and build the images that chambers start from."),
    "init": Place("running.init", "Create a small, commented task in a new FOLDER."),
    "import": Place("running.import_task", "Turn a task of another system into a task in a new FOLDER."),
    "discover": Place("running.discover", "Find what in a repository is worth a search."),
    "run": Place("running.run", "Search for a better candidate for TASK."),
    "resume": Place("running.resume", "Continue the campaign of TASK."),
    "combine": Place("running.combine", "Combine the best candidates of TASK in a stage of its own."),
    "ab": Place("running.ab", "Compare two ways to search on TASK."),
    "minimise": Place("running.minimise", "Leave out what does nothing for the score of NODE."),
    "replay": Place("running.replay", "Run NODE once more and say whether its verdict stands."),
    "guards": Place("running.guards", "Show the guards that NODE inherits, from the root down."),
    "shell": Place("running.shell", "Open a shell in a fresh chamber with NODE's files."),
    "check": Place("judging.check", "Check TASK before you search with it."),
    "audit": Place("judging.audit", "Try to cheat the judge of TASK before a search does."),
    "gate": Place("judging.gate", "Judge one untrusted change to TASK."),
    "status": Place("campaign.status", "Show where a campaign stands."),
    "chart": Place("campaign.pictures:chart_command", "Plot every node of a run as a dot: score over order."),
    "tree": Place("campaign.pictures:tree_command", "Show the tree of a run and what became of each node."),
    "show": Place("campaign.show", "Show everything about NODE."),
    "diff": Place("campaign.diff", "Show what NODE changed."),
    "logs": Place("campaign.logs", "Print a trial's log, or the campaign's events."),
    "report": Place("campaign.report", "Write a report in Markdown."),
    "stalls": Place("campaign.stalls", "Show which agents stalled, and what that cost and saved."),
    "credit": Place("campaign.credit", "Show which choices of the search paid."),
    "export": Place("campaign.export", "Write a campaign, or one of its nodes, to files."),
    "apply": Place("campaign.apply", "Apply the changes of NODE to your own workspace."),
    "ledger": Place("campaign.ledger", "List, verify and clean up the record of a campaign."),
    "playbook": Place("campaign.playbook", "Show and choose the playbook that agents work with."),
    "pause": Place("campaign.actions:pause", "Start no new attempts; running ones finish as usual."),
    "inject": Place("campaign.actions:inject", "Add a change of your own to the tree as a node."),
    "requeue": Place("campaign.actions:requeue", "Run the attempt of NODE again, now."),
    "release": Place("campaign.actions:release", "Release NODE from quarantine."),
    "cancel": Place("campaign.actions:cancel", "Cancel the attempt of NODE; it is not charged."),
    "steer": Place("campaign.steer", "Send an instruction to every later proposal."),
    "accept": Place("campaign.promotion:accept", "Accept a candidate awaiting approval."),
    "decline": Place("campaign.promotion:decline", "Reject a candidate awaiting approval."),
    "watch": Place("live.watch", "Watch a campaign that is running in another terminal."),
    "serve": Place("page.command", "Show campaigns on a page in the browser."),
    "doctor": Place("chamber.doctor", "Check that chambers keep their promises."),
    "attack": Place("chamber.attack", "Run every attack in the threat table against a chamber."),
    "exec": Place("chamber.execute", "Run one command in a fresh chamber."),
    "reap": Place("chamber.reap", "Remove what crashed processes left behind."),
    "completion": Place("completion", "Print the completion script for a shell."),
}


class Commands(click.Group):
    """Knows the names and lines of all commands, and loads one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in sorted(COMMANDS)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            meant = f"did you mean {near[0]}?" if near else f"commands are {', '.join(sorted(COMMANDS))}"
            ctx.fail(f"No such command {name!r}; {meant}")
        return super().resolve_command(ctx, args)


def load(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].code.partition(":")
    # Many objects are made and none goes: to look for garbage among them takes a sixth of the time.
    gc.disable()
    try:
        loaded = importlib.import_module(f"{__package__}.{module}")
    finally:
        gc.freeze()
        gc.enable()
    command: click.Command = getattr(loaded, attribute or "command")
    command.short_help = COMMANDS[name].help
    return command
