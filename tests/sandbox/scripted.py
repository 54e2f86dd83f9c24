"""A chamber whose PID 1 is played by the test itself, word by word."""

import asyncio

from sandbox import Bundle, Ending, Job, Lost, Outcome, Talk, Unavailable
from sandbox.backend import Listener
from sandbox.backends.fake.backend import FakeLink
from sandbox.link import Deadlines
from sandbox.live import Death, LiveChamber
from sandbox.pulse import Pulse
from sandbox.wire.demux import Stream
from tests.sandbox.wire.streams import END, member

HELLO = b"blastdoor 1\nfact cpu pretended\nready\n"
ARCHIVE = b"archive\n" + member(b"out", b"42") + END
QUICK = Deadlines(provision=60, upload=60, collect=60)


class Hiccup(Pulse):
    """A provider that answers, but did not for a while: `silent_s` of it, whoever asks."""

    def __init__(self, silent_s: float = 6.0) -> None:
        super().__init__(self._well, patience_s=0.0)
        self.silent_s = silent_s

    def silence(self, since: float) -> float:
        del since
        return self.silent_s

    async def _well(self) -> None: ...


class ScriptedHold:
    """Holds the streams; remembers whether it was destroyed and let go."""

    name = "scripted"
    usd_per_second = 2.0
    billed_since: float | None = None

    def __init__(self) -> None:
        self.link = FakeLink()
        self.out_of_memory: bool | Lost = False
        self.unreachable = False
        self.half_dead = False
        self.destroyed = 0
        self.released = 0

    def out(self, data: bytes) -> None:
        self.link.say(Stream.STDOUT, data)

    def err(self, data: bytes) -> None:
        self.link.say(Stream.STDERR, data)

    async def take_bundle(self) -> None:
        """Read what is delivered, as PID 1 does."""
        _mode, _build, length = (await self.order()).split()
        await self.link.read(int(length))

    async def order(self) -> str:
        """The next order that PID 1 would read; `go` needs no answer."""
        while (order := await asyncio.wait_for(self.link.read_line(), 20)) == "go":
            pass
        return order

    async def reply(self, payload: bytes) -> None:
        """Answer the next request."""
        header = await self.link.read(12)
        if header.startswith(b"go\n"):
            header = header[3:] + await self.link.read(3)
        await self.link.read(int.from_bytes(header[:4], "big"))
        self.out(len(payload).to_bytes(4, "big") + header[4:] + payload)

    async def cause_of_death(self, timeout: float) -> Death:
        if isinstance(self.out_of_memory, Lost):
            raise self.out_of_memory
        return Death.MEMORY if self.out_of_memory else Death.ITS_OWN_DOING

    async def answers(self) -> None:
        if self.half_dead:
            raise Unavailable("the machine does not answer")

    async def processor_seconds(self) -> float | None:
        return self.link.processor_s

    async def destroy(self) -> None:
        self.destroyed += 1
        if self.unreachable:
            raise Unavailable("the provider does not answer")
        self.link.end()

    def release(self) -> None:
        self.released += 1


async def chamber_of(
    hold: ScriptedHold, job: Job, deadlines: Deadlines = QUICK, pulse: Pulse | None = None
) -> LiveChamber:
    """A chamber that has greeted and waits for its bundle."""
    chamber = LiveChamber(hold, deadlines, pulse=pulse)
    hold.out(HELLO)
    await chamber.greet()
    chamber.serve(job)
    return chamber


async def settled() -> None:
    """Let every task run as far as it gets."""
    for _ in range(50):
        await asyncio.sleep(0)


class Played:
    """A run in the making: the test plays PID 1 while it goes on."""

    def __init__(self, hold: ScriptedHold, chamber: LiveChamber, running: "asyncio.Task[Outcome]") -> None:
        self.hold = hold
        self.chamber = chamber
        self.running = running

    async def outcome(self, within_s: float = 60) -> Outcome:
        return await asyncio.wait_for(self.running, within_s)

    async def ending(self) -> Ending:
        return (await self.outcome()).ending

    async def hands_over(self, archive: bytes = ARCHIVE) -> None:
        """Its outputs, as soon as it is asked for them; that is the end of it."""
        assert await self.hold.order() == "harvest"
        self.hold.out(archive)
        self.hold.link.end()


async def play(
    job: Job,
    deadlines: Deadlines = QUICK,
    talk: Talk | None = None,
    pulse: Pulse | None = None,
    listener: Listener | None = None,
    said: bytes = b"",
) -> Played:
    """Greeted and served; it has taken the bundle, and said so much."""
    hold = ScriptedHold()
    chamber = await chamber_of(hold, job, deadlines, pulse)
    running = asyncio.create_task(chamber.run(Bundle({}), listener=listener, talk=talk))
    await hold.take_bundle()
    hold.out(said)
    return Played(hold, chamber, running)
