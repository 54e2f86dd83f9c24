"""What happens on the other side of the door: a candidate does what its parameters say, and so does its judge.

`value` is a candidate's score, `tasks` are those of single tasks, `do` how its trial goes, `judge` what the judge makes
of its answer, `then` (as JSON) what is different when it is run once more, `says` its whole answer, `traced` that it
leaves nothing but what its judge will write as a trace; `held`, `held do` and `held judge` are the same on the held-out
split. The script holds what goes wrong outside of it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from sandbox import Bill, Bundle, Capabilities, Job, Listener, Outcome, Talk, Unavailable
from sandbox.backends.fake.backend import FakeBackend, FakeWorld, Guest
from sandbox.live import LiveChamber
from sandbox.wire.demux import Stream

# The digest of the input that the held-out split has in place of the usual one.
HELD = "1" * 64


@dataclass
class Script:
    """What goes wrong outside the candidate, and what was seen of it all."""

    world: FakeWorld = field(default_factory=FakeWorld)
    cpu: str = "pretended"
    judge_is_broken: bool = False
    control_fails: bool = False
    guard_cuts: bool = False
    stop_after: float | None = None  # seconds; then chambers are asked to end early
    unsound: tuple[int, ...] = ()  # values that the guard does not let pass
    ran: set[str] = field(default_factory=set)
    noise: Callable[[str], float] | None = None  # what is added to a node's score, again each time
    on_open: Callable[[Job], Awaitable[None]] | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    commands: list[str] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)  # the last step that a candidate got to, by its value

    async def program(self, guest: Guest) -> int:
        command = guest.job.command[0]
        self.commands.append("build" if guest.building else command)
        match command:
            case "true":
                return int(self.control_fails)
            case "sh":  # a look into an image
                return 0
            case "judge":
                return await self.judge(guest)
            case "guard" if self.guard_cuts:
                self.world.cut()
                await asyncio.sleep(60)
            case "guard":
                return int(params_of(guest)["value"] in self.unsound)
        return await self.trial(guest)

    async def trial(self, guest: Guest) -> int:
        params = params_of(guest)
        held = any(item.digest == HELD for item in guest.job.inputs)
        do = params.get("held do" if held else "do", "answer")
        if guest.building:
            return int(do == "build failed")
        if guest.job.command[0] == "trial" and not held:
            if (known := json.dumps(params)) in self.ran:
                params |= json.loads(params.get("then", "{}"))
                do = params.get("do", "answer")
            self.ran.add(known)
        guest.log(f"value {params['value']}\n".encode())
        if do == "answer":
            await asyncio.sleep(params.get("takes", 0.0))
            if size := params.get("traced"):
                guest.out["traces/0.json"] = json.dumps({**params, "padding": "x" * size}).encode()
                return 0
            guest.out["answer.json"] = params.get("says", json.dumps(params)).encode()
            if size := params.get("leaves"):
                guest.out["large"] = ((b"same" if params.get("same") else json.dumps(params).encode()) * size)[:size]
            guest.out |= {f"more/{number}": b"%d" % number * 100 for number in range(params.get("files", 0))}
            return 0
        return await self._misbehave(guest, do)

    async def _misbehave(self, guest: Guest, do: str) -> int:
        match do:
            case "failed":
                return 3
            case "out of memory":
                guest.allocate(2**50)
            case "too slow":
                await asyncio.sleep(60)
            case "wait":
                stop = asyncio.create_task(guest.stopped.wait())
                await asyncio.wait({stop, asyncio.create_task(self.gate.wait())}, return_when=asyncio.FIRST_COMPLETED)
                guest.out["answer.json"] = json.dumps(params_of(guest)).encode()
            case "report":
                await self._report(guest)
            case "tampered":
                guest.link.say(Stream.STDOUT, b"I am PID 1\n")
                await asyncio.sleep(60)
            case "flood":
                guest.log(b"x" * 200_000)
            case "bad name":
                guest.out["../escape"] = b"x"
            case "break off":
                guest.link.break_off()
                await asyncio.sleep(60)
            case "cut":
                self.world.cut()
                await asyncio.sleep(60)
        return 0

    async def _report(self, guest: Guest) -> None:
        """Says its `curve`, one report a step; told to stop it flushes, and is `deaf` or ends.

        At the end of its curve it may hang, or `babble`: go on to report, each time a new step or always the same one.
        """
        params = params_of(guest)
        for step, value in enumerate(json.loads(params["curve"])):
            report = value if isinstance(value, str) else json.dumps({"step": step, "value": value})
            guest.log(f"::report {report}\n".encode())
            self.steps[params["value"]] = step
            for _ in range(300):  # turns of the loop, not time: whoever listens had its chance to answer
                await asyncio.sleep(0)
            if guest.stopped.is_set():
                guest.out["partial.json"] = json.dumps({"step": step}).encode()
                if params.get("deaf"):
                    await asyncio.sleep(60)
                return
        if params.get("hangs"):
            await (asyncio.sleep(60) if params.get("deaf") else guest.stopped.wait())
            return
        if babble := params.get("babble"):
            await self._babble(guest, step, babble == "steps")
            return
        guest.out["answer.json"] = json.dumps(params).encode()

    async def _babble(self, guest: Guest, step: int, steps: bool) -> None:
        while not guest.stopped.is_set():
            step += steps
            guest.log(f'::report {{"step": {step}, "value": 1.0}}\n'.encode())
            await asyncio.sleep(0.01)

    async def judge(self, guest: Guest) -> int:
        outputs = guest.files.get("outputs/answer.json")
        if traced := guest.files.get("outputs/traces/0.json"):
            outputs = guest.out["traces/0.json"] = traced
        answer = json.loads(outputs or guest.files["candidate/params.json"])
        held, tuning = "--heldout" in guest.job.command, "--tune" in guest.job.command
        does = "crash" if self.judge_is_broken else answer.get("held judge" if held else "judge", "score")
        key = "held" if held else "tuned" if tuning else "value"
        score = answer.get(key, answer["value"])
        if self.noise and not tuning:
            score += self.noise(guest.job.env["BLASTDOOR_NODE"])
        match does:
            case "crash":
                return 1
            case "silent":
                return 0
            case "nan":
                guest.out["result.json"] = b'{"score": NaN}'
            case "no metric":
                guest.out["result.json"] = b'{"valid": true}'
            case "no solution":
                guest.out["result.json"] = b'{"valid": false, "score": null}'
            case "break off":
                guest.link.break_off()
                await asyncio.sleep(60)
            case "cut":
                self.world.cut()
                await asyncio.sleep(60)
            case "wait":
                await self.gate.wait()
                guest.out["result.json"] = json.dumps({"score": score}).encode()
            case _:
                tasks = {str(n): float(it) for n, it in enumerate(answer.get("tasks", "").split(","), 1) if it}
                told = {"score": score, "tasks": tasks} if tasks else {"score": score}
                told |= {"notes": answer["notes"]} if "notes" in answer else {}
                guest.out["result.json"] = json.dumps(told).encode()
        return 0


def failing(times: int, command: str = "trial", after: int = 0) -> Script:
    """The provider gives no chamber for this command for some times, `after` so many that it gave."""
    seen = 0

    async def on_open(job: Job) -> None:
        nonlocal seen
        if job.command[0] == command:
            seen += 1
            if after < seen <= after + times:
                raise Unavailable("no chamber")

    return Script(on_open=on_open)


class ScriptedChamber:
    """A fake chamber on the hardware that the script names."""

    def __init__(self, inside: LiveChamber, script: Script) -> None:
        self._inside = inside
        self._cpu = script.cpu
        self._stop_after = script.stop_after

    @property
    def facts(self) -> Mapping[str, str]:
        return {**self._inside.facts, "cpu": self._cpu}

    @property
    def bill(self) -> Bill:
        return self._inside.bill

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        running = asyncio.create_task(self._inside.run(bundle, listener=listener, talk=talk))
        try:
            if self._stop_after is not None:
                await asyncio.wait({running}, timeout=self._stop_after)
                await self.stop()
            return replace(await running, facts=self.facts)
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def stop(self) -> None:
        await self._inside.stop()

    async def kill(self) -> None:
        await self._inside.kill()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inside.__aexit__(kind, error, trace)


class ScriptedBackend:
    """The fake, with the script's word on every chamber that is opened."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._fake = FakeBackend(script.program, script.world)
        self.capabilities: Capabilities = self._fake.capabilities

    async def open(self, job: Job) -> ScriptedChamber:
        if self._script.on_open:
            await self._script.on_open(job)
        return ScriptedChamber(await self._fake.open(job), self._script)

    async def reap(self) -> list[str]:
        return await self._fake.reap()

    async def close(self) -> None:
        await self._fake.close()


def params_of(guest: Guest) -> dict[str, Any]:
    params: dict[str, Any] = json.loads(guest.files["params.json"])
    return params
