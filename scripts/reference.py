"""Writes what of docs/ is made from the code: commands with their exit codes, settings, and the modes of a judge.

The pages are committed, so that they can be read where the repository is; a test holds them equal to what this writes.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import click
from pydantic.fields import FieldInfo

from orchestrator import run_options
from orchestrator.domain.tier import Tier
from orchestrator.run_options import OPTIONS
from orchestrator.settings import PREFIX, Settings
from orchestrator.views.cli import cli
from orchestrator.views.commands import COMMANDS, load
from orchestrator.views.exits import MEANINGS, Exit
from orchestrator.views.parsing import Named

DOCS = Path(__file__).parents[1] / "docs"
_NOTE = "<!-- Written by scripts/reference.py (make docs). Change the code that it is made from, not this page. -->"
_MODES = "<!-- From orchestrator/domain/tier.py, by scripts/reference.py (make docs). -->"
_MODES_END = "<!-- The end of the modes. -->"

_GROUPS = {
    "set up": ("up", "down", "images"),
    "start": ("init", "import", "discover", "check", "audit", "run", "resume", "combine", "ab"),
    "look": ("watch", "serve", "status", "chart", "tree", "show", "diff", "logs", "report", "stalls", "credit"),
    "steer": ("pause", "steer", "accept", "decline", "inject", "requeue", "release", "cancel", "guards"),
    "use": ("replay", "minimise", "shell", "apply", "export", "playbook", "ledger"),
    "in CI": ("gate",),
    "one chamber": ("exec", "doctor", "attack", "reap"),
    "your shell": ("completion",),
}

_COMMANDS_INTRO = """\
The last argument of every command about a task is the task's folder; it defaults to `.`. NODE is an id like `1.3.2`,
or `best`. Most commands have `--json`. Options of `blastdoor` itself come before the command.
"""

_GATE_EXITS = "`gate` has its own: 0 accepted, 1 rejected, 2 could not judge ([gate.md](gate.md))."

_SETTINGS_INTRO = f"""\
A value comes from the first place that has one: a flag, the campaign (what it was started with), the task, your
settings, the default. Your settings are the environment, then `~/.config/blastdoor/settings.toml`. `run` prints each
value with its place: *flag*, *campaign*, *task*, *user* or *default*. A variable that starts with `{PREFIX}` and names
no setting is an error.
"""


def commands_page() -> str:
    # A command keeps the help option of the first context that asks for it.
    root = click.Context(cli, info_name="blastdoor", **cli.context_settings)
    every = {name: load(name) for names in _GROUPS.values() for name in names}
    if missing := set(COMMANDS) ^ set(every):
        raise SystemExit(f"scripts/reference.py: put {', '.join(sorted(missing))} into _GROUPS")
    parts = ["# Commands", _NOTE, _COMMANDS_INTRO.strip(), _table("command", "what it does", _summary(root, every))]
    codes = ((str(code.value), MEANINGS[code]) for code in Exit)
    parts += ["## Exit codes", _table("code", "meaning", codes), _GATE_EXITS]
    parts += ["## Options before the command", _options(root)]
    for name, command in every.items():
        parts += _details(command, click.Context(command, root, info_name=name), "##")
    return "\n\n".join(parts) + "\n"


def _summary(root: click.Context, every: dict[str, click.Command]) -> Iterator[tuple[str, str]]:
    for group, names in _GROUPS.items():
        yield f"**{group}**", ""
        for name in names:
            context = click.Context(every[name], root, info_name=name)
            yield _call(context), COMMANDS[name].help
            for _, inner in _inner(context):
                yield _call(inner), _prose(inner.command.get_short_help_str(200))


def _call(context: click.Context) -> str:
    """How it is called, without its options."""
    pieces = context.command.collect_usage_pieces(context)
    words = [word for word in pieces if word not in ("[OPTIONS]", "[ARGS]...")]
    return f"`{' '.join([context.command_path, *words])}`"


def _inner(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    if isinstance(group := context.command, click.Group):
        for name in group.list_commands(context):
            yield name, click.Context(group.commands[name], context, info_name=name)


def _details(command: click.Command, context: click.Context, level: str) -> Iterator[str]:
    yield f"{level} {context.command_path.removeprefix('blastdoor ')}"
    yield _call(context)
    yield from (_prose(part) for part in inspect.cleandoc(command.help or "").split("\n\n"))
    if command.epilog:
        yield _prose(command.epilog)
    if any(isinstance(it, click.Option) for it in command.params):
        yield _options(context)
    for _, inner in _inner(context):
        yield from _details(inner.command, inner, f"{level}#")


def _prose(text: str) -> str:
    """Words that begin with a dollar or hyphens are code; what is code already stays."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    plain = (re.sub(r"(?<![\w-])(--?[a-z][a-z-]*|\$[A-Z_]+)(?![\w-])", r"`\1`", piece) for piece in pieces[::2])
    return "".join(a + b for a, b in zip(plain, [*pieces[1::2], ""], strict=True))


def _options(context: click.Context) -> str:
    options = (it for it in context.command.params if isinstance(it, click.Option) and not it.hidden)
    return _table("option", "value", "meaning", (_option(it, context) for it in options))


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag:
        value = ""
    elif isinstance(option.type, Named):
        value = ", ".join(f"`{name}`" for name in option.type.kind.built_in)
    elif isinstance(option.type, click.Choice):
        value = ", ".join(f"`{choice}`" for choice in option.type.choices)
    else:
        value = option.make_metavar()
    record = option.get_help_record(context)
    return names, value.removesuffix(" RANGE"), _prose(record[1]) if record else ""


def settings_page() -> str:
    fields = Settings.model_fields.items()
    rows = ((f"`{name}`", f"`{PREFIX}{name.upper()}`", _default(name, it), _meaning(name, it)) for name, it in fields)
    table = _table("setting", "variable", "default", "meaning", rows)
    return "\n\n".join(["# Settings", _NOTE, _SETTINGS_INTRO.strip(), table]) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    if field.default is not None:
        return f"`{field.default}`"
    option, more = OPTIONS.get(name), field.json_schema_extra
    unset = option.unset if option else more.get("unset", "") if isinstance(more, dict) else ""
    if option and option.default is not None:
        unset = f"falls back to `{option.kind.shown(option.default)}`"
    return f"none; {unset}" if unset else "none"


def _meaning(name: str, field: FieldInfo) -> str:
    """A page that is named is linked; a choice shows what can be chosen."""
    option = OPTIONS.get(name)
    text = re.sub(r"docs/(\w+\.md)", r"[\1](\1)", _prose(option.help) if option else field.description or "")
    if option and isinstance(option.kind, run_options.Named):
        text += f" One of {', '.join(f'`{it}`' for it in option.kind.kind.built_in)}."
    return text


def _table(*parts: object) -> str:
    *header, rows = parts
    lines = [header, ["---"] * len(header), *rows]  # type: ignore[misc]  # rows are lists of cells, too
    return "\n".join(f"| {' | '.join(map(str, cells))} |".replace("|  |", "| |") for cells in lines)


def task_page() -> str:
    """As it stands, with the modes of a judge as they are declared."""
    page = (DOCS / "task.md").read_text(encoding="utf-8")
    before, _, rest = page.partition(f"{_MODES}\n")
    after = rest.partition(_MODES_END)[2]
    return f"{before}{_MODES}\n\n{_modes()}\n\n{_MODES_END}{after}"


def _modes() -> str:
    lines = (f"- `{tier}`: {tier.terms.about}" for tier in Tier)
    return "\n".join(fill(it, 120, subsequent_indent="  ", break_on_hyphens=False) for it in lines)


PAGES = {"commands.md": commands_page, "settings.md": settings_page, "task.md": task_page}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
