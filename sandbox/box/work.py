"""One errand on a rented machine, from its folder to its outcome. Bounded by a clock of its own.

The chamber is the same as on one's own engine: the same posture, compared in the same way. Whatever happens, an outcome
is written; told to end (SIGTERM), the chamber is ended first.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tarfile
import tempfile
from pathlib import Path

from sandbox.backends.docker.backend import DockerBackend
from sandbox.box.errand import Doing, Errand, read_bundle, read_errand
from sandbox.box.report import Failed, Greeted, Missing, Report, of_outcome, write_report
from sandbox.config import DockerConfig
from sandbox.errors import Lost, Refused, SandboxError, Unavailable
from sandbox.inputs import InputStore
from sandbox.job import Input
from sandbox.trees import remove_tree

ENGINE = "engine"  # the address of the machine's engine, where DOCKER_HOST may not reach a job
OWNERS = "owners"  # whose chambers the absolute timer ends


class Root:
    """What lies on the machine for all errands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def config(self, runtime: str) -> DockerConfig:
        """Without a limit on reads: a rented machine serves one chamber at a time."""
        inputs = self.folder / "inputs"
        inputs.mkdir(exist_ok=True)
        told = self.folder / ENGINE
        if "DOCKER_HOST" not in os.environ and told.is_file():
            host = told.read_text("utf-8").strip()
            return DockerConfig(host=host, runtime=runtime, inputs_folder=inputs, disk_read=0)
        return DockerConfig(runtime=runtime, inputs_folder=inputs, disk_read=0)

    def image(self, identity: str) -> Path:
        return self.folder / "images" / f"{identity.removeprefix('sha256:')}.tar"

    def input(self, digest: str) -> Path:
        return self.folder / "inputs" / f"{digest}.tar"


async def run_errand(folder: Path) -> int:
    """0 when there is an outcome, whatever it says."""
    _end_when_told()
    try:
        errand = read_errand(folder)
        async with asyncio.timeout(errand.seconds):
            report = await _done(errand, folder)
    except SandboxError as error:
        report = Report(Failed.of(error), {}, b"")
    except TimeoutError:
        report = Report(Failed.of(Unavailable(f"the machine took more than its {errand.seconds:g} s")), {}, b"")
    except asyncio.CancelledError:
        report = Report(Failed.of(Lost("the machine was told to end it")), {}, b"")
    except Exception as error:  # noqa: BLE001  there is nobody else on this machine who could tell what happened
        report = Report(Failed.of(Unavailable(f"the machine failed: {type(error).__name__}: {error}")), {}, b"")
    try:
        write_report(report, folder)
    except OSError as error:
        sys.stderr.write(f"no outcome could be written ({error}); it was {report.page}\n")
        return 1
    return 0


def _end_when_told() -> None:
    """Once: a second word must not cut short what ends the chamber."""
    current = asyncio.current_task()
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.add_signal_handler(signal.SIGTERM, lambda: None)
        if current:
            current.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)


async def _done(errand: Errand, folder: Path) -> Report:
    root = Root(folder.parent.parent)
    backend = await DockerBackend.connect(root.config(errand.runtime))
    owner = root.folder / OWNERS / backend.owner
    owner.parent.mkdir(exist_ok=True)
    owner.touch()
    try:
        if missing := await _missing(errand, root, backend):
            return Report(missing, {}, b"")
        async with await backend.open(errand.job) as chamber:
            if errand.doing is Doing.GREET:
                return Report(Greeted(facts=dict(chamber.facts)), {}, b"")
            return of_outcome(await chamber.run(await asyncio.to_thread(read_bundle, folder)))
    finally:
        await backend.close()
        owner.unlink(missing_ok=True)


async def _missing(errand: Errand, root: Root, backend: DockerBackend) -> Missing | None:
    """What has to be sent first; what was sent is taken in."""
    image = errand.job.image
    if await backend.engine.image_or_none(image) is None:
        packed = root.image(image)
        if packed.is_file():
            await backend.engine.load_image(packed)
            packed.unlink()
        if await backend.engine.image_or_none(image) is None:
            return Missing(image=True, inputs=_inputs_missing(errand, root))
    missing = _inputs_missing(errand, root)
    return Missing(image=False, inputs=missing) if missing else None


def _inputs_missing(errand: Errand, root: Root) -> list[str]:
    store = InputStore(root.folder / "inputs")
    return [item.digest for item in errand.job.inputs if not has_input(store, root, item)]


def has_input(store: InputStore, root: Root, item: Input) -> bool:
    """What was sent is taken in. Raises Unavailable for another content than was named."""
    with contextlib.suppress(Refused):
        store.locate(item)
        return True
    packed = root.input(item.digest)
    if not packed.is_file():
        return False
    unpacked = Path(tempfile.mkdtemp(dir=root.folder))
    try:
        unpack(packed, unpacked)
        if store.add(item.name, unpacked).digest != item.digest:
            raise Unavailable(f"the input {item.name} arrived with another content; send it again")
    finally:
        with contextlib.suppress(OSError):
            remove_tree(unpacked)  # however deep
        packed.unlink(missing_ok=True)
    return True


def unpack(packed: Path, folder: Path) -> None:
    """Plain files and nothing else, each below the folder. The filters of `tarfile` came with Python 3.11.4, and a
    machine may have an older one.
    """
    with tarfile.open(packed) as archive:
        for member in archive:
            target = folder / member.name
            if ".." in target.parts or not target.is_relative_to(folder) or not (member.isfile() or member.isdir()):
                raise Unavailable(f"an input arrived with {member.name!r} in it, which is no plain file; send it again")
            target.parent.mkdir(parents=True, exist_ok=True)
            if member.isfile() and (source := archive.extractfile(member)):
                with source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)
