"""What a person writes after --notify."""

from pathlib import Path

import pytest

from orchestrator.notify import Topic
from orchestrator.notify.base import USUAL
from orchestrator.notify.target import FORM, Target

SECRET = "hooks.example/T0/B0/s3cret"  # as chat programs have them


def test_usual_topics() -> None:
    """Without a list, a webhook gets all but the end of every attempt, and a store gets what it can show."""
    assert Target.parse(f"webhook=https://{SECRET}").topics == USUAL
    assert Topic.ATTEMPT in Target.parse("wandb=runs").topics


def test_named_topics() -> None:
    target = Target.parse(f" webhook:champion, attempt = https://{SECRET}?a=b ")
    assert (target.name, target.where) == ("webhook", f"https://{SECRET}?a=b")
    assert target.topics == {Topic.CHAMPION, Topic.ATTEMPT}
    assert SECRET not in repr(target)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"https://{SECRET}", FORM),
        (f"https://{SECRET}?a=b", FORM),
        ("webhook=", FORM),
        (f"=https://{SECRET}", FORM),
        (f"webhok=https://{SECRET}", 'the notifier must be "webhook", .* not "webhok"; did you mean "webhook"?'),
        (f"webhook:best=https://{SECRET}", 'a topic must be "champion", .* not "best"'),
        (f"webhook={SECRET}", "a webhook needs an address like https://"),
        (f"webhook=ftp://{SECRET}", "a webhook needs an address like https://"),
        (f"webhook=https://[{SECRET}", "a webhook needs an address like https://"),
        (f"command=/nonexistent/{SECRET}", "the command names no program that can be run"),
        (f"command='{SECRET}", "the command cannot be read"),
        (f"mlflow={SECRET}", "mlflow needs an address like sqlite:///runs.db"),
        (f"wandb=https://{SECRET}", "wandb needs a folder"),
    ],
)
def test_bad_input(text: str, line: str) -> None:
    """One line says what to write, and repeats nothing of what may be a secret."""
    with pytest.raises(ValueError, match=line.replace("?", r"\?") if "mean" in line else line) as caught:
        Target.parse(text)
    assert "s3cret" not in str(caught.value)


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"pip install 'blastdoor\[mlflow\]'"):
        Target.parse("mlflow=sqlite:///runs.db")
    with pytest.raises(ValueError, match=r"pip install 'blastdoor\[wandb\]'"):
        Target.parse("wandb=runs")


def test_program_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command is looked for as a shell would, and its arguments are left as they are."""
    program = tmp_path / "tell"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Target.parse("command=tell 'to us' all").where == "tell 'to us' all"
