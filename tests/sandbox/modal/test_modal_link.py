"""Two streams as one, and what a broken one means."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sandbox.backends.modal import link as modal_link
from sandbox.backends.modal.link import SEND_BYTES, ModalLink
from sandbox.errors import Lost, SandboxError, Unavailable
from sandbox.wire.demux import Stream


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modal_link, "PAUSE_S", 0.0)


class Script:
    """Streams that say what they are told to, and then end or break."""

    def __init__(self, said: dict[Stream, list[bytes | SandboxError]], gone: bool = False) -> None:
        self._said = said
        self.gone = gone
        self.written: list[int] = []

    async def write(self, data: bytes | memoryview) -> None:
        if self.gone:
            raise Lost("the command has ended")
        self.written.append(len(data))

    async def read(self, stream: Stream) -> AsyncIterator[bytes]:
        for item in self._said.get(stream, []):
            if isinstance(item, SandboxError):
                raise item
            yield item


async def everything(link: ModalLink) -> dict[Stream, bytes]:
    heard = dict.fromkeys(Stream, b"")
    while pieces := await link.receive():
        for stream, piece in pieces:
            heard[stream] += piece
    return heard


def linked(script: Script, over: bool | SandboxError = False) -> ModalLink:
    async def is_over() -> bool:
        if isinstance(over, SandboxError):
            raise over
        return over

    return ModalLink(script, is_over, patience_s=0.0)


async def test_both_streams_until_both_have_ended() -> None:
    """Nothing is lost or mixed up, and the end comes once."""
    many = [bytes([number % 256]) * 100 for number in range(500)]
    link = linked(Script({Stream.STDOUT: list(many), Stream.STDERR: [b"log"]}))
    assert await everything(link) == {Stream.STDOUT: b"".join(many), Stream.STDERR: b"log"}
    assert await link.receive() == []


async def test_a_command_that_is_gone_is_an_end() -> None:
    """What was said before it is still heard."""
    link = linked(Script({Stream.STDOUT: [b"last words", Lost("no such task")]}))
    assert (await everything(link))[Stream.STDOUT] == b"last words"


async def test_a_break_in_a_sandbox_that_has_ended_is_an_end() -> None:
    link = linked(Script({Stream.STDERR: [b"x", Unavailable("cut")]}), over=True)
    assert (await everything(link))[Stream.STDERR] == b"x"


@pytest.mark.parametrize("answer", [False, Unavailable("no answer")])
async def test_any_other_break_is_the_providers_failure(answer: bool | SandboxError) -> None:
    """Also when nobody can be asked whether the sandbox still runs. Taken in one go with the last bytes, it is told
    right after them, and not taken for the program's own end.
    """
    link = linked(Script({Stream.STDOUT: [b"x", Unavailable("cut")]}), answer)
    await asyncio.sleep(0.05)
    assert [bytes(piece) for _, piece in await link.receive()] == [b"x"]
    with pytest.raises(Unavailable, match="cut"):
        await link.receive()
    assert await link.receive() == []


async def test_large_bundles_go_in_pieces() -> None:
    """The package takes no more than sixteen MiB at once. To the dead nothing is sent, and the receiving side says how
    it ended.
    """
    script = Script({})
    await linked(script).send(bytes(2 * SEND_BYTES + 1))
    assert script.written == [SEND_BYTES, SEND_BYTES, 1]
    await linked(Script({}, gone=True)).send(b"stop\n")


async def test_close_lets_the_package_end_its_calls() -> None:
    """A call that is cancelled half-way may leave an exception to nobody, which is told on a terminal. It ends for who
    reads, though the queue is full.
    """
    ends, cancelled = asyncio.Event(), False

    class Flood(Script):
        async def read(self, stream: Stream) -> AsyncIterator[bytes]:
            nonlocal cancelled
            try:
                while not ends.is_set():
                    yield b"x"
                    await asyncio.sleep(0)
                raise Unavailable("the sandbox was detached")
            except asyncio.CancelledError:
                cancelled = True
                raise

    others = asyncio.all_tasks()
    link = linked(Flood({}))
    (reading,) = asyncio.all_tasks() - others
    await asyncio.sleep(0.05)
    link.close()
    link.close()
    assert await link.receive() == []
    ends.set()
    async with asyncio.timeout(60):
        await asyncio.wait([reading])
    assert not cancelled
    assert reading.exception() is None


async def test_a_stream_goes_on_where_it_broke() -> None:
    """Each that breaks is called again, and nothing is asked of a sandbox that answers."""

    class Breaking(Script):
        async def read(self, stream: Stream) -> AsyncIterator[bytes]:
            said = self._said.get(stream, [])
            while said:
                item = said.pop(0)
                if isinstance(item, SandboxError):
                    raise item
                yield item

    async def is_over() -> bool:
        raise Unavailable("nobody answers")

    said: list[bytes | SandboxError] = [b"one", Unavailable("cut"), Unavailable("still cut"), b"two"]
    link = ModalLink(Breaking({Stream.STDOUT: said}), is_over, 60.0)
    assert (await everything(link))[Stream.STDOUT] == b"onetwo"


async def test_a_write_goes_on_where_it_broke() -> None:
    """The package has what it was given already: it is told to send on, and given nothing twice."""

    class Breaking(Script):
        async def write(self, data: bytes | memoryview) -> None:
            await super().write(data)
            if len(self.written) == 1:
                raise Unavailable("cut")

    script = Breaking({})

    async def is_over() -> bool:
        return False

    await ModalLink(script, is_over, 60.0).send(b"bundle")
    assert script.written == [6, 0]
