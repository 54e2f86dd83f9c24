"""A stream is counted as it passes, and what the provider says in the end is believed only where it can be true."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.model_use import Tokens
from orchestrator.llm.meter import Meter
from orchestrator.watch.signals import Hold, Kind
from tests.messages import Block, Hidden, Recorded, Reply, Text, Thinking, Tool
from tests.messages.stage import event
from tests.orchestrator.llm.hearing import ASKED, MODEL, Listener, asked

BLOCKS: list[Block] = [
    Thinking("Let me see. " * 10),
    Hidden(),
    Text("Grüße, 世界! " * 20),
    Tool("edit", {"a": [1, "x"]}),
]


def stream(reply: Reply) -> bytes:
    request = Recorded("/v1/messages", {}, {"model": MODEL}, json.dumps(ASKED).encode())
    return b"".join(event(one) for one in reply.events(request))


def metered(chunks: list[bytes], **fields: Any) -> tuple[Meter, Listener]:
    ear = Listener()
    meter = Meter("c", asked(**fields), ear.heard, lambda: 5.0)
    for chunk in chunks:
        meter.feed(chunk)
    return meter, ear


def told(**usage: Any) -> Meter:
    first = {"input_tokens": 20, "output_tokens": 1}
    return metered([stream(Reply([Text("x" * 40)], usage_first=first, usage=usage))])[0]


def test_signals_of_a_stream() -> None:
    """What the stall watch needs is told in order, of which call and when: begun, thought, shown, a tool called; pings
    have no tokens. The time of the first token is that of the first block, not that of the head of the message.
    """
    started, _ = metered([event({"type": "message_start", "message": {}})])
    assert (started.started, started.first_at) == (True, None)
    meter, ear = metered([stream(Reply(BLOCKS, piece=1000, pings=2, usage={"output_tokens": 1}))])
    assert [kind for kind in ear.kinds if kind is not Kind.TOKENS] == [
        Kind.STARTED,
        Kind.PING,
        Kind.PING,
        Kind.THINKING,
        Kind.THINKING,
        Kind.TOOL_CALLED,
    ]
    assert {(signal.call, signal.at) for signal in ear.signals} == {("c", 5.0)}
    assert meter.first_at == 5.0
    thought = sum(signal.tokens for signal in ear.signals if signal.hold is Hold.THINKING)
    shown = sum(signal.tokens for signal in ear.signals if signal.hold is None)
    assert thought == (120 + len("c2lnbmF0dXJl") + len("aGlkZGVu")) // 4
    assert shown == (len(("Grüße, 世界! " * 20).encode()) + len('{"a": [1, "x"]}')) // 4


@given(st.lists(st.integers(0, 6000), max_size=20))
def test_any_cut_counts_the_same(cuts: list[int]) -> None:
    """However the bytes are cut: the same tokens, tools and usage."""
    data = stream(Reply(BLOCKS, piece=3))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    whole, heard = metered([data])
    cut, listened = metered([data[at:to] for at, to in pairwise(places)])
    assert (cut.usage.tokens, cut.complete) == (whole.usage.tokens, True)
    assert listened.tokens == heard.tokens
    digests = [[signal.digest for signal in one.signals if signal.digest] for one in (heard, listened)]
    assert digests[0] == digests[1]


def test_usage() -> None:
    """The last word counts, and kinds that are said only at the start stay: cached tokens have their own price."""
    first = {
        "input_tokens": 20,
        "output_tokens": 1,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
        "service_tier": "standard",
    }
    last = {"output_tokens": 40, "input_tokens": None, "output_tokens_details": {"thinking_tokens": 10}}
    meter, _ = metered([stream(Reply(usage_first=first, usage=last))], cache_control={"type": "ephemeral", "ttl": "1h"})
    assert meter.complete
    assert meter.usage.tokens == Tokens(input=20, output=40, cache_read=100, cache_write=300)
    assert meter.usage.spent.microdollars == 20 + 40 * 5 + 10 + 125 + 400
    assert meter.usage.spent.tokens == 460


@pytest.mark.parametrize(
    ("last", "tokens"),
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 15}, Tokens(input=5, output=9, cache_read=15)),
        ({"input_tokens": 0, "cache_read_input_tokens": 21}, Tokens(input=0, output=9, cache_read=21)),
    ],
)
def test_input_that_came_from_the_cache(last: dict[str, int], tokens: Tokens) -> None:
    """Input that turns out to have come from the cache is booked as such, as long as no token of it is lost."""
    meter = told(output_tokens=9, **last)
    assert (meter.complete, meter.usage.doubt) == (True, "")
    assert meter.usage.tokens == tokens


def test_writes_without_a_breakdown() -> None:
    """Where it is not said for how long something was written, it is priced at the longest that was asked for."""
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 100}
    data = stream(Reply(usage_first=usage, usage={"output_tokens": 0}))
    hour, _ = metered([data], cache_control={"type": "ephemeral", "ttl": "1h"})
    short, _ = metered([data], cache_control={"type": "ephemeral"})
    assert (hour.usage.spent.microdollars, short.usage.spent.microdollars) == (200, 125)


@pytest.mark.parametrize(
    ("usage", "why"),
    [
        ({"output_tokens": 0}, "went down"),
        ({"output_tokens": 40, "input_tokens": 3}, "went down"),
        ({"output_tokens": 40, "input_tokens": 3, "cache_read_input_tokens": 16}, "went down"),
        ({"output_tokens": 40, "input_tokens": 3, "cache_read_input_tokens": "17"}, "went down"),
        ({"output_tokens": -5}, "no count"),
        ({"output_tokens": "40"}, "no count"),
        ({"output_tokens": 40.5}, "no count"),
        ({"output_tokens": 1001}, "more than the 1000 asked for"),
        ({"output_tokens": 10, "input_tokens": 10**9}, "no count"),
        ({"output_tokens": 10, "input_tokens": 10**6}, "more than were sent"),
        ({"output_tokens": 10, "cache_creation_input_tokens": 5}, "nothing asked for"),
        ({"output_tokens": 10, "service_tier": "priority"}, "service_tier"),
        ({"output_tokens": 10, "speed": "fast"}, "speed"),
        ({"output_tokens": 10, "inference_geo": "us"}, "inference_geo"),
        ({"output_tokens": 10, "server_tool_use": {"web_search_requests": 1}}, "tools ran"),
        ({"output_tokens": 10, "iterations": [{"type": "message"}, {"type": "compaction"}]}, "iterations"),
    ],
)
def test_usage_that_is_not_believed(usage: Mapping[str, Any], why: str) -> None:
    """Counts that go down, are none, pass what was asked for, or have a price that is not known, complete nothing."""
    meter = told(**usage)
    assert why in meter.usage.doubt
    assert not meter.complete


@pytest.mark.parametrize(
    "data",
    [
        stream(Reply(usage={})),
        stream(Reply(usage={"output_tokens": None})),
        stream(Reply())[:-200],
        stream(Reply(usage_first={})).replace(b"message_start", b"message_other"),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        event({"type": "message_delta", "delta": None, "usage": []}),
        event({"type": "content_block_start", "index": "x", "content_block": 7}),
        event({"type": "content_block_delta", "index": {}, "delta": {"type": "text_delta", "text": 7}}),
        event({"type": "content_block_stop", "index": []}),
        event({"type": "error", "error": "?"}),
        b"data: 7\n\ndata: null\n\ndata: {\n\ndata: " + b"[" * 100_000 + b"\n\n",
        b"\x00\xff" * 100,
    ],
)
def test_no_last_word(data: bytes) -> None:
    """A stream without usage at its end, or that is none, is not complete; nothing else happens."""
    assert not metered([data])[0].complete


@given(
    st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda i: st.lists(i) | st.dictionaries(st.text(), i))
)
def test_events_of_any_shape(value: Any) -> None:
    """No shape of an event is an error."""
    kinds = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "error",
    ]
    data = b"".join(
        event({"type": kind, **dict.fromkeys(("message", "index", "content_block", "delta", "usage", "error"), value)})
        for kind in kinds
    )
    assert not metered([data])[0].complete


def test_nothing_counts_after_the_end() -> None:
    """Nothing said after the end of a message counts; what was billed beyond what was seen is told at the end."""
    data = stream(Reply(usage={"output_tokens": 3}))
    meter, _ = metered([data, event({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 900}})])
    assert meter.usage.tokens.output == 3
    meter, ear = metered([stream(Reply([Text("x" * 40)], usage={"output_tokens": 500}))])
    assert (meter.complete, ear.tokens) == (True, 500)
