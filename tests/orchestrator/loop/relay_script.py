"""Judge and candidate on the fake backend where the judge calls: both do as the candidate's parameters say.

`value` is what the candidate answers, `do` how it behaves, `judge` how the judge does; `null` is how long the candidate
takes to do nothing.
"""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.judge.guest.blastdoor_values import decode, encode
from sandbox.backends.fake.backend import Died, Guest
from sandbox.wire.demux import Stream
from tests.orchestrator.loop import scripted
from tests.orchestrator.loop.script import Script, params_of
from tests.orchestrator.loop.scripted import write_task

# Longer than a busy machine stands still; a few tests wait for it.
WALL_S = 6.0
RELAY = f'limits = {{wall = "{WALL_S:g}s", grace = "1s"}}\nmode = "relay"\n'
LARGE = bytes(range(256)) * 8192
STRICT = '[certify]\nrule = "strict"\n'
TIMING = '[[metrics]]\nname = "score"\n[[metrics]]\nname = "seconds"\ngoal = "lower"\ntiming = true\n' + STRICT


def write_relay_task(folder: Path, *more: str) -> Path:
    task = write_task(folder, *more, limits=f'[limits]\nwall = "{WALL_S:g}s"\ngrace = "1s"\n')
    path = task / "blastdoor.toml"
    path.write_text(path.read_text().replace(f'limits = {{wall = "{scripted.WALL_S}s", grace = "1s"}}\n', RELAY, 1))
    return task


@dataclass
class RelayScript(Script):
    """`seconds` is what the judge says that it measured, `times` the same by the candidate's value, `at_most` that it
    may have been less; `begun` what it was told, `seeds` what it was given, `measured` what it was told of the channel
    when it asked again.
    """

    seconds: float = 1.0
    times: dict[int, float] = field(default_factory=dict)
    at_most: bool = False
    measured: list[dict[str, float]] = field(default_factory=list)
    begun: list[dict[str, Any]] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    rehearsed: list[bytes] = field(default_factory=list)
    streamed: list[Any] = field(default_factory=list)

    async def program(self, guest: Guest) -> int:
        command = guest.job.command[0]
        if command == "judge":
            self.commands.append(command)
            return await self._calls(guest)
        if command in ("trial", "tune") and not guest.building:
            self.commands.append(command)
            return await self._serves(guest)
        return await super().program(guest)

    async def _serves(self, guest: Guest) -> int:
        params = params_of(guest)
        do, value = params.get("do", "answer"), params["value"]
        guest.log(f"value {value}\n".encode())
        acts: dict[str, Callable[[Guest], Awaitable[None]]] = {
            "die": _die, "out of memory": _swell, "too slow": _sleep, "break off": self._break, "cut": self.cut,
            "wait": self._wait, "early": _early,
        }  # fmt: skip
        while request := await guest.request():
            nonce, payload = request
            self.requests.append(payload)
            kind = payload[:1]
            if kind == b"L" and do in ("does not load", "loads nothing"):
                guest.reply(nonce, b"E" + encode(["raised", "no"]) if do == "does not load" else b"L" + encode(7))
            elif kind == b"L":
                await (acts[do.removeprefix("load ")](guest) if do.startswith("load ") else asyncio.sleep(0))
                guest.reply(nonce, b"L" + encode(["solve"]))
            elif kind == b"N":
                await asyncio.sleep(params.get("null", 0.0))
                guest.reply(nonce, b"Nx" if do == "says much" else b"N")
            else:
                if do.endswith(" when large") and len(payload) > 1 << 20:
                    await acts[do.removesuffix(" when large")](guest)
                await (acts[do](guest) if do in acts else asyncio.sleep(params.get("takes", 0.0)))
                guest.reply(nonce, b"V" + encode(value))
                if do == "twice":
                    guest.reply(nonce, b"V" + encode(value))
                if do == "die after":
                    raise Died(1)
        return 0

    async def _break(self, guest: Guest) -> None:
        guest.link.break_off()
        await asyncio.sleep(60)

    async def cut(self, _: Guest) -> None:
        self.world.cut()
        await asyncio.sleep(60)

    async def _wait(self, _: Guest) -> None:
        await self.gate.wait()

    async def _calls(self, guest: Guest) -> int:
        self.seeds.append(guest.job.env["BLASTDOOR_SEED"])
        nonce, payload = await _asked(guest)
        while payload[:1] == b"N":
            guest.reply(nonce, b"N")
            nonce, payload = await _asked(guest)
        self.begun.append(decode(payload[1:]))
        guest.reply(nonce, b"C" + encode(["solve", 1]))
        nonce, payload = await _asked(guest)
        self.elapsed.append(struct.unpack_from("<d", payload, 1)[0])
        value = decode(payload[10:])
        does = "crash" if self.judge_is_broken else _judges(value)
        if does == "calls again":
            await asyncio.sleep(0.2)
            guest.reply(nonce, b"C" + encode(["solve", 2]))
            nonce, payload = await _asked(guest)
        if does == "measures":
            guest.reply(nonce, b"M")
            nonce, payload = await _asked(guest)
            while payload == b"N":
                guest.reply(nonce, b"N")
                nonce, payload = await _asked(guest)
            self.measured.append(decode(payload[9:]))
        if does.startswith("streams"):
            await self._streams(guest, nonce, does)
            nonce, payload = await _asked(guest)
            self.streamed.append(decode(payload[10:]))
        if does in ("rehearses", "rehearses slowly", "rehearses badly"):
            guest.reply(nonce, b"P" + struct.pack("<I", 3) + b"C" + encode(["solve", 1]))
            nonce, payload = await _asked(guest)
            self.rehearsed.append(payload)
            await asyncio.sleep(0.3 if does == "rehearses slowly" else 0.0)
            guest.reply(nonce, b"?" if does == "rehearses badly" else b"Qabc")
            nonce, payload = await _asked(guest)
            self.rehearsed.append(payload)
        await self._finish(guest, nonce, does, value)
        return 0

    async def _streams(self, guest: Guest, nonce: bytes, does: str) -> None:
        """A large request that may be handed on while it comes."""
        request = b"SC" + encode(["solve", LARGE])
        frame = len(request).to_bytes(4, "big") + nonce + request
        half = len(frame) // 2
        guest.link.say(Stream.STDOUT, frame[:half])
        if does == "streams half":
            raise Died(1)
        await self.halfway(guest)
        guest.link.say(Stream.STDOUT, frame[half:])

    async def halfway(self, guest: Guest) -> None:
        """Something may happen while a request is handed on."""

    async def _finish(self, guest: Guest, nonce: bytes, does: str, value: int) -> None:
        tuning = "--tune" in guest.job.command
        seconds = self.times.get(value, self.seconds)
        result: dict[str, Any] = {"score": value, "metrics": {"seconds": seconds, "tuned": float(tuning)}}
        match does:
            case "crash":
                raise Died(1)
            case "think":
                await asyncio.sleep(60)
            case "babble":
                guest.reply(nonce, b"?")
            case "no files":
                guest.reply(nonce, b"F" + encode([1, 2]))
            case "odd name":
                guest.reply(nonce, b"F" + encode({"../x": b""}))
            case "too much":
                guest.reply(nonce, b"F" + encode({f"traces/{n}": b"" for n in range(2000)}))
            case "no metric":
                guest.reply(nonce, b"F" + encode({"result.json": b'{"score": 1}'}))
            case "no solution":
                result = {"valid": False, "score": None, "notes": "call 3: not\x1b[31m sorted"}
                guest.reply(nonce, b"F" + encode({"result.json": json.dumps(result).encode()}))
            case "cut":
                await self.cut(guest)
            case "wait":
                await self.gate.wait()
                guest.reply(nonce, b"F" + encode({"result.json": json.dumps(result).encode()}))
            case _:
                files = {"result.json": json.dumps(result).encode(), "traces/task_1.json": b"{}"}
                files |= {"at-most": b""} if self.at_most else {}
                guest.reply(nonce, b"F" + encode(files))
        await asyncio.sleep(60)


# The judge is told what to do by the answer: numbers from 100 on.
JUDGE_DOES = (
    "crash", "think", "babble", "no files", "odd name", "too much", "no metric", "no solution", "cut", "wait",
    "calls again", "measures", "rehearses", "rehearses slowly", "rehearses badly", "streams", "streams half",
)  # fmt: skip


def judge(does: str) -> int:
    """The answer that makes the judge do this."""
    return 100 + JUDGE_DOES.index(does)


def _judges(value: int) -> str:
    return JUDGE_DOES[value - 100] if 100 <= value < 100 + len(JUDGE_DOES) else "score"


async def _asked(guest: Guest) -> tuple[bytes, bytes]:
    request = await guest.request()
    if request is None:
        raise Died(0)
    return request


async def _die(_: Guest) -> None:
    raise Died(1)


async def _swell(guest: Guest) -> None:
    guest.allocate(2**50)


async def _sleep(_: Guest) -> None:
    await asyncio.sleep(60)


async def _early(guest: Guest) -> None:
    guest.reply(bytes(8), b"V" + encode(1))
