"""Any bytes, cut in any way: nothing but the typed refusal ever comes out, and nothing depends on the cuts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sandbox.wire.fuzzing import MEMBERS, PARSERS, TALK, WORDS, check_dialogue, check_harvest
from tests.sandbox.wire.streams import END, cut_at, sealed

CUTS = st.lists(st.integers(0, 10**6), max_size=6)


@pytest.mark.parametrize("parser", PARSERS)
@given(stream=st.binary(max_size=3000), cuts=CUTS)
def test_arbitrary_bytes(parser: str, stream: bytes, cuts: list[int]) -> None:
    """Bytes that mean nothing are refused or passed over, never more."""
    _, check = PARSERS[parser]
    check(stream, cut_at(stream, cuts))


@pytest.mark.parametrize("parser", PARSERS)
@given(seed=st.integers(0, 2**32), cuts=CUTS)
def test_mutated_streams(parser: str, seed: int, cuts: list[int]) -> None:
    """Streams that were good before somebody scribbled on them are refused or taken, never more."""
    make, check = PARSERS[parser]
    stream = make(random.Random(seed))
    check(stream, cut_at(stream, cuts))


@given(members=st.lists(st.sampled_from(MEMBERS), max_size=5), block=st.binary(min_size=512, max_size=512), cuts=CUTS)
def test_archives_with_a_wild_header(members: list[bytes], block: bytes, cuts: list[int]) -> None:
    """A header of any content under a good checksum is refused or taken, never more."""
    stream = b"".join([*members, sealed(block), END])
    check_harvest(stream, cut_at(stream, cuts))


@given(words=st.lists(st.one_of(st.sampled_from(TALK + WORDS), st.binary(max_size=1100)), max_size=12), cuts=CUTS)
def test_dialogues_of_any_words(words: list[bytes], cuts: list[int]) -> None:
    """Words in any order, with anything between them, only move the dialogue towards its end."""
    stream = b"".join(words)
    check_dialogue(stream, cut_at(stream, cuts))
