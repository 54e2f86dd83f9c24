"""A backend without containers: programs are Python coroutines, everything else is the real thing.

It speaks the real boot protocol through the real session, so limits, endings and harvest behave as they do on an
engine. It isolates nothing: it is for tests, and for trying a search without a machine.
"""

import asyncio
import io
import tarfile
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from sandbox.backend import Capabilities
from sandbox.bundle import closed, member
from sandbox.errors import Lost, Unavailable
from sandbox.job import Enforcer, Job, Limits
from sandbox.link import Deadlines
from sandbox.live import Death, LiveChamber
from sandbox.wire.demux import Stream

_LONG_NAME = b"././@LongLink"
# What is moved or packed at once: the fake shares its event loop with its users.
LARGE, MANY = 1 << 20, 64
HELD_BY_NOBODY = {"cpus", "pids", "open_files", "work_bytes", "work_inodes", "gpu"}


class Died(Exception):
    """A program's end by a signal, or by the loss of its whole chamber."""

    def __init__(self, code: int, *, out_of_memory: bool = False) -> None:
        super().__init__(f"died with {code}")
        self.code = code
        self.out_of_memory = out_of_memory


@dataclass
class Guest:
    """What a program sees of its chamber, and what it may do there."""

    job: Job
    files: Mapping[str, bytes]
    building: bool
    link: "FakeLink"
    out: dict[str, bytes] = field(default_factory=dict)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def log(self, data: bytes) -> None:
        self.link.say(Stream.STDERR, data)

    def allocate(self, size: int) -> None:
        if size > self.job.limits.memory:
            raise Died(137, out_of_memory=True)

    def work(self, seconds: float) -> None:
        """Pretend to have used the processors; before the first time, nobody can tell."""
        self.link.processor_s = (self.link.processor_s or 0.0) + seconds

    async def request(self) -> tuple[bytes, bytes] | None:
        """Relay: the next request as (nonce, payload); None at the end of stdin."""
        header = await self.link.read(12)
        if len(header) < 12:
            return None
        return header[4:], await self.link.read(int.from_bytes(header[:4], "big"))

    def reply(self, nonce: bytes, payload: bytes) -> None:
        self.link.say(Stream.STDOUT, len(payload).to_bytes(4, "big") + nonce + payload)


Program = Callable[[Guest], Awaitable[int]]


@dataclass
class FakeWorld:
    """The provider that several backends share: who holds which chambers, and whether it answers at all."""

    answers: bool = True
    chambers: dict[str, "FakeHold"] = field(default_factory=dict)
    live_owners: set[str] = field(default_factory=set)

    def check(self) -> None:
        if not self.answers:
            raise Unavailable("the fake provider was told not to answer")

    def cut(self) -> None:
        """The provider goes away: every connection breaks, its chambers live on."""
        self.answers = False
        for hold in list(self.chambers.values()):
            hold.link.break_off()


class FakeLink:
    """Both ends of a chamber's streams: `send` and `receive` are ours, `read` and `say` are PID 1's."""

    def __init__(self) -> None:
        self._stdin = asyncio.StreamReader(limit=2**31)
        self._output: asyncio.Queue[tuple[Stream, bytes] | None] = asyncio.Queue(maxsize=1024)
        self._broken: Unavailable | None = None
        self.processor_s: float | None = None

    async def send(self, data: bytes) -> None:
        if self._broken:
            raise self._broken
        self._stdin.feed_data(data[:LARGE])
        for start in range(LARGE, len(data), LARGE):
            await asyncio.sleep(0)
            self._stdin.feed_data(data[start : start + LARGE])

    async def receive(self) -> list[tuple[Stream, memoryview]]:
        piece = None if self._broken else await self._output.get()
        if self._broken:
            raise self._broken
        return [(piece[0], memoryview(piece[1]))] if piece else []

    def break_off(self) -> None:
        self._broken = Unavailable("the fake provider's connection broke")
        self.end()  # wakes the one that waits for more

    async def read(self, count: int) -> bytes:
        parts: list[bytes] = []
        try:
            for start in range(0, count, LARGE):
                if start:
                    await asyncio.sleep(0)
                parts.append(await self._stdin.readexactly(min(LARGE, count - start)))
        except asyncio.IncompleteReadError as short:
            parts.append(short.partial)
        return b"".join(parts) if len(parts) == 1 else await asyncio.to_thread(b"".join, parts)

    async def read_line(self) -> str:
        return (await self._stdin.readline()).decode().rstrip("\n")

    def say(self, stream: Stream, data: bytes) -> None:
        try:
            self._output.put_nowait((stream, data))
        except asyncio.QueueFull:
            raise Died(137) from None

    def end(self) -> None:
        while self._output.full():
            self._output.get_nowait()
        self._output.put_nowait(None)


class FakeHold:
    """One pretended chamber: a task that plays PID 1."""

    usd_per_second = 0.0
    billed_since: float | None = None

    def __init__(self, world: FakeWorld, owner: str, program: Program, name: str = "") -> None:
        self.name = name or new_name(owner)
        self.owner = owner
        self.link = FakeLink()
        self.job: Job | None = None
        self._world = world
        self._program = program
        self._out_of_memory = False
        self._life = asyncio.create_task(self._live())
        world.chambers[self.name] = self

    @property
    def alive(self) -> bool:
        return not self._life.done()

    async def cause_of_death(self, timeout: float) -> Death:
        self._world.check()
        if self.name not in self._world.chambers:
            raise Lost("the fake provider no longer knows the chamber")
        await asyncio.wait({self._life}, timeout=timeout)
        return Death.MEMORY if self._out_of_memory else Death.ITS_OWN_DOING

    async def answers(self) -> None:
        self._world.check()

    async def processor_seconds(self) -> float | None:
        """What its program says: there is no processor of its own to look at."""
        return self.link.processor_s

    async def destroy(self) -> None:
        self._world.check()
        await self.die()

    async def die(self) -> None:
        if self._life.cancel():
            await asyncio.wait({self._life})
        self._world.chambers.pop(self.name, None)

    def release(self) -> None:
        pass

    async def _live(self) -> None:
        try:
            await self._boot()
        except Died as end:
            self._out_of_memory = end.out_of_memory
        finally:
            self.link.end()

    def _word(self, *words: object) -> None:
        self.link.say(Stream.STDOUT, (" ".join(map(str, words)) + "\n").encode())

    async def _boot(self) -> None:
        self._word("blastdoor 1\nfact cpu pretended\nfact cores 0\nready")
        lengths = (await self.link.read_line()).split()
        if not lengths or self.job is None:
            return
        mode, _, length = lengths
        packed = await self.link.read(int(length))
        files = _unpacked(packed) if len(packed) < LARGE else await asyncio.to_thread(_unpacked, packed)
        self._word("unpacked 0")
        await self.link.read_line()
        job = self.job
        if job.build:
            code = await self._step(Guest(job, files, True, self.link))
            self._word("built", code, 0, 0)
            if code:
                await self._obey({})
                return
        guest = Guest(job, files, False, self.link)
        if mode == "relay":
            await self._program(guest)
        else:
            await self._batch(guest)

    async def _step(self, guest: Guest) -> int:
        try:
            return await self._program(guest)
        except Died as end:
            self._out_of_memory |= end.out_of_memory
            return end.code

    async def _batch(self, guest: Guest) -> None:
        running = asyncio.create_task(self._step(guest))
        running.add_done_callback(self._announce)
        try:
            await self._obey(guest.out, guest)
        finally:
            running.cancel()

    def _announce(self, ran: "asyncio.Task[int]") -> None:
        if not ran.cancelled():
            self._word("done", ran.result(), 0, 0)

    async def _obey(self, out: dict[str, bytes], guest: Guest | None = None) -> None:
        while order := await self.link.read_line():
            if order == "stop" and guest:
                guest.stopped.set()
            elif order == "harvest":
                large = len(out) > MANY or sum(map(len, out.values())) > LARGE
                self.link.say(Stream.STDOUT, await asyncio.to_thread(_archive, out) if large else _archive(out))
                return


def new_name(owner: str) -> str:
    return f"fake-{owner}-{uuid.uuid4().hex[:8]}"


@dataclass
class FakeBackend:
    """`FakeBackend(program)`; pass a world to let several see the same provider."""

    program: Program
    world: FakeWorld = field(default_factory=FakeWorld)
    deadlines: Deadlines = field(default_factory=Deadlines)
    owner: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            boundary="fake: no boundary at all",
            relay=True,
            live_log=True,
            stop=True,
            enforced=dict.fromkeys(set(Limits.model_fields) - HELD_BY_NOBODY, Enforcer.CONTROLLER),
        )
    )

    def __post_init__(self) -> None:
        self.world.live_owners.add(self.owner)

    async def open(self, job: Job) -> LiveChamber:
        self.world.check()
        self.capabilities.admit(job)
        hold = FakeHold(self.world, self.owner, self.program)
        hold.job = job
        chamber = LiveChamber(hold, self.deadlines)
        try:
            await chamber.greet()
        except BaseException:
            await chamber.kill()
            raise
        chamber.serve(job)
        return chamber

    async def answers(self) -> None:
        self.world.check()

    async def reap(self) -> list[str]:
        self.world.check()
        dead = [hold for hold in self.world.chambers.values() if hold.owner not in self.world.live_owners]
        for hold in dead:
            await hold.die()
        return [hold.name for hold in dead]

    async def close(self) -> None:
        self.world.live_owners.discard(self.owner)
        for hold in [hold for hold in self.world.chambers.values() if hold.owner == self.owner]:
            await hold.die()


def _unpacked(packed: bytes) -> dict[str, bytes]:
    """The files under src/. Our own archives, so the plain fields of a header are enough where no name is long."""
    if _LONG_NAME in packed:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            members = [(item.name, archive.extractfile(item)) for item in archive if item.name.startswith("src/")]
            return {name.removeprefix("src/"): content.read() for name, content in members if content}
    files: dict[str, bytes] = {}
    place = 0
    while header := packed[place : place + tarfile.BLOCKSIZE].rstrip(b"\0"):
        name, size = header[:100].rstrip(b"\0").decode(), int(header[124:135], 8)
        place += tarfile.BLOCKSIZE
        if name.startswith("src/") and header[156:157] == tarfile.REGTYPE:
            files[name.removeprefix("src/")] = packed[place : place + size]
        place += size + -size % tarfile.BLOCKSIZE
    return files


def _archive(out: Mapping[str, bytes]) -> bytes:
    """What is said of the outputs: the word, and what tar would make of them."""
    return b"archive\n" + closed([block for name, data in out.items() for block in member(f"./{name}", data)])
