"""What comes back from a rented machine: written there, parsed here as untrusted bytes.

One tar of at most three files: `outcome.json`, `outputs.tar` and `log`. Once a candidate broke out of its container,
all of it is the candidate's own words. So sizes, names, types and ranges are checked, outputs go through the same
harvest as a chamber's stream, and what was measured here wins over what is said there.
"""

import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from sandbox.box.errand import OUTCOME, archive
from sandbox.errors import Lost, Refused, SandboxError, Unavailable
from sandbox.job import Ending, Limits, Outcome, Usage
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.harvest import BLOCK, PADDING_CAP, Harvest
from sandbox.wire.log import TAIL_BYTES, printable

PAGE = "outcome.json"
OUTPUTS = "outputs.tar"
LOG = "log"
NAMES = (PAGE, OUTPUTS, LOG)
PAGE_BYTES = 262_144
REASON_CHARS = 400
FACTS = 64
# A member costs its header and padding; a long name costs two more blocks.
ENTRY_BYTES = 4 * BLOCK
# Nobody on the machine gives such orders: who says so there would be refunded at its own word.
_OURS_TO_SAY = (Ending.KILLED, Ending.STOPPED)
_ERRORS: dict[str, type[SandboxError]] = {"refused": Refused, "unavailable": Unavailable, "lost": Lost}

_Reason = Annotated[StrictStr, Field(max_length=4096)]
_Facts = Annotated[
    dict[
        Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")],
        Annotated[StrictStr, Field(max_length=4096)],
    ],
    Field(max_length=FACTS),
]
_Seconds = Annotated[StrictFloat | StrictInt, Field(ge=0, le=86_400 * 30)]
_Count = Annotated[StrictInt, Field(ge=0, le=2**50)]


class Greeted(BaseModel, extra="forbid", frozen=True):
    """A chamber was made and ended again; this is what it said of itself."""

    kind: Literal["greeted"] = "greeted"
    facts: _Facts


class Missing(BaseModel, extra="forbid", frozen=True):
    """The machine lacks these: send them, then ask again."""

    kind: Literal["missing"] = "missing"
    image: StrictBool
    inputs: Annotated[list[Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]], Field(max_length=64)]


class Failed(BaseModel, extra="forbid", frozen=True):
    """The machine's engine, or our own policy there, said no."""

    kind: Literal["failed"] = "failed"
    error: Literal["refused", "unavailable", "lost"]
    reason: _Reason

    @classmethod
    def of(cls, error: SandboxError) -> "Failed":
        names = [name for name, kind in _ERRORS.items() if isinstance(error, kind)]
        return cls(error=names[0] if names else "unavailable", reason=str(error)[:4096])

    def as_error(self, *, trusted: bool) -> SandboxError:
        """Refused is the word of our own policy, and ends a campaign: no machine says it that had a bundle."""
        kind = _ERRORS[self.error]
        if kind is Refused and not trusted:
            kind = Unavailable
        return kind(printable(self.reason.encode())[:REASON_CHARS])


class Measured(BaseModel, extra="forbid", frozen=True):
    """By our own code on the machine, outside of the chamber."""

    build_s: _Seconds
    run_s: _Seconds
    collect_s: _Seconds
    log_bytes: _Count
    bad_reports: _Count


class Ended(BaseModel, extra="forbid", frozen=True):
    """How the trial ended."""

    kind: Literal["ended"] = "ended"
    ending: Ending
    exit_code: Annotated[StrictInt, Field(ge=-255, le=255)] | None
    reason: _Reason
    told: StrictBool
    measured: Measured


Page = Annotated[Greeted | Missing | Failed | Ended, Field(discriminator="kind")]
_PAGE: TypeAdapter[Greeted | Missing | Failed | Ended] = TypeAdapter(Page)


@dataclass(frozen=True, slots=True)
class Report:
    """A page, and the files beside it."""

    page: Greeted | Missing | Failed | Ended
    outputs: Mapping[str, bytes]
    log: bytes

    def outcome(self, limits: Limits, facts: Mapping[str, str], seconds: float) -> Outcome:
        """As a chamber's outcome. `facts` were heard before any hostile byte arrived, `seconds` were measured here."""
        page = self.page
        if isinstance(page, Failed):
            raise page.as_error(trusted=False)
        if not isinstance(page, Ended):
            return broken(WireFault(Fault.OUT_OF_TURN, f"the machine said {page.kind}"), facts)
        measured = page.measured
        usage = Usage(
            build_s=min(float(measured.build_s), seconds),
            run_s=min(float(measured.run_s), seconds),
            collect_s=min(float(measured.collect_s), seconds),
            log_bytes=min(measured.log_bytes, limits.log_bytes),
            bad_reports=measured.bad_reports,
            output_bytes=sum(map(len, self.outputs.values())),
        )
        return Outcome(
            ending=page.ending,
            exit_code=page.exit_code,
            reason=printable(page.reason.encode())[:REASON_CHARS],
            outputs=self.outputs,
            log_tail=self.log,
            facts=facts,
            usage=usage,
            told=page.told,
        )


def broken(fault: WireFault, facts: Mapping[str, str]) -> Outcome:
    """Bytes that our own code would not have sent: somebody else wrote them, and that is the candidate."""
    return Outcome(ending=Ending.PROTOCOL, reason=str(fault)[:REASON_CHARS], facts=facts, told=False)


def of_outcome(outcome: Outcome) -> Report:
    """On the machine: what the engine's chamber came to, as a report."""
    usage = outcome.usage
    measured = Measured(
        build_s=usage.build_s,
        run_s=usage.run_s,
        collect_s=usage.collect_s,
        log_bytes=usage.log_bytes,
        bad_reports=usage.bad_reports,
    )
    page = Ended(
        ending=outcome.ending,
        exit_code=outcome.exit_code,
        reason=outcome.reason[:4096],
        told=outcome.told,
        measured=measured,
    )
    return Report(page, outcome.outputs, outcome.log_tail)


def write_report(report: Report, folder: Path) -> None:
    """There all at once: nobody sees a half of it. What is there already stays."""
    staging = Path(tempfile.mkdtemp(prefix=".outcome-", dir=folder))
    try:
        (staging / PAGE).write_text(report.page.model_dump_json(), "utf-8")
        (staging / OUTPUTS).write_bytes(archive(report.outputs))
        (staging / LOG).write_bytes(report.log)
        staging.rename(folder / OUTCOME)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def most_bytes(limits: Limits) -> int:
    """The longest that an honest report can be."""
    outputs = limits.output_bytes + (limits.output_files + 1) * ENTRY_BYTES + PADDING_CAP
    return outputs + PAGE_BYTES + TAIL_BYTES + len(NAMES) * ENTRY_BYTES + PADDING_CAP


def parse_report(data: bytes, limits: Limits) -> Report:
    """Raises WireFault for anything that our own code on the machine would not have sent."""
    whole = Harvest(most_bytes(limits), len(NAMES))
    whole.feed(data)
    whole.finish()
    if unknown := sorted(set(whole.files) - set(NAMES)):
        raise WireFault(Fault.ENTRY_NAME, f"{unknown[0]!r} is no part of a report")
    if missing := sorted(set(NAMES) - set(whole.files)):
        raise WireFault(Fault.ARCHIVE_TRUNCATED, f"the report has no {missing[0]}")
    if len(whole.files[LOG]) > min(TAIL_BYTES, limits.log_bytes):
        raise WireFault(Fault.LOG_OVERFLOW, "more of the log than a tail")
    page = _parse_page(whole.files[PAGE])
    outputs = Harvest(limits.output_bytes, limits.output_files)
    outputs.feed(whole.files[OUTPUTS])
    outputs.finish()
    if outputs.files and not isinstance(page, Ended):
        raise WireFault(Fault.OUT_OF_TURN, "outputs of nothing that was run")
    return Report(page, outputs.files, whole.files[LOG])


def _parse_page(raw: bytes) -> Greeted | Missing | Failed | Ended:
    if len(raw) > PAGE_BYTES:
        raise WireFault(Fault.LINE_TOO_LONG, "the page of the report is too long")
    try:
        found = json.loads(raw, object_pairs_hook=_distinct, parse_constant=_no_constant)
        page = _PAGE.validate_python(_with_ending(found))
    except (ValueError, RecursionError, ValidationError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else type(error).__name__
        raise WireFault(Fault.OUT_OF_TURN, f"the page of the report cannot be read ({why})") from None
    if isinstance(page, Ended) and page.ending in _OURS_TO_SAY:
        raise WireFault(Fault.OUT_OF_TURN, f"the machine says {page.ending}, and nobody gave that order")
    if isinstance(page, Ended) and not all(math.isfinite(value) for value in page.measured.model_dump().values()):
        raise WireFault(Fault.OUT_OF_TURN, "a number that is none")
    return page


def _with_ending(found: object) -> object:
    """The one field that is not plain JSON: an ending by its name."""
    if isinstance(found, dict) and isinstance(found.get("ending"), str):
        return found | {"ending": Ending(found["ending"])}
    return found


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key given twice")
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def with_usage(outcome: Outcome, held_s: float, usd: float) -> Outcome:
    """What was held and what it cost, measured here."""
    return replace(outcome, usage=replace(outcome.usage, held_s=held_s, usd=usd))
