"""What an agent's chamber may say, and that everything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.agents.messages import Broken, Exited, Gone, Request, ToolCall, Work, read
from orchestrator.judge.guest.blastdoor_values import encode

HEADERS = [["content-type", "application/json"]]


def test_every_kind() -> None:
    """Each message is read into its own type, text made fit for a line."""
    said = [
        ["request", 1, "POST", "/v1/messages?beta=true", HEADERS, b"{}"],
        ["gone", 1],
        ["tool", 2, "tune", "two\nlines", {"a.py": b"x"}, ["b.py"]],
        ["exited", -9, {}, []],
    ]
    assert read(encode(said)) == [
        Request(1, "POST", "/v1/messages", "beta=true", (("content-type", "application/json"),), b"{}"),
        Gone(1),
        ToolCall(2, "tune", "two lines", Work({"a.py": b"x"}, ("b.py",))),
        Exited(-9, Work({}, ())),
    ]


@pytest.mark.parametrize(
    "said",
    [
        {},
        ["exited"],
        [["exited", True, {}, []]],
        [["exited", 0, {"a.py": "text"}, []]],
        [["exited", 0, {"a.py": b"x" * (8 << 20), "b.py": b"x"}, []]],
        [["exited", 0, {str(at): b"" for at in range(2001)}, []]],
        [["exited", 0, {}, [1]]],
        [["gone", 0]],
        [["gone", 2**60]],
        [["gone", 1, 2]],
        [["head", 1, 200, []]],
        [[]],
        [["gone", 1]] * 1001,
        [["request", 1, "post", "/", [], b""]],
        [["request", 1, "POST", "http://elsewhere/", [], b""]],
        [["request", 1, "POST", "/\u00e9", [], b""]],
        [["request", 1, "POST", "/" + "x" * 5000, [], b""]],
        [["request", 1, "POST", "/", [["a b", "c"]], b""]],
        [["request", 1, "POST", "/", [["a", "b\r\nc: d"]], b""]],
        [["request", 1, "POST", "/", [["a", "b"]] * 101, b""]],
        [["request", 1, "POST", "/", [["a", "b" * 70_000]], b""]],
        [["request", 1, "POST", "/", [], "text"]],
        [["request", 1, "POST", "/", [], b"x" * ((32 << 20) + 1)]],
        [["tool", 1, "tune", b"bytes", {}, []]],
    ],
)
def test_refused(said: object) -> None:
    """What has another type, another length or another name is refused, with one line."""
    with pytest.raises(Broken) as broken:
        read(encode(said))
    assert "\n" not in str(broken.value)


@given(st.binary(max_size=200))
def test_any_bytes(payload: bytes) -> None:
    """Bytes that nobody wrote are read or refused, and nothing else."""
    try:
        read(payload)
    except Broken:
        return
    assert payload[:1] == b"l"
