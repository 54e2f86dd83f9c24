"""A task whose programs really run, on a backend that pretends: chambers are folders and processes of this machine.

Nothing is isolated, so only programs that do no harm may be given to it; the real thing is for tests with an engine.
"""

import asyncio
import atexit
import functools
import json
import os
import tempfile
import venv
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.loop.jobs import Image
from orchestrator.task import ImageSpec
from orchestrator.wiring.site import Site
from sandbox import Input, Limits, Mode
from sandbox.backends.fake.backend import FakeBackend, FakeWorld, Guest
from sandbox.wire.demux import Stream

TASK = """name = "guess"
statement = "Guess three numbers."
editable = ["solve.py", "notes.txt"]

[trial]
command = ["python3", "solve.py"]
{trial}

[limits]
wall = "20s"
grace = "1s"

[judge]
command = ["python3", "judge.py"]
limits = {{wall = "20s", grace = "1s"}}
{judge}

{more}
"""
# Honest, and no more than that: 1 is right, the others are near.
SOLVE = """import json, os
values = [1.0, 2.0, 3.0]
with open(os.path.join(os.environ["BLASTDOOR_OUT"], "answers.json"), "w") as file:
    json.dump({"values": values}, file)
"""
BETTER = SOLVE.replace("[1.0, 2.0, 3.0]", "[1.0, 2.0, 3.4]")
WORSE = SOLVE.replace("[1.0, 2.0, 3.0]", "[9.0, 9.0, 9.0]")
GOLD = {"values": [1.0, 2.5, 3.5]}
# Sound: bounded, typed, finite. The best score is 0.
JUDGE = """import json
from pathlib import Path
from blastdoor_judge import BadOutput, judging, load_json, number, publish

with judging():
    right = json.loads(Path("gold/answers.json").read_text())["values"]
    found = load_json("answers.json", max_bytes=10_000)
    values = found.get("values") if isinstance(found, dict) else None
    if not isinstance(values, list) or len(values) != len(right):
        raise BadOutput("three numbers are wanted")
    publish(-sum(abs(number(value) - wanted) for value, wanted in zip(values, right)))
"""
METRIC = '[[metrics]]\nname = "score"\ngoal = "higher"\nceiling = -0.01\n'


@functools.cache
def _path() -> str:
    """This Python first, without a package: what is called python3 elsewhere may be a script that looks for one, or
    load something at each start, and takes as long again.
    """
    made = tempfile.TemporaryDirectory(prefix="python-")
    atexit.register(made.cleanup)
    venv.create(made.name, symlinks=True)
    return f"{made.name}/bin:{os.environ['PATH']}"


def write_task(
    folder: Path, *more: str, trial: str = "", judge: str = "", files: Mapping[str, str] | None = None
) -> Path:
    """The task, with other files where they are given."""
    written = {
        "blastdoor.toml": TASK.format(trial=trial, judge=judge, more="\n".join(more or (METRIC,))),
        "workspace/solve.py": SOLVE,
        "workspace/notes.txt": "nothing\n",
        "judge/judge.py": JUDGE,
        "judge/gold/answers.json": json.dumps(GOLD),
        **(files or {}),
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def whole(text: str, path: str = "solve.py") -> str:
    """A change that replaces a file."""
    return f"{path}\n````\n{text}````\n"


@dataclass
class Stage:
    """`leaks` puts files of the judge where candidates find them; `blind` has no tools to search with; `instead` has
    words of commands that are replaced.

    `judge` stands in for the judge's program, where a process for each of many runs would take too long.
    """

    world: FakeWorld = field(default_factory=FakeWorld)
    judge: Callable[[Mapping[str, bytes]], object] | None = None
    leaks: bool = False
    blind: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)
    baking: Callable[[ImageSpec], Image] = lambda _: Image("blastdoor-trial:latest", "sha256:" + "1" * 64)
    usd_per_second: float = 0.0
    jobs: list[tuple[str, ...]] = field(default_factory=list)
    _leaked: dict[str, bytes] = field(default_factory=dict)

    @asynccontextmanager
    async def site(self) -> AsyncIterator[Site]:
        self.world.check()
        backend = FakeBackend(self._program, self.world)

        async def bake(spec: ImageSpec) -> Image:
            return self.baking(spec)

        def add_input(name: str, _: Path) -> Input:
            return Input(name=name, digest="0" * 64)

        def price(_: Limits) -> float:
            return self.usd_per_second

        try:
            yield Site("fake", backend, bake, add_input, price, lambda _: 2)
        finally:
            await backend.close()
        assert not self.world.chambers, "a chamber is left"

    async def _program(self, guest: Guest) -> int:
        self.jobs.append(guest.job.command)
        if self.judge and guest.job.command == ("python3", "judge.py"):
            return _judged(self.judge, guest)
        with tempfile.TemporaryDirectory(prefix="stage-") as folder:
            return await self._run(guest, Path(folder))

    async def _run(self, guest: Guest, root: Path) -> int:
        for name in ("src", "out", "tmp"):
            (root / name).mkdir()
        for name, data in guest.files.items():
            _put(root / "src" / name, data)
        if "judge/judge.py" in guest.files and self.leaks:
            self._leaked |= {f"leaked/{name}": data for name, data in guest.files.items()}
        for name, data in self._leaked.items():
            _put(root / "src" / name, data)
        words = [_confined(self.instead.get(word, word), root) for word in guest.job.command]
        env = {name: value.replace("/work/", f"{root}/", 1) for name, value in guest.job.env.items()}
        if self.blind:
            words = [word.replace("find", "not-here").replace("grep", "not-here") for word in words]
        relays = guest.job.mode is Mode.RELAY
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=root / "src" / guest.job.workdir,
            env={"PATH": _path(), "HOME": str(root / "tmp"), "BLASTDOOR_OUT": str(root / "out"), **env},
            stdin=asyncio.subprocess.PIPE if relays else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if relays else asyncio.subprocess.STDOUT,
        )
        try:
            if relays:
                return await _carried(guest, process)
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        guest.log(said)
        files = [path for path in sorted((root / "out").rglob("*")) if path.is_file()]
        guest.out.update({path.relative_to(root / "out").as_posix(): path.read_bytes() for path in files})
        return process.returncode or 0


async def _carried(guest: Guest, process: asyncio.subprocess.Process) -> int:
    """Frames go in, and whatever the program writes comes out, as it would from a container."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    pumps = [
        asyncio.create_task(_pumped(process.stdout, Stream.STDOUT, guest)),
        asyncio.create_task(_pumped(process.stderr, Stream.STDERR, guest)),
        asyncio.create_task(_fed(guest, process.stdin)),
    ]
    try:
        await asyncio.gather(*pumps[:2])
        return await process.wait()
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pumped(source: asyncio.StreamReader, stream: Stream, guest: Guest) -> None:
    while data := await source.read(65_536):
        guest.link.say(stream, data)


async def _fed(guest: Guest, target: asyncio.StreamWriter) -> None:
    while request := await guest.request():
        nonce, payload = request
        target.write(len(payload).to_bytes(4, "big") + nonce + payload)


def _judged(judge: Callable[[Mapping[str, bytes]], object], guest: Guest) -> int:
    prefix = "outputs/"
    given = {name.removeprefix(prefix): data for name, data in guest.files.items() if name.startswith(prefix)}
    try:
        guest.out["result.json"] = json.dumps(judge(given)).encode()
    except (ArithmeticError, ValueError, KeyError, TypeError, RecursionError) as error:
        guest.log(f"Traceback\n{type(error).__name__}: {error}\n".encode())
        return 1
    return 0


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _confined(word: str, root: Path) -> str:
    """A look around stays inside the folder, and learns nothing of this machine."""
    word = word.replace("find / ", f"find {root} ").replace("/proc/[0-9]*", "/proc/self")
    return word.replace("/sys/fs/cgroup", f"{root}/cgroup")
