"""What must be true of a parser for any stream, cut in any way; and how to make streams that get far into it.

Every check parses the stream twice, whole and in pieces, and compares. It returns the fault that ended it, or None.
"""

import random
import re
from collections.abc import Callable, Sequence

from sandbox.errors import Unavailable
from sandbox.wire.demux import Demultiplexer, Stream
from sandbox.wire.dialogue import FACTS_CAP, LINE_CAP, Dialogue, Said
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader, Taker
from sandbox.wire.harvest import NAME_CAP, PART_CAP, Harvest
from sandbox.wire.log import LINE_BYTES, TAIL_BYTES, Log, Report, parse_report
from tests.sandbox.wire.streams import END, attached, frame, header, member, padded, pax, pax_record, sealed

BYTE_CAP, ENTRY_CAP = 2000, 6
FRAME_CAP, FRAME_COUNT = 40, 3
LOG_CAP = 20_000
NONCES = (b"\0\0\0\0nonc", b"second\n\xff", b"\0\0\0\1\0\0\0\2", b"past the")

Check = Callable[[bytes, Sequence[bytes]], Fault | str | None]

_FORBIDDEN = re.compile("[\0-\x08\n-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def assert_safe_name(name: str) -> None:
    """Joined to a folder, the name stays inside; shown to a person, it is what it looks like."""
    parts = name.split("/")
    assert name
    assert not {"", ".", ".."} & set(parts)
    assert all(len(part.encode()) <= PART_CAP and part[0] != "-" for part in parts)
    assert len(name.encode()) <= NAME_CAP
    assert not _FORBIDDEN.search(name)
    assert "\t" not in name
    assert "\\" not in name


def fault_of(feed: Callable[[bytes], object], finish: Callable[[], None], pieces: Sequence[bytes]) -> Fault | None:
    """What ended a parser; a person reads one line of harmless text of it."""
    found = None
    try:
        for piece in pieces:
            feed(piece)
        finish()
    except WireFault as fault:
        found = fault
    assert str(found).isprintable()
    return found.fault if found else None


def check_harvest(stream: bytes, pieces: Sequence[bytes]) -> Fault | None:
    whole, cut = _harvested([stream]), _harvested(pieces)
    assert whole == cut
    fault, files, _ = whole
    assert len(files) <= ENTRY_CAP
    assert sum(map(len, files.values())) <= BYTE_CAP
    for name in files:
        assert_safe_name(name)
    folders = {name.rpartition("/")[0] for name in files}
    assert not folders & set(files)
    return fault


def _harvested(pieces: Sequence[bytes]) -> tuple[Fault | None, dict[str, bytes], int]:
    harvest = Harvest(BYTE_CAP, ENTRY_CAP)
    return fault_of(harvest.feed, harvest.finish, pieces), dict(harvest.files), harvest.count


def check_demux(stream: bytes, pieces: Sequence[bytes]) -> str | None:
    whole, cut = _demultiplexed([stream]), _demultiplexed(pieces)
    assert whole == cut
    assert sum(map(len, whole[1:])) <= len(stream)
    return whole[0]


def _demultiplexed(pieces: Sequence[bytes]) -> tuple[str | None, bytes, bytes]:
    demultiplexer = Demultiplexer()
    taken = {Stream.STDOUT: bytearray(), Stream.STDERR: bytearray()}
    fault = None
    try:
        for piece in pieces:
            for stream, part in demultiplexer.feed(piece):
                taken[stream] += part
    except Unavailable:
        fault = "unavailable"
    return fault, bytes(taken[Stream.STDOUT]), bytes(taken[Stream.STDERR])


def check_frames(stream: bytes, pieces: Sequence[bytes]) -> Fault | None:
    whole, cut = _framed([stream]), _framed(pieces)
    assert whole == cut
    assert len(whole[1]) <= FRAME_COUNT
    assert all(len(payload) <= FRAME_CAP for payload in whole[1])
    return whole[0]


def _framed(pieces: Sequence[bytes]) -> tuple[Fault | None, list[bytes]]:
    frames: list[bytes] = []
    nonces = list(NONCES)

    def arrived(payload: bytes) -> None:
        frames.append(payload)
        if nonces and payload:  # after an empty frame, nothing more is asked
            reader.await_reply(nonces.pop(0))

    def begin(length: int, _: bytes) -> Taker | None:
        """The last that is asked for is handed on while it comes, and must be the same in the end."""
        taken = bytearray()

        def take(piece: bytes) -> None:
            taken.extend(piece)
            if len(taken) == length:
                frames.append(bytes(taken))

        return None if nonces else take

    reader = FrameReader(arrived, FRAME_CAP, FRAME_COUNT, begin)
    reader.await_reply(nonces.pop(0))
    return fault_of(reader.feed, reader.finish, pieces), frames


def check_log(stream: bytes, pieces: Sequence[bytes]) -> Fault | None:
    whole, cut = _logged([stream]), _logged(pieces)
    assert whole == cut
    fault, lines, reports, count, tail = whole
    assert count == min(len(stream), LOG_CAP)
    assert (fault is Fault.LOG_OVERFLOW) == (len(stream) > LOG_CAP)
    assert tail == stream[:LOG_CAP][-TAIL_BYTES:]
    assert len(reports) <= len(lines) <= stream.count(b"\n") + len(stream) // LINE_BYTES + 1
    for line in lines:
        assert not _FORBIDDEN.search(line)
    for report in reports:
        assert_report(report)
    return fault


def _logged(pieces: Sequence[bytes]) -> tuple[Fault | None, list[str], list[Report], int, bytes]:
    lines: list[str] = []
    reports: list[Report] = []
    log = Log(LOG_CAP, lines.append, reports.append)
    fault = fault_of(log.feed, lambda: None, pieces)
    log.close()
    return fault, lines, reports, log.count, log.tail


def assert_report(report: Report) -> None:
    assert type(report.step) is int
    assert 0 <= report.step < 2**53
    assert type(report.value) is float
    assert abs(report.value) < float("inf")


def check_report(stream: bytes, _: Sequence[bytes]) -> str | None:
    report = parse_report(stream)
    if report is None:
        return "no report"
    assert_report(report)
    return None


def check_dialogue(stream: bytes, pieces: Sequence[bytes]) -> Fault | None:
    whole, cut = _talked([stream]), _talked(pieces)
    assert whole == cut
    fault, said, facts, files = whole
    phases = [word.phase.value for word in said]
    assert phases == sorted(set(phases))
    assert all(0 <= word.code < 10**9 for word in said)
    assert len(facts) <= FACTS_CAP
    for name, value in facts.items():
        assert not _FORBIDDEN.search(name + value)
    assert sum(map(len, facts.values())) <= FACTS_CAP * 10 * LINE_CAP
    for name in files:
        assert_safe_name(name)
    return fault


def _talked(pieces: Sequence[bytes]) -> tuple[Fault | None, list[Said], dict[str, str], dict[str, bytes]]:
    harvest = Harvest(BYTE_CAP, ENTRY_CAP)
    dialogue = Dialogue(harvest)
    said: list[Said] = []
    fault = fault_of(lambda piece: said.extend(dialogue.feed(piece)), dialogue.finish, pieces)
    return fault, said, dict(dialogue.facts), dict(harvest.files)


MEMBERS = [
    member(b"./", kind=b"5"),
    member(b"./a", b"content"),
    member(b"a", b""),
    member(b"b", bytes(600)),
    member(b"full", bytes(512)),
    member(b"dir/", kind=b"5"),
    member(b"dir/c", b"x"),
    member(b"in prefix", b"y", prefix=b"dir/er"),
    member(b"././@LongLink", b"long/" + b"n" * 120 + b"\0", b"L") + member(b"n", b"z"),
    pax((b"path", "päx/näme".encode())) + member(b"p", b"q"),
    pax((b"size", b"9"), (b"mtime", b"1.5")) + header(b"s", 0) + padded(b"ninebytes"),
    pax((b"comment", b"c")) + member(b"commented"),
    member(b"link", kind=b"2"),
    member(b"../up"),
    pax((b"GNU.sparse.major", b"1")) + member(b"sparse"),
    pax((b"size", b"999999999999")) + header(b"liar"),
    header(b"huge", 2001),
]
FIELDS = [(0, 100), (100, 108), (124, 136), (148, 156), (156, 157), (257, 265), (345, 500)]
VALUES = [
    *(
        *(b"", b"\0", b"/", b"..", b"../x", b"./", b".", b"-x", b"a/../b", b"a\nb", b"\xff", "\u202e".encode()),
        *(b"a", b"dir"),
    ),
    *(
        *(b"00000000012\0", b"77777777777\0", b"\x80\0\0\0\0\0\0\0\0\0\0\1", b"9", b"-1", b" 7 ", b"0", b"5", b"L"),
        *(b"x", b"g"),
    ),
    *(b"1", b"2", b"6", b"S", b"ustar\00000", b"ustar  \0", b"0000644\0", pax_record(b"path", b"x"), b"99 path=x\n"),
]
WORDS = [
    *(b"blastdoor 1\n", b"fact cpu fast\n", b"fact cpu more\n", b"fact gpu \x1b\xff\t\n", b"ready\n"),
    *(b"unpacked 0\n", b"built 0 0 0\n", b"done 0\n", b"done 137 1 9\n", b"archive\n"),
    *(b"fact x " + b"v" * 1010 + b"\n", b"\n", b"forged"),
]
TALK = [b"blastdoor 1\n", b"fact cpu fast\n", b"ready\n", b"unpacked 0\n", b"built 0\n", b"done 3 0 0\n", b"archive\n"]
REPORTS = [
    *(b'::report {"step": 1, "value": 0.5}', b'::report {"value": -3, "step": 9007199254740991}', b"::report {}"),
    *(b'::report {"step": 1, "value": 1e309}', b"::report [[[[[[", b'::report {"step": 1, "step": 1, "value": NaN}'),
    *(b'::report {"step": 1, "value": "\\ud800"}', b"::report " + b"9" * 200, b"::report \xef\xbb\xbf{}"),
]
LINES = [
    *(b"plain\n", b"\x1b[31mred\r\n", "\u202eturned\u2028\n".encode(), b"\xff\xfe\n", b"\n", b"no end", b"\t", b"\r"),
    *(b"x" * 300 + b"\n", *(report + b"\n" for report in REPORTS)),
]
TOKENS = [
    *(b"\0", b"\n", b"\xff", b" ", b"1", b"/", b"..", b"=", b"\0\0\0\0", b"\x80", b"{", b'"', b"-", b"e9"),
    b"\xed\xa0\x80",
]


def scribbled(rng: random.Random, stream: bytes) -> bytes:
    """The stream with a few bytes changed, lost, doubled, moved or put in."""
    data = bytearray(stream)
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + (1 << rng.randrange(8)))
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end]
            case 3:
                del data[at:]
            case _:
                data[at:at] = rng.choice(TOKENS)
    return bytes(data)


def an_archive(rng: random.Random) -> bytes:
    """Members from the list, one field of one header overwritten, most checksums put right again."""
    data = bytearray(b"".join(rng.choices(MEMBERS, k=rng.randrange(4))) + END)
    kind = rng.random()
    if kind < 0.7:
        block = rng.randrange(len(data) // 512) * 512
        start, end = rng.choice(FIELDS)
        value = rng.choice(VALUES)[: end - start]
        data[block + start : block + start + len(value)] = value
        if rng.random() < 0.9:
            data[block : block + 512] = sealed(data[block : block + 512])
    return scribbled(rng, bytes(data)) if kind > 0.6 else bytes(data)


def an_attachment(rng: random.Random) -> bytes:
    payloads = [
        attached(rng.choice((1, 1, 2, 2, 2, 0)), rng.randbytes(rng.randrange(40))) for _ in range(rng.randrange(5))
    ]
    return scribbled(rng, b"".join(payloads))


def some_frames(rng: random.Random) -> bytes:
    frames = [frame(rng.randbytes(rng.choice((0, 1, 7, 39, 40, 41))), nonce) for nonce in NONCES[: rng.randrange(5)]]
    return scribbled(rng, b"".join(frames))


def a_log(rng: random.Random) -> bytes:
    stream = b"".join(rng.choices(LINES, k=rng.randrange(8)))
    if rng.random() < 0.01:
        stream += b"long" * rng.randrange(6000) + b"\n"
    return scribbled(rng, stream)


def a_report(rng: random.Random) -> bytes:
    return scribbled(rng, rng.choice(REPORTS))


def a_dialogue(rng: random.Random) -> bytes:
    words = TALK[: rng.randrange(len(TALK) + 1)]
    if rng.random() < 0.5:
        words = [*words, *rng.choices(WORDS, k=rng.randrange(3)), *TALK[len(words) :]]
    archive = b"".join(rng.choices(MEMBERS[:12], k=rng.randrange(2))) + END
    return scribbled(rng, b"".join(words) + archive)


PARSERS: dict[str, tuple[Callable[[random.Random], bytes], Check]] = {
    "harvest": (an_archive, check_harvest),
    "demux": (an_attachment, check_demux),
    "frames": (some_frames, check_frames),
    "log": (a_log, check_log),
    "report": (a_report, check_report),
    "dialogue": (a_dialogue, check_dialogue),
}
