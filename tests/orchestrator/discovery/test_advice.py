"""A model adds to a task what can be checked, and nothing else. It is scripted; what runs, runs in processes here."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.discovery.advice import MOST_QUESTIONS, NoAdvice, prompt, read_advice
from orchestrator.discovery.bench import Bench
from orchestrator.discovery.chambers import Laboratory
from orchestrator.discovery.targets import FunctionTarget, Pool
from orchestrator.discovery.writing import Made
from orchestrator.domain.model_use import Tokens
from orchestrator.importing import write_task
from orchestrator.llm.line import Answer
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.views.running.discover_model import Advised, Adviser, advised
from orchestrator.wiring.question import ready_question
from tests.messages import Hang, MessagesServer, Refusal, Reply, Text
from tests.orchestrator.discovery.repositories import decoded, encoded_calls, laboratory, repository

CODE = """
import os

def pairs(text, most=9):
    if text == "end":
        os._exit(1)
    if most < 0:
        raise ValueError
    return [text[at : at + 2] for at in range(min(len(text), most))]
"""
CALLS = [
    [[f"text {at}"], {"most": at}, True, [f"text {at}"[it : it + 2] for it in range(min(6, at))]] for at in range(6)
]


def settings_for(server: MessagesServer) -> Settings:
    return Settings(api_url=server.url, api_key=SecretStr(server.key), models=("claude-sonnet-5-5",))


async def asked(
    folder: Path, server: MessagesServer, wait_s: float = 60, pool: Pool | None = None, tests: str = "import pairs\n"
) -> tuple[Advised, FunctionTarget]:
    """About a function with a few known calls."""
    there = repository(folder, {"pairs.py": CODE, "tests/test_pairs.py": tests})
    place = laboratory(there)
    pool = pool or await _pool(there, place)
    target = FunctionTarget("pairs", "pairs", "pairs.py", 1.0, 6, ("pairs.py::pairs",), (), pool)
    settings = settings_for(server)
    adviser = Adviser(ready_question(Flags(), settings), settings, lambda _: None, wait_s)
    return await advised(adviser, target, Made(there, (), (), (), 256), place), target


async def _pool(there: Any, place: Laboratory) -> Pool:
    pool = await Bench(there, place, lambda _: None, 0.0001).replay(
        {"module": "pairs", "function": "pairs"}, encoded_calls(CALLS)
    )
    assert isinstance(pool, Pool)
    return pool


def said(**told: Any) -> Reply:
    return Reply((Text(json.dumps(told)),))


async def test_a_model_adds_questions_and_words(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Kept are questions that nobody asked, of the kinds of a known call, which the code as it is answers: checked and
    not timed. Its words are a paragraph of the statement, and what it cost is told.
    """
    new = {"args": ["żółw, twice"], "kwargs": {"most": 4}}
    others: list[dict[str, Any]] = [
        new,
        {"args": ["text 3"], "kwargs": {"most": 3}},
        {"args": ["raises"], "kwargs": {"most": -1}},
        {"args": [7], "kwargs": {"most": 1}},
        {"args": ["no such"], "kwargs": {"least": 1}},
        {"args": [{"$bytes": "zz"}], "kwargs": {"most": 1}},
        {"args": [{"$set": [[]]}], "kwargs": {"most": 1}},
    ]
    messages_server.play(said(statement="Pairs of neighbours.\n'''\x1b[2J", questions=[new, *others]))
    told, target = await asked(tmp_path / "there", messages_server)
    assert isinstance(told.target, FunctionTarget)
    fresh = [it for it in decoded(told.target.pool.data) if it not in decoded(target.pool.data)]
    assert [[*it[:4], it[5]] for it in fresh] == [[["żółw, twice"], {"most": 4}, True, ["żó", "ół", "łw", "w,"], False]]
    assert "1 of its 8 questions" in told.line
    assert told.record["microdollars"] > 0
    assert "| def pairs" in json.dumps(messages_server.bodies[0])
    write_task(told.made.task(told.target, "pairs"), tmp_path / "task")
    task = load_task(tmp_path / "task")
    assert "Pairs of neighbours." in task.statement
    assert "\x1b" not in task.statement
    assert "A judge in another chamber calls pairs" in task.statement


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Reply((Text("I would rather not."),)), "no JSON that can be read"),
        (Refusal(400, "invalid_request_error", "no"), "nothing to use"),
        (Reply(hang=Hang.FIRST), "it did not answer within 1 s"),
    ],
)
async def test_a_model_that_gives_nothing(tmp_path: Path, messages_server: MessagesServer, step: Any, why: str) -> None:
    """Garbage, a refusal or silence: the task is what it would have been, and one line says why."""
    messages_server.play(step)
    wait_s = 1 if isinstance(step, Reply) and step.hang else 60
    told, target = await asked(tmp_path / "there", messages_server, wait_s, Pool(b"", 3, 3, (1.0,), 0))
    assert why in told.line
    assert "\n" not in told.line
    assert (told.target, told.made.hint) == (target, "")


@pytest.mark.parametrize("before", ["import pairs\n#", "#" * (24_000 - len(CODE) - 8)], ids=["whole", "half of it"])
async def test_no_model_is_shown_a_secret(tmp_path: Path, messages_server: MessagesServer, before: str) -> None:
    """Nothing is sent, one line says where it stands and not what it is, and the task is what it would have been."""
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    pool = Pool(b"", 3, 3, (1.0,), 0)
    told, target = await asked(tmp_path / "there", messages_server, pool=pool, tests=f"{before} {key}")
    line = before.count("\n") + 1
    assert told.line.startswith(
        f"model: not asked, so without it: tests/test_pairs.py line {line} looks like an AWS key"
    )
    assert key not in told.line
    assert messages_server.bodies == []
    assert (told.target, told.made.hint) == (target, "")
    assert told.record == {"microdollars": 0, "why": told.line.removeprefix("model: not asked, so without it: ")}


async def test_a_secret_that_is_not_shown(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Lines behind what is shown stop nothing, nor does a file for which the one before it leaves no room."""
    messages_server.play(said(questions=[]))
    key, pool = "# AKIA" + "ABCDEFGHIJKLMNOP", Pool(b"", 3, 3, (1.0,), 0)
    _, target = await asked(tmp_path / "there", messages_server, pool=pool, tests="#\n" * 24_000 + key)
    assert len(messages_server.bodies) == 1
    files = {"pairs.py": CODE + "#\n" * 20_000, "tests/test_pairs.py": key}
    assert "test_pairs" not in prompt(target, repository(tmp_path / "other", files))


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", '{"a": 1}', '{"statement": 7}', '{"questions": {}}', '{"questions": [[1]]}', "[" * 9999,
        '{"questions": [{"args": 1}]}', '{"questions": [{"args": [], "kwargs": []}]}', '{"statement": "' + "x" * 99999,
        '{"questions": [{"args": [1e999]}]}', '{"questions": [{"args": [], "code": "x"}]}',
        '{"statement": "", "statement": ""}', f'{{"questions": [{{"args": [{"9" * 5000}]}}]}}',
    ],
)  # fmt: skip
def test_garbage(text: str) -> None:
    """Whatever is not exactly in the form is refused whole."""
    with pytest.raises(NoAdvice):
        read_advice(Answer(text, "m", "end_turn", Tokens()))


def test_bounds() -> None:
    """So many questions and so many characters at most; an answer that was cut off is none."""
    text = json.dumps({"statement": "a\x00\u202e" * 2000, "questions": [{"args": [it]} for it in range(999)]})
    advice = read_advice(Answer(f"```json\n{text}\n```", "m", "end_turn", Tokens()))
    assert len(advice.questions) == MOST_QUESTIONS
    assert len(advice.statement) <= 2000
    assert advice.statement.isprintable()
    with pytest.raises(NoAdvice, match="cut off"):
        read_advice(Answer(text, "m", "max_tokens", Tokens()))


def test_no_key_and_no_cap(messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is run."""
    with pytest.raises(TaskError, match="a cap of 0 usd leaves nothing"):
        ready_question(Flags(usd=0.0), settings_for(messages_server))
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TaskError, match="there is no key"):
        ready_question(Flags(), Settings())
