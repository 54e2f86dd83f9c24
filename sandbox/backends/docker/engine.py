"""The only file that knows the docker package: plain calls in threads, and its errors translated once."""

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import docker
import docker.errors
import requests
import requests.exceptions
import urllib3.exceptions
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from sandbox.answers import items, needed, text
from sandbox.errors import Lost, NoSuchGpu, Refused, SandboxError, Unavailable
from sandbox.wire.demux import Demultiplexer

MINIMUM_API = (1, 41)
CALL_TIMEOUT_S = 120
# For what says nothing for as long as an image is large, or as a command of a person's takes.
PATIENCE_S = 1800
THREADS = 16
REMOVAL_LOOK_S, LONGEST_REMOVAL_LOOK_S = 0.01, 0.5
EXECUTE_BYTES = 65_536
HOW_TO_GET_AN_ENGINE = (
    "start Docker, set DOCKER_HOST to one that runs (unix:// or tcp://), or run `blastdoor up` for a private one;"
    " without an engine: `--backend runc`"
)

T = TypeVar("T")

_PROVIDER_ERRORS = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    # These four are outside of their packages' own trees.
    docker.errors.StreamParseError,
    urllib3.exceptions.ProxySchemeUnsupported,
    http.client.HTTPException,
    json.JSONDecodeError,
    OSError,
)

# Without NVIDIA's hook, and without its devices in CDI's folders.
_NO_GPU_RUNTIME = ("could not select device driver", "no known GPU vendor", "failed to discover GPU vendor")


@contextlib.contextmanager
def translating_docker_errors(doing: str) -> Iterator[None]:
    """Whatever the docker package raises leaves as Unavailable, Refused or Lost."""
    try:
        yield
    except SandboxError:
        raise
    except _PROVIDER_ERRORS as error:
        raise _translated(error, doing) from error


def _translated(error: Exception, doing: str) -> SandboxError:
    if isinstance(error, docker.errors.ImageNotFound):
        return Refused(f"{doing}: the image is missing on the engine; build it (`blastdoor images build`) or pull it")
    if isinstance(error, docker.errors.NotFound):
        return Lost(f"{doing}: the engine no longer knows it")
    if isinstance(error, docker.errors.APIError):
        said = " ".join(str(error.explanation or error).split())
        text = said[:400]
        if any(words in text for words in _NO_GPU_RUNTIME):
            return NoSuchGpu(
                f"{doing}: the engine has no GPU runtime; install the NVIDIA container toolkit, or ask for no GPU"
            )
        if "nvidia-container-cli" in text or "nvidia.com/gpu" in text:
            return Refused(f"{doing}: the engine's GPU runtime has no such GPU; does nvidia-smi work there? ({text})")
        if "failed to mount local volume" in text:
            why = said.rpartition(": ")[2]
            return Refused(f"{doing}: the engine mounts no overlay of an input ({why}); is its folder on that machine?")
        if "nknown runtime" in text or "unknown or invalid runtime" in text:
            return Refused(f"{doing}: the engine lacks the runtime that was asked for; register it in its daemon.json")
        if error.is_client_error() or error.status_code == 501:
            return Refused(f"{doing}: the engine refused: {text}")
        return Unavailable(f"{doing}: the engine failed: {text}")
    for cause in _causes(error):
        if isinstance(cause, PermissionError):
            return Unavailable(f"{doing}: no right to use the engine's socket; run as root or join its group")
        if isinstance(cause, FileNotFoundError | ConnectionRefusedError):
            return Unavailable(f"{doing}: no Docker engine answers; {HOW_TO_GET_AN_ENGINE}")
    return Unavailable(f"{doing}: the engine does not answer ({type(error).__name__})")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what it was raised from, and what it carries in its arguments."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        current = todo.pop()
        if isinstance(current, BaseException) and id(current) not in seen:
            seen.add(id(current))
            yield current
            todo += [current.__cause__, current.__context__, getattr(current, "reason", None)]
            todo += [item for item in current.args if isinstance(item, BaseException)]


class Client(docker.APIClient):  # type: ignore[misc]  # the package has no types
    """The package's own, with an end to every wait: some of its calls have none, nor has any body that is streamed."""

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        if settings.get("timeout") is None:
            settings["timeout"] = self.timeout
        answer: requests.Response = super().send(request, **settings)
        return answer

    def _disable_socket_timeout(self, _: object) -> None:
        """One that has to be waited for longer has a client of its own."""


class Engine:
    """A Docker engine. Every method may raise Unavailable; what else it raises stands with it.

    `timeout` is how long it may say nothing; `patience` where it runs something, or makes, saves or unpacks an archive.
    """

    def __init__(
        self, host: str, threads: int = THREADS, timeout: float = CALL_TIMEOUT_S, patience: float = PATIENCE_S
    ) -> None:
        if not host.startswith(("unix://", "tcp://", "http://")):
            raise Refused(f"DOCKER_HOST {host!r} cannot be used; forward the socket and name it as unix:// or tcp://")
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="docker")
        with translating_docker_errors("connect"):
            about: dict[str, Any] = {"base_url": host, "max_pool_size": threads, "use_ssh_client": False}
            self._api = Client(**about, version="auto", timeout=timeout)
            self._patient = Client(**about, version=self._api.api_version, timeout=patience)
        if tuple(map(int, self._api.api_version.split("."))) < MINIMUM_API:
            raise Refused(f"the engine speaks API {self._api.api_version}; Docker 20.10 (API 1.41) is the minimum")

    async def info(self) -> Mapping[str, Any]:
        return await self._call("info", self._api.info)

    async def version(self) -> Mapping[str, Any]:
        return await self._call("version", self._api.version)

    async def image(self, name: str) -> Mapping[str, Any]:
        """The image's record. Raises Refused when it is missing."""
        return await self._call(f"image {name}", lambda: self._api.inspect_image(name))

    async def save_image(self, name: str, archive: Path) -> None:
        """An image with all its layers, as one archive that another engine can load."""

        def save() -> None:
            with archive.open("wb") as target:
                target.writelines(self._patient.get_image(name))

        await self._call(f"save image {name}", save)

    async def load_image(self, archive: Path) -> None:
        """What another engine has saved. Nothing is run."""

        def load() -> None:
            with archive.open("rb") as content:
                for answer in self._patient.load_image(content):
                    if "error" in answer:
                        raise Unavailable(f"load image: the engine failed: {str(answer['error'])[:400]}")

        await self._call("load image", load)

    async def derive_image(self, parent: str, name: str, changes: Sequence[str], labels: dict[str, str]) -> None:
        """An image that is its parent with other settings, given as Dockerfile instructions. Nothing is run."""

        def derive() -> None:
            container = needed(self._api.create_container(parent, ["true"], labels=labels), "Id")
            try:
                repository, _, tag = name.partition(":")
                self._api.commit(container, repository, tag, changes=list(changes))
            finally:
                self._api.remove_container(container, force=True, v=True)

        await self._call(f"derive image {name}", derive)

    async def copy_image(
        self, image: str, name: str, changes: Sequence[str], head: bytes, labels: dict[str, str]
    ) -> None:
        """An image of one layer with the same files; `head` comes before them in its archive. Nothing is run."""

        def copy() -> None:
            container = needed(self._api.create_container(image, ["true"], labels=labels), "Id")
            try:
                repository, _, tag = name.partition(":")
                content = itertools.chain([head], self._api.export(container))
                self._patient.import_image_from_data(content, repository, tag, changes=list(changes))
            finally:
                self._api.remove_container(container, force=True, v=True)

        await self._call(f"copy image {name}", copy)

    async def remove_image(self, name: str) -> None:
        def remove() -> None:
            with contextlib.suppress(docker.errors.ImageNotFound):
                self._api.remove_image(name, force=True)

        await self._call(f"remove image {name}", remove)

    async def image_or_none(self, name: str) -> Mapping[str, Any] | None:
        def look() -> Mapping[str, Any] | None:
            with contextlib.suppress(docker.errors.ImageNotFound):
                found: Mapping[str, Any] = self._api.inspect_image(name)
                return found
            return None

        return await self._call(f"image {name}", look)

    async def commit(self, container: str, name: str, changes: Sequence[str]) -> None:
        """An image of what a container holds now; the name moves to it only once it is complete."""
        repository, _, tag = name.partition(":")
        await self._call(
            f"commit {name}", lambda: self._patient.commit(container, repository, tag, changes=list(changes))
        )

    async def create(self, name: str, config: dict[str, object]) -> str:
        """Create a container and return its id. A lost reply is safe to retry: the name is unique and ours."""

        def create() -> str:
            try:
                return needed(self._api.create_container_from_config(config, name), "Id")
            except docker.errors.APIError as error:
                if error.status_code == 409:
                    return needed(self._api.inspect_container(name), "Id")
                raise

        return await self._call("create", lambda: _retried(create, "create"))

    async def claim(self, name: str, config: dict[str, object]) -> str | None:
        """Create a container whose name is a lock: None while somebody else has it."""

        def claim() -> str | None:
            try:
                return needed(self._api.create_container_from_config(config, name), "Id")
            except docker.errors.APIError as error:
                if error.status_code == 409:
                    return None
                raise

        return await self._call("create", claim)

    async def execute(
        self, container: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Run one more command in a running container, as root: its exit code and the end of its output."""

        def execute() -> tuple[int, bytes]:
            made = self._api.exec_create(container, list(command), user="0", environment=dict(environment))
            output, demultiplexer = b"", Demultiplexer()
            # The package's own reading of it waits for ever.
            with contextlib.closing(self._patient.exec_start(made, socket=True)) as stream:
                buffered = stream._response.raw._fp.fp  # has what came together with the head of the answer
                while piece := buffered.read1(EXECUTE_BYTES):
                    said = b"".join(part for _, part in demultiplexer.feed(piece))
                    output = (output + said)[-EXECUTE_BYTES:]
                stream._response.close()
            return int(needed(self._api.exec_inspect(made), "ExitCode")), output

        return await self._call("execute", execute)

    async def put(self, container: str, folder: str, archive: Path) -> None:
        """Unpack a tar archive into a folder of a container."""

        def put() -> None:
            with archive.open("rb") as content:
                self._patient.put_archive(container, folder, content)

        await self._call("copy into", put)

    async def get(self, container: str, path: str, archive: Path) -> None:
        """A folder of a container as a tar archive, which is written and not looked into."""

        def get() -> None:
            with archive.open("wb") as target:
                target.writelines(self._api.get_archive(container, path)[0])

        await self._call("copy out of", get)

    async def export(self, container: str, read: Callable[[Iterable[bytes]], None]) -> None:
        """Have `read` look at the archive of all that a container holds. Nothing is run."""
        await self._call("export", lambda: read(self._patient.export(container)))

    async def attach(self, container: str) -> socket.socket:
        """Stdin, stdout and stderr of a container that has not started."""

        def attach() -> socket.socket:
            wrapper = self._api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            # The wrapper closes its socket, and the pooled response, once garbage: keep a descriptor of our own.
            connection: socket.socket = wrapper._sock.dup()
            wrapper._response.close()
            wrapper.close()
            connection.setblocking(False)
            return connection

        return await self._call("attach", attach)

    async def start(self, container: str) -> None:
        await self._call("start", lambda: self._api.start(container))

    async def inspect(self, container: str) -> Mapping[str, Any]:
        """The container's record. Raises Lost when it is gone."""
        return await self._call("inspect", lambda: _retried(lambda: self._api.inspect_container(container), "inspect"))

    async def wait(self, container: str, timeout: float) -> None:
        """Until the container has exited. Raises Lost when it is gone."""
        await self._call("wait", lambda: self._api.wait(container, timeout=timeout))

    async def events(self, container: str) -> list[str]:
        """What the engine did to a container so far: create, attach, start, oom, kill, die…"""

        def events() -> list[str]:
            # To the nanosecond, as text: a whole second in the future would make the engine wait for it.
            until = f"{time.time():.9f}"
            found = self._api.events(since=0, until=until, filters={"container": container}, decode=True)
            return [text(event, "Action") for event in found]

        return await self._call("events", events)

    async def remove(self, container: str) -> bool:
        """Kill and remove, with its anonymous volumes; gone when this returns. False when it was gone already.

        Where somebody else's removal is in progress, the engine is asked again until it is over: its own wait for
        that never answers when the removal ends as the wait begins, and one that failed is then ours to do.
        """

        def remove() -> HTTPStatus:
            try:
                self._api.remove_container(container, force=True, v=True)
            except docker.errors.APIError as error:
                if error.status_code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                    raise
                return HTTPStatus(error.status_code)
            return HTTPStatus.NO_CONTENT

        was_there = False
        ends_at, pause_s = time.monotonic() + CALL_TIMEOUT_S, REMOVAL_LOOK_S
        while time.monotonic() < ends_at:
            status = await self._call("remove", lambda: _retried(remove, "remove"))
            if status is not HTTPStatus.CONFLICT:
                return was_there or status is HTTPStatus.NO_CONTENT
            was_there = True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_REMOVAL_LOOK_S)
        raise Unavailable(f"remove: somebody else's removal did not end in {CALL_TIMEOUT_S} s; restart the engine")

    async def containers(self, label: str) -> Sequence[Mapping[str, Any]]:
        return await self._call("list", lambda: self._api.containers(all=True, filters={"label": label}) or ())

    async def logs(self, container: str) -> bytes:
        """What the engine itself has kept of the log; Refused where it keeps none, as it should."""
        return await self._call("logs", lambda: self._api.logs(container, tail=10))

    async def cpu_seconds(self, container: str) -> float:
        """What a container has used of the processors so far, by the kernel's count."""
        found = await self._call("stats", lambda: self._api.stats(container, stream=False, one_shot=True))
        return float(needed(found, "cpu_stats", "cpu_usage", "total_usage")) / 1e9

    async def create_volume(self, name: str, labels: dict[str, str]) -> None:
        await self._call("lease", lambda: self._api.create_volume(name, labels=labels))

    async def volumes(self, label: str) -> Sequence[Mapping[str, Any]]:
        found = await self._call("leases", lambda: self._api.volumes(filters={"label": label}))
        return items(found, "Volumes")

    async def remove_volume(self, name: str) -> None:
        def remove() -> None:
            with contextlib.suppress(docker.errors.NotFound):
                self._api.remove_volume(name)

        await self._call("lease", remove)

    def close(self) -> None:
        self._threads.shutdown(wait=False)
        self._api.close()
        self._patient.close()

    async def _call(self, doing: str, work: Callable[[], T]) -> T:
        def translated() -> T:
            with translating_docker_errors(doing):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, translated)


def _retried(work: Callable[[], T], doing: str) -> T:
    """Three tries at something that may be repeated without harm; only an engine that does not answer is retried."""

    def translated() -> T:
        with translating_docker_errors(doing):
            return work()

    retry = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_attempt(3),
        wait=wait_random_exponential(multiplier=0.2, max=2),
        reraise=True,
    )
    return retry(translated)
