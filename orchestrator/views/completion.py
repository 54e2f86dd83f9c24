"""Completion of commands and options in a shell; click writes the script, and answers when the shell asks."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_EVERYWHERE = {
    "bash": 'eval "$(blastdoor completion bash)"  in ~/.bashrc',
    "zsh": 'eval "$(blastdoor completion zsh)"  in ~/.zshrc',
    "fish": "blastdoor completion fish | source  in ~/.config/fish/config.fish",
}


@click.command("completion", epilog="To have it in every shell: " + "; ".join(_EVERYWHERE.values()) + ".")
@click.argument("shell", type=click.Choice(list(_SHELLS)), metavar="SHELL")
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL: bash, zsh or fish."""
    click.echo(_SHELLS[shell](context.find_root().command, {}, "blastdoor", "_BLASTDOOR_COMPLETE").source())
