"""The queue and the process behind it: nothing that a notifier does is felt by the campaign."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.notify import Topic, post
from orchestrator.notify.post import Post
from orchestrator.notify.target import Target
from tests.orchestrator.notify.receiving import hook, lines_of, writing_program
from tests.orchestrator.notify.test_notifiers import news


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has something to tell is not given up because the machine is busy."""
    monkeypatch.setattr(post, "GRACE_S", 120.0)


def opened(*specs: str) -> Post:
    return Post([Target.parse(it) for it in specs], "c0ffee", "scripted", 1)


def test_in_order_and_by_topic(tmp_path: Path) -> None:
    """All that was sent before the end is told, to those who want to hear of it."""
    program, into = writing_program(tmp_path)
    with hook(200) as (address, got):
        told = opened(f"command={program}", f"webhook:stopped={address}")
        for topic in (Topic.CHAMPION, Topic.ATTEMPT, Topic.STOPPED):
            told.send(news(topic))
        told.close()
    assert told.faults == []
    assert [it["topic"] for it in lines_of(into)] == ["champion", "stopped"]
    assert [it["topic"] for it in got] == ["stopped"]


def test_keys_stay_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the user's own does not get the key of the model's provider, nor anything else that it need not."""
    for name in ("ANTHROPIC_API_KEY", "blastdoor_api_key", "GITHUB_TOKEN", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.setenv(name, "s3cret")
    program, into = writing_program(tmp_path)
    told = opened(f"command={program}")
    told.send(news(Topic.STOPPED))
    told.close()
    names = Path(f"{into}.names").read_text().split("\n")
    assert {"PATH", "BLASTDOOR_TOPIC"} <= set(names)
    assert not {"ANTHROPIC_API_KEY", "blastdoor_api_key", "GITHUB_TOKEN", "MLFLOW_TRACKING_TOKEN"} & set(names)


def test_one_that_fails_is_told_once() -> None:
    """The first fault and their number, without the address."""
    with hook(404) as (address, _):
        told = opened(f"webhook={address}")
        for _ in range(3):
            told.send(news(Topic.STOPPED))
        told.close()
    assert told.faults == ["webhook failed 3 times, first: ValueError: it answered 404"]


def test_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a session does not wait for it beyond the grace."""
    monkeypatch.setattr(post, "GRACE_S", 0.5)
    told = opened(f"command={sys.executable} -c 'import time; time.sleep(1000)'")
    told.send(news(Topic.STOPPED))
    told.close()
    assert told.faults == ["was still busy after 0 s, and was ended"]


def test_process_that_dies() -> None:
    """News goes on being sent; how the process ended is said at the close."""
    told = opened("command=true")
    os.kill(told.process.pid, signal.SIGKILL)
    for _ in range(100):
        told.send(news(Topic.STOPPED))
    told.close()
    assert told.faults == ["its process ended with exit code -9"]


def test_full_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that takes nothing costs no memory and no time: what does not fit is counted."""
    monkeypatch.setattr(post, "WAITING_MOST", 5)
    monkeypatch.setattr(post, "GRACE_S", 0.2)
    told = opened("command=true")
    os.kill(told.process.pid, signal.SIGSTOP)
    large = news(Topic.STOPPED, filler="x" * 100_000)
    for _ in range(50):
        told.send(large)
    told.close()
    assert told.process.returncode == -signal.SIGKILL
    dropped = told.faults[-1]
    assert dropped.startswith("took too long: ")
    assert int(dropped.split()[3]) >= 40


def test_end_of_the_campaign_by_kill(tmp_path: Path) -> None:
    """What was handed over before the orchestrator was killed is told all the same, and nothing stays behind."""
    program, into = writing_program(tmp_path)
    script = f"""
import os, signal
from tests.orchestrator.notify.test_post import opened, news, Topic
told = opened("command={program}")
told.send(news(Topic.STOPPED))
told.send(news(Topic.WAITING, node="1.4"))
while told.waiting.qsize():  # once the second is taken from it, the first has been handed over
    pass
print(told.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while Path(f"/proc/{done.stdout.strip()}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [it["topic"] for it in lines_of(into)][:1] == ["stopped"]
