"""The pages say what the code does: no command, flag, setting or ending is invented, and none is left out."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import reference
from orchestrator.budget import Account
from orchestrator.choices import AGENTS, PARENTS, PROPOSERS, PRUNERS
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import FIELDS
from orchestrator.domain.ladder import bound
from orchestrator.domain.verdict import Mode
from orchestrator.examine.gate import Decision
from orchestrator.judge import guest
from orchestrator.judge.bounds import ResultFault
from orchestrator.judge.data import contract_variables
from orchestrator.judge.guest import blastdoor_judge
from orchestrator.registry import Kind
from orchestrator.settings import PREFIX, Settings
from orchestrator.views.exits import Exit
from orchestrator.views.judging.gate import EXITS, FORMS
from tests.clicking import every_command
from tests.docs.pages import (
    DOCS,
    GUIDES,
    PAGES,
    README,
    ROOT,
    anchors,
    calls,
    code_of,
    fences,
    links,
    spans,
    split,
    table,
    tables,
)

CAMPAIGN, COMMANDS, GATE, JUDGES, SETTINGS, TASK = (
    ROOT / "docs" / f"{name}.md" for name in ("campaign", "commands", "gate", "judges", "settings", "task")
)
# Flags of other programs that the pages speak of.
OTHERS = {"--base", "--relative"}
# What an agent finds in its chamber has our name and is no command of ours.
IN_A_CHAMBER = ("tune", "submit")


def named(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_tables(page: Path) -> None:
    """What a relative link names is there: the file, and the heading in it. Each table begins with a header and its
    rule: a blank line in between would leave rows that are plain text.
    """
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} is not there"
        assert ROOT in (target, *target.parents), f"{link} leaves the repository"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"
    lines = split(page)[1]
    for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if line.startswith("|") and not above.startswith("|"):
            assert re.match(r"\|[ :|-]+$", below), f"{page.name}: {line}"


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_commands(page: Path) -> None:
    """Every command that is shown exists, and takes every flag that is shown with it; so does inline code like
    `resume --attempts 80`, a command's name with flags.
    """
    for words in calls(page):
        if not words or words[0] not in IN_A_CHAMBER:
            check_call(every_command(), words)
    for words in map(str.split, spans(page)):
        if words[0] in every_command().commands and any(word.startswith("--") for word in words[1:]):
            check_call(every_command(), words)


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_flags_alone(page: Path) -> None:
    """A flag that stands alone, like `--seed`, is one of some command; in a row with commands, of one of those."""
    every = set().union(*(options(command) for command in commands_of(every_command())))
    for span in spans(page):
        if span.startswith("-") and span != "-" and span.split()[0] not in OTHERS:
            assert span.split()[0] in every, f"no command has {span}"
    for row in (row for it in tables(page) for row in it.rows):
        codes = [span for cell in row for span in code_of(cell)]
        shown = [span.split()[1] for span in codes if re.match("blastdoor [a-z]", span)]
        shown = [name for name in shown if name not in IN_A_CHAMBER]
        known = set().union(*(options(it) for name in shown for it in commands_of(every_command().commands[name])))
        for span in codes if shown else ():
            assert not span.startswith("-") or span.split()[0] in known, f"{', '.join(shown)}: no {span}"


def commands_of(command: click.Command) -> Iterator[click.Command]:
    """The command itself and, of a group, all that are in it."""
    yield command
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        yield from commands_of(inner)


def options(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


def check_call(command: click.Command, words: list[str]) -> None:
    known = options(command) | {"-h", "--help"}
    for at, word in enumerate(words):
        if word.startswith("-") and word != "-":
            assert word.partition("=")[0] in known, f"{command.name} has no {word} (in: {' '.join(words)})"
        elif isinstance(command, click.Group) and not word.isupper():
            assert word in command.commands, f"{command.name} has no command {word}"
            check_call(command.commands[word], words[at + 1 :])
            return


def test_every_command() -> None:
    """The page's table names every command, and every command of a group."""
    rows = table(COMMANDS, "command", "what it does").column("command")
    words = [span.split()[1:] for cell in rows for span in code_of(cell)]
    shown = {" ".join(it[:2]) for it in words} | {it[0] for it in words}
    for name, command in every_command().commands.items():
        subcommands = command.commands if isinstance(command, click.Group) else {}
        for wanted in [f"{name} {it}" for it in subcommands] or [name]:
            assert wanted in shown, f"blastdoor {wanted} is not on the page"


def test_settings() -> None:
    """The page has every setting with its variable and its default."""
    found = table(SETTINGS, "setting", "variable", "default")
    assert [code_of(cell) for cell in found.column("setting")] == [[name] for name in Settings.model_fields]
    for (name, field), row in zip(Settings.model_fields.items(), found.rows, strict=True):
        assert row[1] == f"`{PREFIX}{name.upper()}`"
        assert row[2] == f"`{field.default}`" if field.default is not None else row[2].startswith("none")


def test_exit_codes() -> None:
    """The page of commands has every exit code, and the gate's page the gate's own."""
    [common, own] = [table(page, "code", "meaning") for page in (COMMANDS, GATE)]
    assert [int(code) for code in common.column("code")] == sorted(Exit)
    said = {int(code): meaning for code, meaning in own.rows}
    assert set(said) == set(EXITS.values())
    for decision in Decision:
        assert said[EXITS[decision]].startswith(decision.value)


def test_names() -> None:
    """Every report of the gate, every account and every field of a fingerprint is explained; the judges' lines for a
    shell are those that are tested elsewhere.
    """
    flags = [span.split()[0] for cell in table(GATE, "flag", "what").column("flag") for span in code_of(cell)]
    assert set(flags) == {*(f"--{name}" for name in FORMS), "--json"}
    assert {code_of(cell)[0] for cell in table(CAMPAIGN, "account").column("account")} == {it.value for it in Account}
    assert set(FIELDS) <= set(spans(TASK))
    assert (Path(guest.__path__[0]) / "publish.sh").read_text().split("\n", 1)[1] in fences(JUDGES, "sh")


def test_endings() -> None:
    """The table of endings is that of the code, flag by flag."""
    found = table(CAMPAIGN, "ending", "charged", "retryable", "scoreable")
    word = {True: "yes", False: "no"}
    wanted = [[it.value, word[it.charged], word[it.retryable], word[it.scoreable]] for it in Ending]
    assert [row[:4] for row in found.rows] == wanted


def test_judge_variables() -> None:
    """What a judge is told is what its page says, values included."""
    found: dict[str, str] = {}
    for row in table(JUDGES, "variable", "also as", "value").rows:
        for name in (*code_of(row[0]), *code_of(row[1])):
            found[name] = row[2]
    told = contract_variables(Mode.SUBMIT, "1.3.2")
    assert found.keys() == told.keys()
    for name, value in told.items():
        assert f"`{value}`" in found[name]


def test_judge_faults() -> None:
    """Every code of a result that is refused is listed."""
    codes = {code for cell in table(JUDGES, "code", "meaning").column("code") for code in code_of(cell)}
    assert {it.value for it in ResultFault} <= codes


def test_judge_helper() -> None:
    """The helper's table has every name but its exceptions, which the text explains."""
    names = {re.split(r"\W", code_of(cell)[0])[0] for cell in table(JUDGES, "name", "what it does").column("name")}
    errors = {"AlreadyPublished", "BadOutput"}
    assert names == set(blastdoor_judge.__all__) - errors
    assert errors <= set(re.findall(r"\w+", JUDGES.read_text()))


@pytest.mark.parametrize("kind", [PROPOSERS, AGENTS, PARENTS, PRUNERS], ids=lambda kind: kind.group)
def test_names_to_choose_from(kind: Kind) -> None:
    """The page on the task file has every name that is built in."""
    assert set(kind.built_in) <= {span.strip('"') for span in spans(TASK)}


@pytest.mark.parametrize("page", DOCS, ids=named)
def test_python_examples(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example imports can be imported, and it is Python. Modules of judges and candidates are beside them."""
    monkeypatch.syspath_prepend(guest.__path__[0])
    for text in fences(page, "python"):
        for module, name in imported(ast.parse(text)):
            found = importlib.import_module(module)
            assert name is None or hasattr(found, name), f"{module} has no {name}"


def imported(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def test_the_readme_is_short() -> None:
    """What it is, the picture, install, two commands, one screen, where to read on: within 900 words."""
    assert len(README.read_text(encoding="utf-8").split()) <= 900


@pytest.mark.parametrize("folder", [ROOT / "docs", ROOT / "docs" / "adr"], ids=named)
def test_every_page_is_listed(folder: Path) -> None:
    """The first page of a folder links every other page in it."""
    first = folder / ("README.md" if folder.name == "adr" else "index.md")
    assert {page.name for page in folder.glob("*.md")} - {first.name} <= set(links(first))


@pytest.mark.parametrize("name", reference.PAGES)
def test_reference(name: str) -> None:
    """A page that is made from the code is what the code makes now; scripts/reference.py writes it again."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == reference.PAGES[name]()


def test_bounds_of_held_out_data() -> None:
    """Each is what the bound gives for a hundred and a thousand queries, to three digits."""
    for row in table(ROOT / "docs" / "heldout.md", "n", "step", "100 queries", "1000 queries").rows:
        assert [f"{bound(int(row[0]), float(row[1]), queries):.3f}" for queries in (100, 1000)] == row[2:]
