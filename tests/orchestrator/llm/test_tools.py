"""Equal steps of a tool have equal digests; steps that differ in what matters do not."""

from typing import Any

from orchestrator.llm.tools import answered, called, called_raw


def result(content: Any, name: str = "t1", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": content, **more}]}


def digest(content: Any, **more: Any) -> str:
    ((_, found),) = answered([result(content, **more)])
    return found


def test_calls() -> None:
    """The order of keys and white space say nothing; the name and every value do."""
    same = called_raw("bash", '{"command": "ls  -l\\n", "timeout": 5}')
    assert same == called("bash", {"timeout": 5, "command": " ls -l"})
    assert same != called("bash", {"timeout": 6, "command": "ls -l"})
    assert same != called("shell", {"timeout": 5, "command": "ls -l"})
    assert called_raw("bash", "") == called("bash", {})
    assert called_raw("bash", "{half") != called_raw("bash", "{other half")


def test_answers() -> None:
    """How long it took, when and where in memory it was say nothing; other numbers do, and whether it failed."""
    one = "3 passed in 0.12s at 12:00:01, <object at 0x7f00aa10>"
    other = "3 passed in 11.4s at 2026-11-15 13:01:59.5, <object at 0x7fffbb20>"
    assert digest(one).partition(":")[0] == digest(other).partition(":")[0]
    assert digest(one).endswith(":0.12,43201")
    assert digest("took 250 ms, no more") == digest("took 250 ms, no more")
    assert digest("3 passed") != digest("4 passed")
    assert digest("x") != digest("x", is_error=True)
    assert digest([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]) == digest(
        [{"text": " x ", "type": "text"}]
    )


def test_only_what_is_new() -> None:
    """Only results after the model's last words are answers to it."""
    said = {"role": "assistant", "content": "next"}
    story = [result("old", "t1"), said, result("new", "t2"), {"role": "user", "content": "and"}]
    assert [name for name, _ in answered(story)] == ["t2"]
    assert list(answered([result("old"), said])) == []
    assert list(answered("nonsense")) == []
