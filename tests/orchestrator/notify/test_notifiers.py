"""Each notifier against the real thing: a server, a program, MLflow's own store, Weights & Biases' own files."""

import importlib
import socket
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from orchestrator.notify import News, NotifierContext, Topic, command, retrying, webhook
from orchestrator.notify.command import Command
from orchestrator.notify.mlflow_store import Mlflow
from orchestrator.notify.wandb_run import Wandb
from orchestrator.notify.webhook import Webhook
from tests.orchestrator.notify.receiving import hook, lines_of, writing_program

AT = "2026-01-02T03:04:05.000000Z"


def context(where: str) -> NotifierContext:
    return NotifierContext(where, campaign="c0ffee", task="scripted", run=1)


def news(topic: Topic, text: str = "something happened", node: str = "", **data: object) -> News:
    said = {"topic": topic, "at": AT, "campaign": "c0ffee", "task": "scripted", "run": 1, "node": node}
    return News.model_validate({**said, "text": text, "data": data})


def attempt(number: int, score: float | None) -> News:
    return news(
        Topic.ATTEMPT,
        node=f"1.{number}",
        number=number,
        ending="scored" if score is not None else "failed",
        kept=score is not None,
        metrics={} if score is None else {"score, higher": score},
        parameters={"value": number},
        operator="scripted",
        usd=0.25,
        seconds=1.5,
    )


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between tries are no part of what is tested."""
    monkeypatch.setattr(retrying, "LONGEST_PAUSE_S", 0.0)


def test_webhook() -> None:
    """News is JSON, and nothing in its text calls everybody in a chat room."""
    with hook(200) as (address, got):
        told = Webhook(context(address))
        told.tell(news(Topic.CHAMPION, text="<!channel> is the best", node="1.2"))
        told.close()
    assert [(it["topic"], it["node"], it["text"]) for it in got] == [
        ("champion", "1.2", "&lt;!channel&gt; is the best")
    ]


@pytest.mark.parametrize(
    ("answers", "asked", "fails"),
    [
        ((500, 429, 200), 3, ""),
        ((503,), retrying.TRIES, "it answered 503"),
        ((404,), 1, "it answered 404"),
        ((302,), 1, "it answered 302"),
    ],
)
def test_tries_of_a_webhook(answers: tuple[int, ...], asked: int, fails: str) -> None:
    """What may pass is tried again, a few times; what will not is not, and no redirect is followed."""
    with hook(*answers) as (address, got):
        told = Webhook(context(address))
        if fails:
            with pytest.raises((ValueError, retrying.Again), match=fails):
                told.tell(news(Topic.STOPPED))
        else:
            told.tell(news(Topic.STOPPED))
        told.close()
    assert len(got) == asked


@pytest.mark.parametrize(("listens", "says"), [(False, "^ConnectError$"), (True, "Timeout")])
def test_a_webhook_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, listens: bool, says: str) -> None:
    """Nobody listens, or one takes the connection and never answers."""
    monkeypatch.setattr(webhook, "TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        if not listens:
            silent.close()
        with pytest.raises(retrying.Again, match=says):
            Webhook(context(address)).tell(news(Topic.STOPPED))


def test_command(tmp_path: Path) -> None:
    program, into = writing_program(tmp_path)
    told = Command(context(f"{program} --now"))
    told.tell(news(Topic.WAITING, node="1.4"))
    told.tell(news(Topic.STOPPED))
    told.close()
    assert [it["topic"] for it in lines_of(into)] == ["waiting", "stopped"]
    with pytest.raises(retrying.Again, match="it ended with exit code 3"):
        Command(context("sh -c 'exit 3'")).tell(news(Topic.STOPPED))


def test_command_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended with all that it started."""
    monkeypatch.setattr(command, "TIMEOUT_S", 0.2)
    seconds = f"{10_000 + uuid4().int % 10**9}"
    told = Command(context(f"sh -c 'sleep {seconds} & wait'"))
    with pytest.raises(TimeoutError, match="it took longer"):
        told.tell(news(Topic.STOPPED))
    left = [it for it in psutil.process_iter(["cmdline"]) if seconds in (it.info["cmdline"] or [])]
    psutil.wait_procs(left, timeout=60)
    assert not [it for it in left if it.is_running()]


@pytest.mark.long
def test_mlflow(tmp_path: Path) -> None:
    """Each attempt is a run below the campaign's, with its parameters and metrics; a resumed campaign stays one run."""
    where = f"sqlite:///{tmp_path}/runs.db"
    first = Mlflow(context(where))
    first.tell(attempt(1, 2.5))
    first.tell(attempt(2, None))
    again = Mlflow(context(where))
    again.tell(attempt(3, 4.0))
    again.tell(news(Topic.CHAMPION, node="1.3", metrics={"score, higher": 4.0}))
    again.tell(news(Topic.STOPPED, reason="3 of 3 attempts are used"))
    from mlflow.tracking import MlflowClient  # by now it was told to keep to itself

    client = MlflowClient(tracking_uri=where)
    runs = client.search_runs([it.experiment_id for it in client.search_experiments()])
    whole = [it for it in runs if "mlflow.parentRunId" not in it.data.tags]
    assert len(whole) == 1
    assert whole[0].data.tags["blastdoor.best"] == "1.3"
    assert whole[0].info.status == "FINISHED"
    history = client.get_metric_history(whole[0].info.run_id, "score_ higher")
    assert [(it.step, it.value) for it in history] == [(1, 2.5), (3, 4.0)]
    nested = {it.data.tags["blastdoor.node"]: it for it in runs if it not in whole}
    assert nested["1.1"].data.params == {"value": "1"}
    assert nested["1.1"].data.metrics["score_ higher"] == 2.5
    assert nested["1.2"].info.status == "FAILED"


@pytest.mark.long
def test_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is written to the folder, as Weights & Biases reads it; nobody is asked for anything."""
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:1")
    told = Wandb(context(str(tmp_path / "runs")))
    told.tell(attempt(1, 2.5))
    told.tell(news(Topic.CHAMPION, node="1.1", metrics={"score": 2.5}))
    told.tell(news(Topic.STOPPED, reason="enough"))
    told.close()
    (file,) = (tmp_path / "runs").rglob("*.wandb")
    deadline = time.monotonic() + 120  # its own process writes the file, a moment later
    while not (rows := history_of(file)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [(row["attempt"], row["score, higher"], row["node"]) for row in rows] == [("1", "2.5", '"1.1"')]


def history_of(file: Path) -> list[dict[str, str]]:
    # They have no types; and by now the library was told to keep to itself.
    records: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    datastore: Any = importlib.import_module("wandb.sdk.internal.datastore")
    store = datastore.DataStore()
    store.open_for_scan(str(file))
    rows: list[dict[str, str]] = []
    while data := store.scan_data():
        record = records.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            rows.append({it.key or it.nested_key[0]: it.value_json for it in record.history.item})
    return rows
