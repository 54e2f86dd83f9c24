"""One rented machine that is up: made ready, asked for facts, given one errand at a time."""

import asyncio
import shlex
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from sandbox.backends.skypilot.places import Kind
from sandbox.backends.skypilot.provisioner import Landed, Provisioner
from sandbox.box.errand import OUTCOME, Doing, Errand
from sandbox.box.parcel import FURNISH, parcel
from sandbox.box.report import NAMES, Failed, Greeted, Missing, Report, most_bytes, parse_report
from sandbox.bundle import Bundle
from sandbox.errors import Lost, Unavailable
from sandbox.job import Job, Limits
from sandbox.link import Deadlines
from sandbox.scratch import scratch
from sandbox.wire.faults import WireFault
from sandbox.wire.log import printable

ROOT = "~/.blastdoor"
_ROOT = '"$HOME/.blastdoor"'  # as a shell on the machine reads it
_LOCK, _BEGUN = "running", "begun"
WORDS_BYTES = 4096
LOOK_S = 60.0
NOT_YET = 75
OVER = 76
# A chamber's own phases there: ready, unpacked, collected, ended.
_BOX = Deadlines()
BOX_S = _BOX.provision + _BOX.around + 30.0
TRIES = 3
TRY_PAUSE_S = 2.0

Ship = Callable[["Machine", Missing], Awaitable[None]]


class Machine:
    """`venv` is where our package lies on it; the digest of the code is part of the name."""

    def __init__(self, provisioner: Provisioner, name: str, landed: Landed, kind: Kind, deadlines: Deadlines) -> None:
        self._provisioner = provisioner
        self._kind = kind
        self._deadlines = deadlines
        self._python = f"{_ROOT}/venv-{parcel().digest}/bin/python"
        self._used = False
        self._facts: dict[str, Mapping[str, str]] = {}
        self.submitted = time.time()  # since then its autodown counts
        self.name = name
        self.landed = landed

    async def furnish(self, ends: float) -> None:
        """Root, engine, our package, timer. Raises Unavailable with the machine's own line when one is missing."""
        digest = parcel().digest
        await self._call(f"mkdir -p {_ROOT}/parcels {_ROOT}/trials {_ROOT}/images {_ROOT}/inputs", LOOK_S)
        with scratch("parcel") as folder:
            parcel().write(folder)
            await self.send(folder, f"parcels/{digest}")
        kind = "vm" if self._kind is Kind.VM else "node"
        line = f"sh {_ROOT}/parcels/{digest}/{FURNISH} {digest} {kind} {int(ends)} 2>&1"
        code, words = await self._provisioner.call(self.name, line, WORDS_BYTES, self._deadlines.provision)
        if code or not words.endswith(b"ready\n"):
            raise Unavailable(f"the machine could not be made ready: {_last_line(words)}")

    async def send(self, folder: Path, below: str) -> None:
        """A folder's content, to a folder below our root there."""
        await self._provisioner.send(self.name, folder, f"{ROOT}/{below}", self._deadlines.upload)

    async def greet(self, job: Job, runtime: str, ship: Ship) -> Mapping[str, str]:
        """What a chamber of this job says of itself on this machine, before any hostile byte is there.

        What the machine lacks is shipped first. Asked once for each job: what was said before other trials came is
        worth more than what is said after them. Raises what its engine or our own policy there says; of a machine that
        had a bundle before, Unavailable at most.
        """
        errand = Errand(doing=Doing.GREET, job=job, runtime=runtime, seconds=BOX_S + self._deadlines.upload)
        key = errand.model_dump_json()
        if key not in self._facts:
            self._facts[key] = await self._greeted(errand, ship)
        return self._facts[key]

    async def _greeted(self, errand: Errand, ship: Ship) -> Mapping[str, str]:
        limits = errand.job.limits
        for _ in range(TRIES):
            trial = await self._ask(errand, None)
            said = f"{_folder(trial)}/said"
            line = f"{self._python} -m sandbox.box {_folder(trial)} >{said} 2>&1 || {{ cat {said}; exit 1; }}; "
            line += _taken(trial)
            code, data = await self._provisioner.call(self.name, line, most_bytes(limits), errand.seconds + LOOK_S)
            page = _greeting(code, data, limits, trusted=not self._used)
            if isinstance(page, Greeted):
                return page.facts
            await ship(self, page)
        raise Unavailable("the machine still lacks what was sent to it")

    async def deliver(self, job: Job, runtime: str, seconds: float, bundle: Bundle) -> str:
        """The trial's folder there; nothing is run yet."""
        self._used = True
        return await self._ask(Errand(doing=Doing.RUN, job=job, runtime=runtime, seconds=seconds), bundle)

    async def start(self, trial: str) -> None:
        """It holds a lock while it runs, so that we can ask over our own bounded connection whether it is over.

        SkyPilot's server would keep in memory whatever a machine answers. Where a lock cannot be had it never counts
        as over. Asked again, because nobody knows whether the first order arrived, it is run once all the same.
        """
        lock, begun = f"{_folder(trial)}/{_LOCK}", f"{_folder(trial)}/{_BEGUN}"
        once = f"mkdir {begun} || {{ [ -d {begun} ] && exit 0; }}"
        locked = f"exec 9>{lock}.new && flock -n 9 && mv {lock}.new {lock}"
        self.submitted = time.time()
        line = f"{once}; {locked}; exec {self._python} -m sandbox.box {_folder(trial)}"
        await self._provisioner.submit(self.name, line)

    async def collect(self, trial: str, limits: Limits, until: float) -> Report:
        """Wait for the outcome and take it. Raises WireFault for bytes that are no report of ours."""
        heard = time.monotonic()
        while (left := until - time.monotonic()) > 0:
            wait, asked = min(LOOK_S, left), time.monotonic()
            line = f"{_waiting(trial, wait)}; {_taken(trial)}"
            try:
                code, data = await self._provisioner.call(
                    self.name, line, most_bytes(limits) + 1, wait + self._deadlines.collect
                )
                if code == 0 or len(data) > most_bytes(limits):
                    return await asyncio.to_thread(parse_report, data, limits)
                problem = "the connection broke"
            except Unavailable as error:
                code, problem = -1, str(error)
            if code == OVER:
                raise Lost(f"the trial on {self.name} ended without an outcome: somebody or something killed it")
            if code != NOT_YET:
                # It keeps the outcome, and networks come back.
                if time.monotonic() - heard >= self._deadlines.silence:
                    raise Unavailable(f"the outcome could not be brought back: {problem}")
                await asyncio.sleep(TRY_PAUSE_S)
                continue
            heard = time.monotonic()
            if asked + wait > heard:
                await asyncio.sleep(TRY_PAUSE_S)  # it was told to wait, and did not
        raise Unavailable(f"{self.name} did not hand over an outcome in time")

    async def wipe(self) -> None:
        """What trials left on disk: the next one's candidate, should it break out, finds nothing of them."""
        await self._call(f"rm -rf {_ROOT}/trials && mkdir {_ROOT}/trials", LOOK_S)

    async def _ask(self, errand: Errand, bundle: Bundle | None) -> str:
        trial = uuid.uuid4().hex
        with scratch("errand") as folder:
            await written(errand.write, folder, bundle)
            await self.send(folder, f"trials/{trial}")
        return trial

    async def _call(self, line: str, timeout: float) -> None:
        code, words = await self._provisioner.call(self.name, f"{line} 2>&1", WORDS_BYTES, timeout)
        if code:
            raise Unavailable(f"the machine failed: {_last_line(words)}")


async def written(write: Callable[..., None], *words: object) -> None:
    """In a thread, to its end even when we are cancelled: the folder is removed after that, and would not be empty."""
    writing = asyncio.create_task(asyncio.to_thread(write, *words))
    try:
        await asyncio.shield(writing)
    finally:
        await asyncio.wait([writing])


def _folder(trial: str) -> str:
    return f"{_ROOT}/trials/{shlex.quote(trial)}"


def _waiting(trial: str, seconds: float) -> str:
    """Until there is an outcome, or can be none any more. What has ended has written its outcome before."""
    outcome, lock = f"{_folder(trial)}/{OUTCOME}", f"{_folder(trial)}/{_LOCK}"
    over = f"[ $((n % 10)) = 0 ] && [ -e {lock} ] && flock -n {lock} true && code={OVER}"
    return (
        f"code={NOT_YET}; n=0; while [ ! -d {outcome} ] && [ $code = {NOT_YET} ] && [ $n -lt {int(seconds * 5) + 1} ]; "
        f"do sleep 0.2; n=$((n+1)); {over}; done 2>/dev/null; [ -d {outcome} ] || exit $code"
    )


def _taken(trial: str) -> str:
    return f"exec tar -C {_folder(trial)}/{OUTCOME} --format=gnu -cf - {' '.join(NAMES)} 2>/dev/null"


def _last_line(words: bytes) -> str:
    lines = [line for line in words.splitlines() if line.strip()]
    return printable((lines or [b"it said nothing"])[-1])[:300]


def _greeting(code: int, data: bytes, limits: Limits, *, trusted: bool) -> Greeted | Missing:
    """Nothing of this trial has been there yet, so whatever is wrong is the machine's fault, or an earlier trial's."""
    try:
        page = parse_report(data, limits).page
    except WireFault as fault:
        words = _last_line(data[-WORDS_BYTES:]) if code else str(fault)
        raise Unavailable(f"the machine did not answer a greeting (exit code {code}): {words}") from None
    if isinstance(page, Failed):
        raise page.as_error(trusted=trusted)
    if not isinstance(page, Greeted | Missing):
        raise Unavailable(f"the machine answered a greeting with {page.kind}")
    return page
