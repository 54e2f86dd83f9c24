"""The test's side of an emulator that runs beside it."""

import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Literal

from grpclib import Status

When = Literal["before", "after"]

_ANSWER_S = 200.0
_ROOT = Path(__file__).parents[2]


class ModalEmulator:
    """A Modal of one's own on loopback. Leave with `close`: it takes all its containers along."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.modal_emulator"],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT / "scripts")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._turn = threading.Lock()
        self._where = self._read()

    def environment(self) -> dict[str, str]:
        """What the SDK is told by, in a process whose other settings of Modal are taken away."""
        return {
            "MODAL_SERVER_URL": self._where["url"],
            "MODAL_TOKEN_ID": self._where["token_id"],
            "MODAL_TOKEN_SECRET": self._where["token_secret"],
            "MODAL_CONFIG_PATH": os.devnull,
        }

    def fail(
        self, rpc: str, when: When = "before", status: Status = Status.UNAVAILABLE, times: int = 1, app: str = ""
    ) -> int:
        """It answers with this status, before or after it did what was asked; below nought times: always. With `app`,
        only calls that concern this app are hit.
        """
        return self._fault(rpc, when, "status", times, app, status=status)

    def hang(self, rpc: str, when: When = "before", times: int = 1, app: str = "") -> int:
        """It never answers."""
        return self._fault(rpc, when, "hang", times, app)

    def cut_at(self, rpc: str, when: When = "before", times: int = 1, app: str = "") -> int:
        """The connection ends in the middle of the call, with whatever else goes over it."""
        return self._fault(rpc, when, "cut", times, app)

    def slow(self, rpc: str, seconds: float, when: When = "before", times: int = -1, app: str = "") -> int:
        return self._fault(rpc, when, "slow", times, app, seconds=seconds)

    def hold(self, rpc: str, when: When = "before", times: int = 1, app: str = "") -> int:
        """It waits for `release` and then goes on, whether or not the caller still lives."""
        return self._fault(rpc, when, "hold", times, app)

    def reached(self, fault: int, seconds: float = 60.0) -> bool:
        """Whether the fault struck, or does so within this time."""
        return bool(self._do("reached", fault=fault, seconds=seconds))

    def struck(self) -> int:
        """How often faults struck since the last heal."""
        return int(self._do("struck"))

    def release(self, fault: int) -> None:
        self._do("release", fault=fault)

    def remove(self, fault: int) -> None:
        """It does not strike any more; whom it struck is cut off."""
        self._do("remove", fault=fault)

    def silence(self) -> None:
        """The worker is half dead: commands run on, but neither their output nor their end is told."""
        self._do("silence")

    def cut(self, *which: Literal["control", "router"]) -> None:
        """Nobody listens any more, and who was connected is cut off. Both halves, unless told."""
        self._do("cut", which=which or ("control", "router"))

    def listen(self) -> None:
        """Who was cut off may come back; other faults stay."""
        self._do("listen")

    def heal(self) -> None:
        self._do("heal")

    @property
    def router(self) -> str:
        """Where workers listen."""
        return str(self._where["router"])

    def route_by(self, url: str) -> None:
        """Clients are sent there for the worker, until the test ends: to a proxy before it."""
        self._do("route_by", url=url)

    def sandboxes(self) -> list[dict[str, Any]]:
        """All that were made since the test began, newest first, as an invoice would list them."""
        found: list[dict[str, Any]] = self._do("sandboxes")
        return found

    def running(self) -> list[dict[str, Any]]:
        return [sandbox for sandbox in self.sandboxes() if sandbox["ended_at"] is None]

    def containers(self) -> list[str]:
        """What the Docker engine itself still has of all sandboxes: the emulator's word is not needed."""
        return list(self._do("containers"))

    def calls(self) -> list[str]:
        """RPCs in the order in which they were called."""
        return list(self._do("calls"))

    def look_for(self, *needles: str) -> None:
        """From now on, whatever a client sends is searched for these."""
        self._do("look_for", needles=needles)

    def found(self) -> list[str]:
        """Those that a client did send."""
        return list(self._do("found"))

    def allow_mounts(self) -> None:
        """Root in the sandboxes that are made from now on may mount, until the test ends."""
        self._do("allow_mounts")

    def blemishes(self) -> dict[str, list[str]]:
        """Calls that the emulator has not, and calls at which it broke: both must fail the test."""
        found: dict[str, list[str]] = self._do("blemishes")
        return {kind: calls for kind, calls in found.items() if calls}

    def forget(self) -> None:
        self._do("forget")

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()

    def _fault(self, rpc: str, when: When, kind: str, times: int, app: str, **more: Any) -> int:
        status, seconds = more.get("status", Status.OK), more.get("seconds", 0.0)
        how = {"kind": kind, "status": status.name, "times": times, "seconds": seconds}
        return int(self._do("fail", rpc=rpc, when=when, app=app, **how))

    def _do(self, command: str, **words: object) -> Any:
        with self._turn:
            if self._process.stdin is None:
                raise RuntimeError("the emulator has no stdin")
            self._process.stdin.write(json.dumps({"do": command, **words}) + "\n")
            self._process.stdin.flush()
            said = self._read()
        if "failure" in said:
            raise RuntimeError(f"the emulator could not {command}: {said['failure']}")
        return said["answer"]

    def _read(self) -> dict[str, Any]:
        """One line for each command, so nothing of it waits unseen in a buffer of ours."""
        line = ""
        if self._process.stdout and select.select([self._process.stdout], [], [], _ANSWER_S)[0]:
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the emulator ended, or hangs; its stderr says why")
        said: dict[str, Any] = json.loads(line)
        return said
