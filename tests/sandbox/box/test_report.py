"""What a rented machine sends back is the candidate's own words at worst: parsed strictly, or called what it is."""

import io
import json
import random
import tarfile
from typing import Any

import pytest
from hypothesis import settings

from sandbox import Ending, Limits, Lost, Outcome, Refused, SandboxError, Unavailable, Usage
from sandbox.box.errand import archive
from sandbox.box.report import LOG, OUTPUTS, PAGE, Failed, Report, broken, most_bytes, of_outcome, parse_report
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.log import TAIL_BYTES
from tests.sandbox.skypilot.grounds import ENDED, GREETED, report_bytes

LIMITS = Limits(output_bytes=10_000, output_files=10, log_bytes=1000)
MEASURED = {"build_s": 0, "run_s": 1.5, "collect_s": 0, "log_bytes": 3, "bad_reports": 0}
PAGE_OF_ENDED: dict[str, Any] = {
    "kind": "ended", "ending": "failed", "exit_code": 3, "reason": "", "told": True, "measured": MEASURED,
}  # fmt: skip
GREETING = {"kind": "greeted", "facts": {}}


def packed(page: object, outputs: bytes = archive({}), log: bytes = b"") -> bytes:
    text = page if isinstance(page, bytes) else json.dumps(page).encode()
    return archive({PAGE: text, OUTPUTS: outputs, LOG: log})


def test_a_whole_report() -> None:
    """An honest report comes back as it was written."""
    outcome = Outcome(Ending.FAILED, 3, "why", {"a/b": b"\0\xff"}, b"tail", usage=Usage(run_s=1.5, log_bytes=4))
    report = parse_report(report_bytes(of_outcome(outcome)), LIMITS)
    found = report.outcome(LIMITS, {"cpu": "x"}, 10.0)
    assert (found.ending, found.exit_code, found.reason, found.told) == (Ending.FAILED, 3, "why", True)
    assert (found.outputs, found.log_tail, found.facts) == ({"a/b": b"\0\xff"}, b"tail", {"cpu": "x"})
    assert found.usage.run_s == 1.5


def test_what_was_measured_here_wins() -> None:
    """A machine cannot claim more seconds than passed here, nor more log than was allowed."""
    page = PAGE_OF_ENDED | {"measured": MEASURED | {"run_s": 5000.0, "log_bytes": 10**12}}
    usage = parse_report(packed(page), LIMITS).outcome(LIMITS, {}, 2.0).usage
    assert usage.run_s == 2.0
    assert usage.log_bytes == LIMITS.log_bytes
    assert (usage.usd, usage.held_s) == (0.0, 0.0), "dollars are never the machine's to say"


NO_PAGES: list[bytes] = [
    *(b"", b"null", b"[]", b"{", b'{"kind": "ended", "kind": "ended"}', b"[" * 5000),
    b'{"kind": "greeted", "facts": {"cpu": NaN}}',
    b" " * 300_000 + json.dumps(PAGE_OF_ENDED).encode(),
]
NO_KINDS: list[dict[str, object]] = [
    {"kind": "other"},
    {"kind": "greeted", "facts": {"cpu": 1}},
    {"kind": "greeted", "facts": {"../x": "y"}},
    {"kind": "greeted", "facts": {f"f{number}": "" for number in range(65)}},
    {"kind": "missing", "image": "yes", "inputs": []},
    {"kind": "missing", "image": True, "inputs": ["../../etc/passwd"]},
    {"kind": "failed", "error": "SystemExit", "reason": ""},
]
CHANGES: list[Any] = [
    *({"ending": ending} for ending in ("scored", ["completed"], "killed", "stopped")),
    *({"exit_code": code} for code in (True, 10**30, "0")),
    *({"told": 1}, {"reason": "x" * 5000}, {"usd": -5}),
    *({"measured": MEASURED | more} for more in ({"run_s": -1}, {"run_s": 1e400}, {"usd": 3})),
]


@pytest.mark.parametrize("page", [*NO_PAGES, *NO_KINDS, *(PAGE_OF_ENDED | it for it in CHANGES)])
def test_pages_that_are_none(page: object) -> None:
    """Unknown kinds and keys, wrong types, numbers out of range, keys given twice, depth and size: a typed fault."""
    with pytest.raises(WireFault):
        parse_report(packed(page), LIMITS)


def tar_of(*members: tuple[str, bytes, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as target:
        for name, kind, data in members:
            header = tarfile.TarInfo(name)
            header.type, header.size, header.linkname = kind, len(data), "/etc/passwd"
            target.addfile(header, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        (tar_of(("link", tarfile.SYMTYPE, b"")), Fault.ENTRY_KIND),
        (tar_of(("../out", tarfile.REGTYPE, b"x")), Fault.ENTRY_NAME),
        (tar_of(("big", tarfile.REGTYPE, bytes(10_001))), Fault.TOO_MANY_BYTES),
        (tar_of(*((f"f{n}", tarfile.REGTYPE, b"") for n in range(11))), Fault.TOO_MANY_FILES),
        (tar_of(("twice", tarfile.REGTYPE, b"1"), ("twice", tarfile.REGTYPE, b"2")), Fault.ENTRY_TWICE),
        (b"no tar", Fault.ARCHIVE_TRUNCATED),
    ],
)
def test_outputs_are_harvested_again(outputs: bytes, fault: Fault) -> None:
    """The rules for a chamber's own stream hold for what a machine says it harvested."""
    with pytest.raises(WireFault) as caught:
        parse_report(packed(PAGE_OF_ENDED, outputs), LIMITS)
    assert caught.value.fault is fault


@pytest.mark.parametrize(
    ("whole", "limits", "why"),
    [
        pytest.param(packed(PAGE_OF_ENDED, log=bytes(1001)), LIMITS, "log", id="a log over its cap"),
        pytest.param(packed(PAGE_OF_ENDED, log=bytes(TAIL_BYTES + 1)), Limits(), "log", id="more than a tail"),
        pytest.param(packed(GREETING, archive({"x": b""})), LIMITS, "outputs", id="outputs of a greeting"),
        pytest.param(b"", LIMITS, None, id="nothing"),
        pytest.param(b"x" * 700, LIMITS, None, id="noise"),
        pytest.param(tar_of(), LIMITS, None, id="without the three files"),
        pytest.param(tar_of(("more", tarfile.REGTYPE, b"")), LIMITS, None, id="with another"),
    ],
)
def test_archives_that_are_no_report(whole: bytes, limits: Limits, why: str | None) -> None:
    with pytest.raises(WireFault, match=why):
        parse_report(whole, limits)


def test_mangled_reports() -> None:
    """Flipped bits, cuts and swapped pieces: a report, or a WireFault, and nothing else."""
    dice = random.Random(1)
    whole = [report_bytes(report) for report in (ENDED, GREETED)]
    parsed = 0
    draws = 50 * settings().max_examples
    for _ in range(draws):
        data = bytearray(dice.choice(whole))
        for _ in range(dice.choice((1, 1, 3, 30))):
            at = dice.randrange(len(data))
            match dice.randrange(4):
                case 0:
                    data[at] ^= 1 << dice.randrange(8)
                case 1:
                    data[at : at + dice.randrange(600)] = b""
                case 2:
                    data[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(20)))
                case _:
                    data[at : at + 512] = data[:512]
            if not data:
                break
        try:
            report = parse_report(bytes(data), LIMITS)
        except WireFault:
            continue
        parsed += 1
        assert sum(map(len, report.outputs.values())) <= LIMITS.output_bytes
    assert parsed < draws // 2


def test_the_longest_honest_report_fits() -> None:
    """What is cut off at the cap is never an honest report."""
    names = {f"{number:03}" + "x" * 200: bytes(100) for number in range(10)}
    outcome = Outcome(Ending.COMPLETED, 0, "r" * 4096, names, bytes(1000), {f"f{n}": "v" * 4096 for n in range(8)})
    data = report_bytes(of_outcome(outcome))
    assert len(data) <= most_bytes(LIMITS)
    assert parse_report(data, LIMITS).outputs == names


@pytest.mark.parametrize(
    ("error", "after"), [(Refused("no"), Unavailable), (Unavailable("away"), Unavailable), (Lost("gone"), Lost)]
)
def test_failures_keep_their_kind(error: SandboxError, after: type[SandboxError]) -> None:
    """What the machine's engine raised is raised here, its words escaped; only our own policy refuses a trial."""
    report = parse_report(report_bytes(Report(Failed.of(type(error)("\x1b[2Jx")), {}, b"")), LIMITS)
    assert isinstance(report.page, Failed)
    assert type(report.page.as_error(trusted=True)) is type(error)
    with pytest.raises(after, match=r"^\\x1b\[2Jx$"):
        report.outcome(LIMITS, {}, 1.0)


def test_a_forged_report_is_the_candidates_doing() -> None:
    """Bytes that our code did not write end the trial as a broken protocol, which is charged."""
    outcome = broken(WireFault(Fault.ENTRY_NAME, "x"), {"cpu": "y"})
    assert (outcome.ending, outcome.told) == (Ending.PROTOCOL, False)
    assert parse_report(packed(GREETING), LIMITS).outcome(LIMITS, {}, 1).ending is Ending.PROTOCOL
