"""SkyPilot as a subject. Who connects is given: to a real place, or to a provisioner of the tests' own."""

from collections.abc import Awaitable, Callable, Mapping

from sandbox.backend import Backend
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.end import found
from sandbox.backends.skypilot.names import mark_of
from sandbox.conformance import programs
from sandbox.conformance.check import SMALL

_NO_LIVE_LOG = "what a program says comes back with its outcome, so nobody hears it while it runs"
_NO_STOP = "there is no way to ask a program to stop; its own limits or a kill end it"
_NO_RELAY = "a rented machine carries no frames; jobs that are talked to stay on one's own engine"


class SkyPilotOrphan:
    def __init__(self, backend: SkyPilotBackend) -> None:
        self._backend = backend

    async def alive(self) -> bool:
        return await self.exists()

    async def exists(self) -> bool:
        names = await found(self._backend.provisioner)
        return any(mark.owner == self._backend.owner for mark in map(mark_of, names) if mark)


class SkyPilotSubject:
    """An orphan's owner is struck off the list of the living without a chance to clean up, as by SIGKILL."""

    lacks: Mapping[str, str] = {
        "live_log_and_reports": _NO_LIVE_LOG,
        "stop_with_partial_outputs": _NO_STOP,
        "stop_ignored": _NO_STOP,
        "frame_round_trips": _NO_RELAY,
        "frame_out_of_turn": _NO_RELAY,
        "neighbours_see_nothing": f"{_NO_LIVE_LOG}; and chambers at once are on machines of their own",
        "provider_gone": _NO_LIVE_LOG,
        "live_owner_untouched": _NO_LIVE_LOG,
        "orphan_ends_itself": "a machine lives until it is reaped or ends itself, minutes later",
    }

    def __init__(self, infra: str, connect: Callable[[], Awaitable[SkyPilotBackend]]) -> None:
        self.name = f"skypilot/{infra}"
        self._connect = connect
        self._left: list[SkyPilotBackend] = []

    async def connect(self) -> SkyPilotBackend:
        return await self._connect()

    async def connect_cuttable(self) -> tuple[Backend, Callable[[], Awaitable[None]]]:
        raise NotImplementedError(f"no row that this subject has cuts it off: {self.lacks['provider_gone']}")

    async def orphan(self) -> SkyPilotOrphan:
        backend = await self._connect()
        self._left.append(backend)
        await backend.open(programs.SLEEP.job(limits=SMALL))
        backend.tenancy.release()
        return SkyPilotOrphan(backend)

    async def close(self) -> None:
        while self._left:
            await self._left.pop().close()
