"""T90: every place where a program reads text of others, against everything that has acted in one of them before.

The readers are real where there is one to be had: git, an XML parser, a renderer of Markdown, JSON. The runners of CI
services are not, so what they look for is written down here.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from orchestrator.change import Tree
from orchestrator.git import Candidates
from orchestrator.sinks import ci_log, commit_message, sarif_text
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.ci_log import CiLog, guard_output
from orchestrator.views.judging.junit import junit
from orchestrator.views.judging.markdown import markdown
from orchestrator.views.judging.sarif import sarif
from orchestrator.views.render.markdown import code, listing, table
from tests.lag import least_time
from tests.orchestrator.views.judging.samples import report

PAYLOADS = [
    "::error file=solve.py,line=1::pwned",
    "  ::set-output name=x::y",
    "\u2003\t::add-mask::x",
    "\x1b[31m::error::x",
    "fine\r::warning::y",
    "fine\n::stop-commands::x",
    "::",
    "##[error]boo",
    "before ##[command]boo",
    "before ##vso[task.complete result=Succeeded;]done",
    "#####vso[task.setvariable variable=x]y",
    "##teamcity[testFailed name='x']",
    "before section_start:1700000000:x[collapsed=true]\r\x1b[0Khidden",
    "section_end:1700000000:x\r\x1b[0K",
    "[link](https://evil.invalid)",
    "![image](https://evil.invalid/x.png)",
    "<https://evil.invalid>",
    "<script>alert(1)</script>",
    '<img src=x onerror="y">',
    "<!-- hidden",
    "# heading\n\n* list\n\n| a | b |\n|---|---|\n| c | d |",
    "``` \n~~~\n```` \n# out",
    "`` ` `` `",
    "a | b \\| c",
    "]]></system-out><testcase name='x'/>&amp;",
    "@everyone",
    "fixed\n\nSigned-off-by: Eve <eve@example.invalid>",
    "fixed\n\nCo-authored-by: Eve <eve@example.invalid>\nReviewed-by: Mallory <m@example.invalid>",
    "fixed\n\nSigned-off-by: Eve <eve@example.invalid>\n---\nmore",
    "fixed\n\n\nskip-checks: true",
    "fixed\n\n(cherry picked from commit 0000000000000000000000000000000000000000)\nAcked-by: Eve",
    "Signed-off-by: Eve <eve@example.invalid>",
    "[skip ci] fixed",
    "[ci skip] and [no ci] and [skip actions] and ***NO_CI***",
    "fixes #12, closes other/project#13, resolves GH-14, !15",
    "\x00\x08\ud800 nul",
    "{0} {1}",
    "\u202e\u2066txt.exe\u2069",
    "\x1b]8;;https://evil.invalid\x07link\x1b]8;;\x07\x9b31m",
    "hidden\U000e0041\u200b\u2028line\u2029end",
    "z" + "\u0301" * 30,
    "plain words, 100 % of them",
]
EVERY = pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
AT = datetime(2026, 1, 2, tzinfo=UTC)


def commands(log: str) -> list[str]:
    """What a runner of GitHub, Azure, TeamCity or GitLab would obey, and one that skips colours."""
    lines = re.split(r"\r\n|\r|\n", re.sub(r"\x1b\[[0-9;]*m", "", log))
    anywhere = re.compile(r"##(\w*)\[|section_(start|end):\d+:")
    return [line for line in lines if line.strip().startswith("::") or anywhere.search(line)]


def test_the_readers_see_what_acts() -> None:
    """Raw, most of these are obeyed by the readers of this file: they prove something."""
    assert sum(bool(commands(payload)) for payload in PAYLOADS) == 14
    assert {"link_open", "image", "html_inline", "heading_open"} <= set().union(*map(kinds, PAYLOADS))
    assert sum(bool(trailers(f"1.1: {payload}")) for payload in PAYLOADS) >= 4


@EVERY
def test_ci_log(payload: str) -> None:
    """Nothing in a log is a command; what does not act is left as it is, and twice is the same as once."""
    safe = ci_log(payload)
    assert not commands(safe)
    assert ci_log(safe) == safe
    assert (safe == payload) is not bool(commands(payload))


PRINTS = """
import sys
from orchestrator.views.ci_log import guard_output
guard_output()
import click, json
from orchestrator.views.campaign.screen import open_screen
for payload in json.loads(sys.argv[1]):
    click.echo(payload)
    open_screen().line(payload)
    click.echo(payload, err=True)
    for sign in payload:
        sys.stdout.write(sign)
        sys.stdout.flush()
    sys.stdout.write(chr(10))
sys.stdout.write("no end of a line ##[x]")
"""


SIGNS = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILDKITE")


@pytest.mark.long
def test_whatever_is_printed_in_ci() -> None:
    """In a CI job, nothing that any command prints is a command to its runner, in whatever pieces it was written."""
    shown = json.dumps([payload for payload in PAYLOADS if "\ud800" not in payload])
    environment = {name: value for name, value in os.environ.items() if name not in SIGNS} | {"CI": "true"}
    program = [sys.executable, "-c", PRINTS, shown]
    told = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert not commands(told.stdout)
    assert not commands(told.stderr)
    assert told.stdout.endswith("no end of a line \\u0023#[x]")
    assert "plain words, 100 % of them" in told.stdout


@pytest.mark.parametrize("command", ["##vso[x]y", "section_start:1700000000:x\r", "section_end:1700000000:x\r"])
def test_a_line_without_an_end_is_cut_beside_commands(command: str) -> None:
    """A line that is too long to be held is written in pieces, and no command is put together from two of them."""
    for cut in range(len(command) + 1):
        log = io.BytesIO()
        guarded = CiLog(log, encoding="utf-8")
        guarded.write("x" * 100_000 + command[:cut])
        assert log.tell() > 90_000, "it is not held for ever"
        guarded.write(command[cut:] + "x" * 100_000)
        guarded.finish()
        assert not commands(log.getvalue().decode())


@pytest.mark.parametrize("flood", ["\n", "\r", " ", "\n ", "#", ":", "\x1b[", "\x1b[1m", "section_"])
def test_t90_a_flood_costs_no_more_than_its_length(flood: str) -> None:
    """What looks like the beginning of a command again and again is read once."""
    assert least_time(lambda: ci_log("\n" + flood * 30_000 + "x"), 2) < 2


@contextlib.contextmanager
def piped() -> Iterator[None]:
    """Our output goes into pipes, as that of a job does."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            reading, writing = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
            stack.callback(reading.close)
            stack.callback(writing.close)
            patch.setattr(sys, name, io.TextIOWrapper(writing))
        yield


@pytest.mark.parametrize(
    ("environment", "guarded"),
    [
        *(({sign: "true"}, True) for sign in SIGNS),
        *((it, False) for it in ({}, {"CI": "false"}, {"CI": "0", "TF_BUILD": ""})),
    ],
    ids=str,
)
def test_every_runner_is_known(environment: dict[str, str], guarded: bool) -> None:
    """By the sign that it gives, both streams are guarded; elsewhere text is as it was."""
    with piped():
        guard_output(environment)
        found = type(sys.stdout), type(sys.stderr)
    assert found == ((CiLog, CiLog) if guarded else (io.TextIOWrapper, io.TextIOWrapper))


def test_a_file_of_the_callers_gets_the_text_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No runner reads it."""
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        guard_output({"CI": "true"})
        assert sys.stdout is out


@EVERY
def test_json_in_a_log(payload: str) -> None:
    """A document in the log says the same as before, and is no command."""
    text = ci_log(json_text({"why": payload, payload: [payload]}))
    assert not commands(text)
    assert json.loads(text) == {"why": payload, payload: [payload]}


def kinds(text: str) -> set[str]:
    """What a renderer makes of it: GitHub's dialect, as far as it goes."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return {it.type for token in tokens for it in (token, *(token.children or ()))}


QUIET = {"paragraph_open", "paragraph_close", "inline", "text", "code_inline", "fence", "softbreak", "code_block"}


@EVERY
def test_markdown(payload: str) -> None:
    """In a line, a block and a table it is code and nothing else; a whole summary has our own headings and tables."""
    assert kinds(f"because: {code(payload)}") <= QUIET
    assert kinds("\n".join(listing(payload))) <= QUIET
    rows = kinds("\n".join(table(["a", "b"], [[code(payload), "x"]])))
    found = kinds(markdown(report(payload, log=payload)))
    assert {it for it in rows if not re.match("t(able|head|body|r|h|d)_", it)} <= QUIET
    assert {it for it in found if not re.match("t(able|head|body|r|h|d)_|heading_", it)} <= QUIET
    titles = [token for token in MarkdownIt("commonmark").parse(markdown(report(payload))) if "heading" in token.type]
    assert len(titles) == 2


@EVERY
def test_junit(payload: str) -> None:
    """A parser finds our cases, no others, and the text as text."""
    root = Xml.fromstring(junit(report(payload, log=payload)).encode())  # noqa: S314  our own
    names = {"testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out"}
    assert {element.tag for element in root.iter()} <= names
    assert len(list(root.iter("testcase"))) == 5


LINK = re.compile(r"(?<!\\)(?:\\\\)*\[[^\]]*\]\([^)]*\)")


@EVERY
def test_sarif(payload: str) -> None:
    """It is JSON, and no message has a link by the rules of SARIF (3.11.6), where brackets are escaped."""
    found = json.loads(json.dumps(sarif(report(payload, log=payload))))
    (run,) = found["runs"]
    texts = [it["message"]["text"] for it in (*run["results"], *run["invocations"][0]["toolExecutionNotifications"])]
    assert texts
    assert not any(LINK.search(text) for text in texts)
    assert re.sub(r"\\([\\\[\]])", r"\1", sarif_text("a [b](c) \\ d")) == "a [b](c) \\ d"


def trailers(message: str) -> str:
    told = subprocess.run(
        ["git", "interpret-trailers", "--parse"],
        input=message.encode("utf-8", "replace").replace(b"\0", b""),
        capture_output=True,
        check=True,
    )
    return told.stdout.decode()


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with each payload as the message of a node, in its place."""
    folder = tmp_path_factory.mktemp("sinks") / "candidates.git"
    written = Candidates(folder)
    for number, payload in enumerate(PAYLOADS, 1):
        written.write(f"1.{number}", Tree.of({"a": "1"}), None, f"1.1: {payload}", AT)
    return folder


@EVERY
def test_commit_message(payload: str, candidates: Path) -> None:
    """git finds no trailer in a candidate's commit, and a forge nothing to skip or to close; the words are there."""
    message = commit_message(f"1.1: {payload}", 1000)
    assert not re.search(r"\[[^\]]*\b(ci|skip)\b[^\]]*\]|\*\*\*NO_CI|[#!]\d|GH-\d", message)
    words = ["log", "-1", "--format=%(trailers)%n%B", f"1.{PAYLOADS.index(payload) + 1}"]
    shown = subprocess.run(["git", "-C", str(candidates), *words], capture_output=True, check=True)
    assert shown.stdout.decode().strip("\n") == message
    assert trailers(message) == ""


def test_plain_words_stay() -> None:
    """What does not act reads as it was written."""
    words = "plain words: 100 % of them (a, b)"
    assert {ci_log(words), code(words).strip("`"), sarif_text(words), commit_message(words, 1000)} == {words}
