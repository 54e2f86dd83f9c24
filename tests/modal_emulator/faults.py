"""What goes wrong, and when: before an RPC has its effect, or after it, when only the answer is lost."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from grpclib import GRPCError, Status

When = Literal["before", "after"]
Kind = Literal["status", "hang", "cut", "slow", "hold"]


class Cut(Exception):
    """The connection ends here, in the middle of the call."""


@dataclass
class Fault:
    """`hang` never answers; `hold` goes on when it is released, whether or not the caller is still there."""

    rpc: str
    when: When = "before"
    kind: Kind = "status"
    status: Status = Status.UNAVAILABLE
    times: int = 1  # below nought: always
    seconds: float = 0.0
    app: str = ""  # only calls that concern this app
    hits: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class Faults:
    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self._count = 0
        self.struck = 0

    def add(self, fault: Fault) -> int:
        self._count += 1
        self._faults[self._count] = fault
        return self._count

    def get(self, number: int) -> Fault:
        return self._faults[number]

    def remove(self, number: int) -> None:
        self._faults.pop(number).released.set()

    def clear(self) -> None:
        self.struck = 0
        for number in list(self._faults):
            self.remove(number)

    async def strike(self, rpc: str, when: When, app: str) -> None:
        for fault in list(self._faults.values()):
            meant = fault.rpc == rpc and fault.when == when and fault.app in ("", app)
            if meant and (fault.times < 0 or fault.hits < fault.times):
                fault.hits += 1
                self.struck += 1
                fault.reached.set()
                await _happen(fault)


async def _happen(fault: Fault) -> None:
    if fault.kind == "status":
        raise GRPCError(fault.status, f"injected {fault.when} {fault.rpc}")
    if fault.kind == "cut":
        raise Cut
    if fault.kind == "slow":
        await asyncio.sleep(fault.seconds)
    elif fault.kind == "hold":
        await fault.released.wait()
    else:
        await fault.released.wait()
        raise Cut
