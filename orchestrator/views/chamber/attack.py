"""`blastdoor attack`: the attack suite, as a table."""

import click

from orchestrator.views.exits import Exit


@click.command("attack")
def command() -> int:
    """Attack a chamber in every way of the threat table."""
    return Exit.OK
