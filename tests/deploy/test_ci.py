"""CI templates for the gate: valid for their providers, minimal in rights, and the script does what it says."""

import base64
import contextlib
import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from markdown_it import MarkdownIt

from orchestrator.examine.gate import Decision
from orchestrator.views.judging.gate import EXITS
from tests.clicking import every_command
from tests.deploy.templates import DEPLOY, conforms, load, vendored

SCRIPT = DEPLOY / "ci" / "gate.sh"
BLASTDOOR = Path(sys.executable).with_name("blastdoor")
GITHUB = DEPLOY / "ci" / "github.yml"
GITLAB = DEPLOY / "ci" / "gitlab.yml"
TOKEN = "of-this-job-only"
LOGIN = f"x-access-token:{TOKEN}"


def test_github_schema() -> None:
    """GitHub's schema of a workflow takes it, and every job has an end."""
    workflow = load(GITHUB)
    conforms(workflow, vendored("github-workflows"))
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def test_gitlab_schema() -> None:
    """GitLab's schema of a configuration takes it."""
    conforms(load(GITLAB), vendored("gitlab-ci"))


def test_the_job_of_the_candidate_has_no_rights() -> None:
    """It is started by a pull request's own event, reads the repository, writes nothing, and names no secret."""
    workflow = load(GITHUB)
    assert list(workflow["on"]) == ["pull_request"]
    assert workflow["permissions"] == {}
    gate = workflow["jobs"]["gate"]
    assert gate["permissions"] == {"contents": "read"}
    for text in (GITHUB.read_text(), GITLAB.read_text()):
        assert not re.search(r"secrets\s*[.:\[]|GITHUB_TOKEN|id_tokens|id-token", text)
    assert "secrets" not in load(GITLAB)["gate"]
    assert load(GITLAB)["gate"]["inherit"]["variables"] is False


def test_only_the_job_without_the_candidate_writes() -> None:
    """Findings are uploaded by a job that runs nothing of the change, and not for forks."""
    findings = load(GITHUB)["jobs"]["findings"]
    assert findings["permissions"] == {"contents": "read", "security-events": "write"}
    assert all("run" not in step for step in findings["steps"])
    assert "head.repo.full_name == github.repository" in findings["if"]


def test_checkouts_leave_no_token_and_no_change() -> None:
    """No step checks out the change, and no checkout leaves its token behind."""
    checkouts = [step["with"] for step in _steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == 2
    assert all(given["persist-credentials"] is False for given in checkouts)
    assert not any("head" in given["ref"] for given in checkouts)


def test_only_the_step_that_fetches_has_the_token() -> None:
    """Nobody else is given it, by its own environment or by one that is handed on; that step does nothing else."""
    fetching = _fetching()
    assert fetching["env"]["TOKEN"] == "${{ github.token }}"
    assert GITHUB.read_text().count("github.token") == 1
    assert not re.search(r"GITHUB_(ENV|OUTPUT|STATE)|git config|toJSON", GITHUB.read_text())
    workflow = load(GITHUB)
    assert not any("env" in it for it in (workflow, *workflow["jobs"].values()))
    judging = [step for step in _steps() if "gate.sh" in step.get("run", "")]
    assert len(judging) == 1
    assert not re.search(r"git |TOKEN", judging[0]["run"])
    assert set(judging[0]["env"]) == {"BASE", "HEAD", "TASK", "FOLDER", "REPORTS"}


def test_gitlab_drops_its_token_before_the_gate() -> None:
    """The runner fetches with it; it is gone from environment and repository when the script is run."""
    gate = load(GITLAB)["gate"]
    assert gate["variables"]["FF_GIT_URLS_WITHOUT_TOKENS"] == "true"
    *before, last = gate["script"]
    assert "gate.sh" in last
    assert any(line.startswith("unset CI_JOB_TOKEN") for line in before)
    assert 'git remote set-url origin "$CI_PROJECT_URL"' in before
    assert not any(re.search(r"\bgit (fetch|pull|clone)\b", line) for line in gate["script"])


@pytest.mark.parametrize("private", [True, False])
def test_fetching(tmp_path: Path, private: bool) -> None:
    """The change of a private repository comes with the token and not without; nothing of it stays in the clone."""
    origin = tmp_path / "origin" / "someone" / "project"
    origin.mkdir(parents=True)
    _git(origin, "init", "--quiet", "--initial-branch=main")
    _git(origin, "commit", "--quiet", "--allow-empty", "--message", "base")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(origin), str(clone)], check=True)
    _git(origin, "commit", "--quiet", "--allow-empty", "--message", "change")
    change = _git(origin, "rev-parse", "HEAD")
    _git(origin, "update-ref", "refs/pull/7/head", change)
    _git(origin, "update-server-info")
    # As GitHub lays a repository out: no .git in its address.
    (origin / ".git").rename(tmp_path / "bare")
    origin.rmdir()
    (tmp_path / "bare").rename(origin)
    with _hosting(tmp_path / "origin", TOKEN if private else None) as address:
        assert (_fetch(clone, address, "wrong") == 0) is not private
        assert _fetch(clone, address, TOKEN) == 0
    assert _git(clone, "cat-file", "-t", change) == "commit"
    kept = b"".join(path.read_bytes() for path in (clone / ".git").rglob("*") if path.is_file())
    assert not any(form in kept for form in (TOKEN.encode(), base64.b64encode(LOGIN.encode())))


def _fetch(clone: Path, address: str, token: str) -> int:
    told = {"NUMBER": "7", "TOKEN": token, "GITHUB_SERVER_URL": address, "GITHUB_REPOSITORY": "someone/project"}
    environment = os.environ | told | {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.devnull}
    # The shell of a job, as GitHub calls it.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _fetching()["run"]]
    result = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert token not in result.stdout + result.stderr
    return result.returncode


@contextlib.contextmanager
def _hosting(folder: Path, token: str | None) -> Iterator[str]:
    """Repositories by HTTP, for whoever has the token; without one, for everybody."""
    wanted = f"Basic {base64.b64encode(LOGIN.encode()).decode()}" if token else None

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if wanted and self.headers["Authorization"] != wanted:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="project"')
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_no_expression_in_a_script() -> None:
    """What a stranger chose, like a branch's name, reaches a script through its environment only."""
    assert not any("${{" in step.get("run", "") for step in _steps())


def test_actions_are_pinned_by_tag_with_a_place_for_the_commit() -> None:
    """Each names a release, and says beside it where its commit goes."""
    for line in GITHUB.read_text().splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [a-z/-]+@(v[0-9.]+) # @<commit> # \1$", line), line


def test_flags_exist() -> None:
    """The script calls the gate with flags that it has, and knows its exit codes."""
    text = SCRIPT.read_text().replace("\\\n", " ")
    [line] = [line for line in text.splitlines() if line.startswith("blastdoor gate")]
    gate = every_command().commands["gate"]
    known = {name for option in gate.params if isinstance(option, click.Option) for name in option.opts}
    assert set(re.findall(r"--[a-z-]+", line)) <= known
    assert {decision.name: int(code) for decision, code in EXITS.items()} == {
        Decision.ACCEPTED.name: 0,
        Decision.REJECTED.name: 1,
        Decision.UNJUDGED.name: 2,
    }


def _fetching() -> dict[str, Any]:
    [step] = [step for step in _steps() if re.search(r"\bfetch\b", step.get("run", ""))]
    return step


def _steps() -> Iterator[dict[str, Any]]:
    for job in load(GITHUB)["jobs"].values():
        yield from job["steps"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project whose task, in .ci/speed, lets src be changed."""
    place = tmp_path / "project"
    task = place / ".ci" / "speed"
    subprocess.run([str(BLASTDOOR), "init", str(task)], check=True, capture_output=True)
    (task / "workspace").rename(place / "src")
    settings = task / "blastdoor.toml"
    text, count = re.subn(
        r'^workspace = "workspace"',
        'workspace = {repository = "../..", folder = "src"}',
        settings.read_text(),
        flags=re.M,
    )
    assert count == 1
    settings.write_text(text)
    _git(place, "init", "--quiet", "--initial-branch=main")
    _commit(place, "base")
    return place


def _git(place: Path, *words: str) -> str:
    names = ["-c", "user.name=tester", "-c", "user.email=tester@example.invalid"]
    command = ["git", "-C", str(place), *names, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _commit(place: Path, message: str) -> str:
    _git(place, "add", "--all")
    _git(place, "commit", "--quiet", "--message", message)
    return _git(place, "rev-parse", "HEAD")


def _judge(place: Path, base: str, head: str, tmp_path: Path) -> tuple[int, str, Path]:
    """The script with a `blastdoor` on the path, as a job has it."""
    _git(place, "checkout", "--quiet", base)
    reports = tmp_path / "reports"
    told = {"BASE": base, "HEAD": head, "TASK": ".ci/speed", "FOLDER": "src", "REPORTS": str(reports)}
    environment = os.environ | told | {"PATH": f"{BLASTDOOR.parent}:{os.environ['PATH']}"}
    result = subprocess.run([str(SCRIPT)], cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert _git(place, "worktree", "list").count("\n") == 0, "the worktree of the base is left behind"
    return result.returncode, result.stdout + result.stderr, reports


def test_nothing_to_judge(repository: Path, tmp_path: Path) -> None:
    """A change outside of the workspace passes, and what was not judged is said."""
    base = _git(repository, "rev-parse", "HEAD")
    (repository / "notes.txt").write_text("hello")
    head = _commit(repository, "notes")
    code, said, reports = _judge(repository, base, head, tmp_path)
    assert code == 0, said
    assert "notes.txt" in (reports / "outside.txt").read_text()
    assert not (reports / "evidence.json").exists()


NAMES = [
    "::error file=a,line=1::pwned",
    "##[error]pwned",
    "x ##vso[task.complete]pwned",
    "###vso[task.complete]pwned",
    "###[error]pwned",
    "####teamcity[testFailed name='pwned']",
    "section_start:1700000000:pwned\r\x1b[0Kpwned",
    "[pwned](javascript:x)",
    "<img src=x>",
    "```",
    "    ",
    "# pwned",
    "\u202epwned",
    "two\nlines",
]


def test_t90_names_are_text(repository: Path, tmp_path: Path) -> None:
    """Whatever a file outside of the workspace is called: no runner obeys its name, and in the summary it is code."""
    base = _git(repository, "rev-parse", "HEAD")
    for name in NAMES:
        (repository / name).write_text("x")
    code, said, reports = _judge(repository, base, _commit(repository, "names"), tmp_path)
    assert code == 0, said
    lines = re.split(r"[\r\n]+", said)
    assert not [line for line in lines if line.strip().startswith("::") or re.search(r"##(\w*)\[", line)]
    assert "\x1b" not in said
    shown = "before\n" + (reports / "outside.txt").read_text()
    tokens = MarkdownIt("commonmark").parse(shown)
    assert [token.type for token in tokens if not token.type.startswith("paragraph_")] == [
        "inline", "inline", "code_block",
    ]  # fmt: skip
    assert tokens[-1].content.count("| ") == len(NAMES)


@pytest.mark.docker
@pytest.mark.parametrize(("breaks", "code", "word"), [(False, 0, "accepted"), (True, 1, "rejected")])
def test_script(repository: Path, tmp_path: Path, breaks: bool, code: int, word: str) -> None:
    """One that is no worse comes in, one that breaks does not; all reports are there, and the judge is the base's."""
    base = _git(repository, "rev-parse", "HEAD")
    program = repository / "src" / "solve.py"
    text = program.read_text()
    program.write_text("raise SystemExit(3)\n" + text if breaks else text + "# no worse\n")
    # A judge that accepts everything, from the change: it must not be the one that judges.
    for judge in (repository / ".ci" / "speed" / "judge").glob("*.py"):
        judge.write_text("raise SystemExit('this is the judge of the change')\n")
    head = _commit(repository, "change")
    got, said, reports = _judge(repository, base, head, tmp_path)
    assert (got, word in said) == (code, True), said
    evidence = json.loads((reports / "evidence.json").read_text())
    assert evidence["decision"] == word
    assert {path.name for path in reports.iterdir()} == {
        "gate.xml", "gate.sarif", "gate.md", "evidence.json", "outside.txt",
    }  # fmt: skip
