"""The words of PID 1: in their order, each once, and none that a candidate could gain by."""

import pytest

from sandbox.wire.dialogue import FACTS_CAP, LINE_CAP, Dialogue, Phase, Said
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader
from sandbox.wire.harvest import Harvest
from tests.sandbox.wire.streams import END, frame, member, pieces

HELLO = b"blastdoor 1\nfact cpu fast\nready\n"
NONCE = b"12345678"


def said(dialogue: Dialogue, stream: bytes, piece: int = 65_536) -> list[Said]:
    return [word for part in pieces(stream, piece) for word in dialogue.feed(part)]


def fault_of(dialogue: Dialogue, stream: bytes, piece: int = 65_536) -> Fault:
    with pytest.raises(WireFault) as caught:
        said(dialogue, stream, piece)
    return caught.value.fault


@pytest.mark.parametrize("piece", [1, 7, 65_536])
def test_a_whole_conversation(piece: int) -> None:
    """Facts, ready, one word a step, then the archive's bytes, however they are cut."""
    harvest = Harvest(100, 10)
    dialogue = Dialogue(harvest)
    stream = HELLO + b"unpacked 0\nbuilt 0 0 0\ndone 3 1 2\narchive\n" + member(b"a", b"x\ny\n") + END
    assert said(dialogue, stream, piece) == [
        Said(Phase.READY),
        Said(Phase.UNPACKED),
        Said(Phase.BUILT),
        Said(Phase.DONE, 3, full=True, forks_refused=True),
    ]
    dialogue.finish()
    assert dict(dialogue.facts) == {"cpu": "fast"}
    assert harvest.files == {"a": b"x\ny\n"}


WORDS = [b"blastdoor 1", b"fact a b", b"ready", b"unpacked 0", b"built 0", b"done 0", b"archive", b"nonsense"]
ALLOWED = [
    [b"unpacked 0"],
    [b"unpacked 0", b"built 0"],
    [b"unpacked 0", b"built 0", b"done 0"],
    [b"unpacked 0", b"done 0"],
]


@pytest.mark.parametrize("before", [[], *ALLOWED])
def test_every_order_of_words(before: list[bytes]) -> None:
    """Of all words that may come next, only forward steps are heard; each other one is out of turn, and the last."""
    for word in WORDS:
        dialogue = Dialogue()
        said(dialogue, HELLO + b"".join(it + b"\n" for it in before))
        if [*before, word] in ALLOWED:
            assert len(said(dialogue, word + b"\n")) == 1
        else:
            assert fault_of(dialogue, word + b"\n") is Fault.OUT_OF_TURN


@pytest.mark.parametrize("before", [b"", b"built 0\n", b"done 0\n", b"built 0\ndone 0\n"])
def test_archive_is_heard_only_when_expected(before: bytes) -> None:
    """An archive that nobody asked for is out of turn; one that was asked for may come after any step."""
    dialogue = Dialogue()
    said(dialogue, HELLO + b"unpacked 0\n" + before)
    assert fault_of(dialogue, b"archive\n") is Fault.OUT_OF_TURN
    dialogue = Dialogue(Harvest(100, 10))
    assert fault_of(dialogue, HELLO + b"archive\n") is Fault.OUT_OF_TURN
    dialogue = Dialogue()
    said(dialogue, HELLO + b"unpacked 0\n" + before)
    dialogue.expect_archive(Harvest(100, 10))
    assert said(dialogue, b"archive\n" + END) == []
    assert dialogue.phase is Phase.RAW
    dialogue.finish()


@pytest.mark.parametrize("greeting", [b"ready\n", b"fact a b\n", b"blastdoor 2\n", b"blastdoor\n", b"sh: not found\n"])
def test_other_greetings_are_refused(greeting: bytes) -> None:
    """Nothing comes before the greeting, and there is only one of it."""
    assert fault_of(Dialogue(), greeting) is Fault.OUT_OF_TURN
    assert fault_of(Dialogue(), b"blastdoor 1\nblastdoor 1\n") is Fault.OUT_OF_TURN
    assert fault_of(Dialogue(), b"blastdoor 1\nready now\n") is Fault.OUT_OF_TURN


NO_WORDS = (
    *(b"done", b"done ", b"done -1", b"done 1.5", b"done 0 0 0 0", b"done 0  0", b"done 1234567890", b"done \xff"),
    *("done \u0661".encode(), b"done 0\r", b"done\t0", b"DONE 0", b" done 0", b"archive now", b"unpacked 0", b""),
)


@pytest.mark.parametrize("word", NO_WORDS)
def test_forged_words(word: bytes) -> None:
    """A word that is not exactly one of PID 1's ends the dialogue."""
    dialogue = Dialogue(Harvest(100, 10))
    said(dialogue, HELLO + b"unpacked 0\n")
    assert fault_of(dialogue, word + b"\n") is Fault.OUT_OF_TURN


def test_what_was_said_before_a_fault_is_not_lost() -> None:
    """A word and a forged one in the same piece: the first is heard, so that a candidate cannot undo it."""
    dialogue = Dialogue()
    words = dialogue.feed(HELLO + b"unpacked 0\nforged\n")
    assert [next(words).phase, next(words).phase] == [Phase.READY, Phase.UNPACKED]
    with pytest.raises(WireFault):
        next(words)


@pytest.mark.parametrize("piece", [1, 600, 65_536])
def test_line_cap_is_exact(piece: int) -> None:
    """A line of 1024 bytes is heard, one more is refused; with or without its end, however it is cut."""
    start = b"blastdoor 1\nfact name "
    longest = b"v" * (LINE_CAP - len(b"fact name "))
    dialogue = Dialogue()
    said(dialogue, start + longest + b"\n", piece)
    assert dialogue.facts["name"] == longest.decode()
    assert fault_of(Dialogue(), start + longest + b"v\n", piece) is Fault.LINE_TOO_LONG
    assert fault_of(Dialogue(), start + longest + b"v", piece) is Fault.LINE_TOO_LONG
    assert fault_of(Dialogue(), b"x" * 5000, piece) is Fault.LINE_TOO_LONG


@pytest.mark.parametrize("same", [True, False])
def test_facts_are_bounded(same: bool) -> None:
    """So many facts and no more, of different names or of one."""
    lines = [b"fact %d %s\n" % (0 if same else number, b"v" * 900) for number in range(FACTS_CAP)]
    dialogue = Dialogue()
    said(dialogue, b"blastdoor 1\n" + b"".join(lines))
    assert sum(map(len, dialogue.facts.values())) < FACTS_CAP * LINE_CAP
    assert fault_of(dialogue, b"fact 0 more\n") is Fault.OUT_OF_TURN


def test_facts_are_harmless() -> None:
    """A fact is one line of printable text; said twice, both values are kept."""
    dialogue = Dialogue()
    said(
        dialogue,
        b"blastdoor 1\nfact cpu\tname a\x1b[31m\t b\nfact gpu one\nfact gpu two\n" + "fact x \u202e\n".encode(),
    )
    assert dialogue.facts["gpu"] == "one; two"
    assert all(text.isprintable() for text in dialogue.facts.values())


UNPACKED = HELLO + b"unpacked 0\n"
HALF = UNPACKED + b"done 0\narchive\n" + member(b"a", b"x")


@pytest.mark.parametrize("start", [b"", b"blastdoor 1\n", HELLO, UNPACKED, UNPACKED + b"done 0\n", HALF])
def test_silence(start: bytes) -> None:
    """A chamber that ends before its archive has ended early; within it, it has sent half of one."""
    dialogue = Dialogue(Harvest(100, 10))
    said(dialogue, start)
    with pytest.raises(WireFault) as caught:
        dialogue.finish()
    assert caught.value.fault is (Fault.ARCHIVE_TRUNCATED if start is HALF else Fault.ENDED_EARLY)


def test_frames_after_the_switch() -> None:
    """In relay mode, everything after the last word is frames."""
    frames: list[bytes] = []
    reader = FrameReader(frames.append, 100, 10)
    dialogue = Dialogue()
    said(dialogue, HELLO + b"unpacked 0\n")
    dialogue.expect_frames(reader)
    reader.await_reply(NONCE)
    assert said(dialogue, frame(b"done 0\n", NONCE), 1) == []
    dialogue.finish()
    assert frames == [b"done 0\n"]
    assert fault_of(dialogue, frame(b"x", NONCE)) is Fault.FRAME_EXTRA


def test_bytes_before_the_switch_count_as_frames() -> None:
    """What a candidate blurts out before we listen for frames is not forgotten."""
    dialogue = Dialogue()
    said(dialogue, HELLO + b"unpacked 0\n" + frame(b"x", NONCE))
    with pytest.raises(WireFault) as caught:
        dialogue.expect_frames(FrameReader(lambda _: None, 100, 10))
    assert caught.value.fault is Fault.FRAME_EXTRA
