"""Server-sent events from bytes: any cut of them gives the same, and nothing grows without bound."""

import tracemalloc
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.llm.sse import Event, Reader

LINES = st.lists(
    st.sampled_from(
        [
            b"data: {}",
            b"data:x",
            b"data",
            b"event: ping",
            b"event:",
            b": comment",
            b"",
            b"",
            b"id: 7",
            b"data: \xff\xfe",
            b"d",
        ]
    ),
    max_size=30,
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def events_of(chunks: list[bytes], longest: int = 1 << 20) -> tuple[list[Event], int]:
    reader = Reader(longest)
    return [event for chunk in chunks for event in reader.feed(chunk)], reader.dropped


@given(LINES, ENDS, st.lists(st.integers(0, 400), max_size=12), st.sampled_from([12, 1 << 20]))
@example([b"data: a", b"", b"data: b", b""], b"\r\n", [8, 9, 10, 11], 1 << 20)
def test_any_cut_gives_the_same(lines: list[bytes], end: bytes, cuts: list[int], longest: int) -> None:
    """How bytes are cut on their way says nothing, whatever ends a line and however long an event may be."""
    data = b"".join(line + end for line in lines)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[at:to] for at, to in pairwise(places)]
    assert events_of(chunks, longest) == events_of([data], longest)
    assert events_of([data[at : at + 1] for at in range(len(data))], longest) == events_of([data], longest)


@given(st.binary(max_size=300), st.integers(1, 20))
def test_nonsense_is_no_error(data: bytes, size: int) -> None:
    """Any bytes can be fed, in any cut, with the same result."""
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert events_of(chunks) == events_of([data])


def test_events() -> None:
    """Names and data are read as browsers read them: several data lines are one text, comments are nothing."""
    data = b"\xef\xbb\xbfevent: a\ndata: one\ndata:two\n\n: ping\n\nevent: b\n\ndata: last\r\n\r\ndata: never ended"
    assert events_of([data])[0] == [Event("a", b"one\ntwo"), Event("", b"last")]


def test_too_long() -> None:
    """An event that is too long is dropped and counted; the next one is read. Memory stays bounded meanwhile."""
    reader = Reader(longest=1000)
    tracemalloc.start()
    try:
        for _ in range(10_000):
            assert reader.feed(b"data: " + b"x" * 94) == []
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()
    assert reader.feed(b"\n\ndata: next\n\n") == [Event("", b"next")]
    assert reader.dropped == 1
