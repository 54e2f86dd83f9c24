"""An engine's answer means the same whichever version wrote it: a field left out, null, and empty."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from sandbox.answers import fields, flag, items, needed, text
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.bake import bake
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.gpus import claims
from sandbox.backends.docker.hold import LOOKS, DockerHold
from sandbox.backends.docker.lease import OWNER_LABEL, Lease, reap
from sandbox.backends.lending import Taken, refuse_taken
from sandbox.baking import BakedImage, ImageSpec
from sandbox.config import DockerConfig
from sandbox.engine_report import report_of
from sandbox.errors import Refused, Unavailable
from sandbox.live import Death
from sandbox.posture import FULL

Shape = Callable[[Any], Any]


def as_written(answer: Any) -> Any:
    return answer


def left_out(answer: Any) -> Any:
    """As newer clients and engines write it: what is empty is not there."""
    if isinstance(answer, Mapping):
        return {name: left_out(value) for name, value in answer.items() if value}
    return [left_out(item) for item in answer] if isinstance(answer, list) else answer


def null(answer: Any) -> Any:
    if isinstance(answer, Mapping):
        return {name: null(value) if value else None for name, value in answer.items()}
    return [null(item) for item in answer] if isinstance(answer, list) else answer


@pytest.fixture(params=[as_written, left_out, null])
def shape(request: pytest.FixtureRequest) -> Shape:
    shape: Shape = request.param
    return shape


class Answering:
    """An engine that says what it was told, in one of the shapes."""

    def __init__(self, shape: Shape, **answers: Any) -> None:
        self._shape = shape
        self._answers = answers
        self.removed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def answer(*_: object) -> Any:
            return self._shape(self._answers[name])

        return answer

    async def remove(self, name: str) -> bool:
        self.removed.append(name)
        return True

    async def wait(self, *_: object) -> None: ...

    def close(self) -> None: ...


def engine(shape: Shape, **answers: Any) -> Engine:
    return cast(Engine, Answering(shape, **answers))


def test_readers(shape: Shape) -> None:
    """Nothing is read as nothing of the kind that was asked for, at any depth; an answer without an id is the engine's
    failure, in one line, and not a crash.
    """
    answer = shape({"a": {}, "b": [], "c": "", "d": False, "e": {"f": {}}})
    assert (fields(answer, "a"), list(items(answer, "b")), text(answer, "c"), flag(answer, "d")) == ({}, [], "", False)
    assert (fields(answer, "e", "f", "g"), text(answer, "c", "x"), text(answer, "e", "f", "g")) == ({}, "", "")
    with pytest.raises(Unavailable, match=r"the engine's answer has no Image.Id"):
        needed(shape({"Image": {"Id": ""}}), "Image", "Id")


def test_what_is_there_is_read() -> None:
    """A zero is a number, and not nothing; a value of another kind than was asked for is nothing."""
    answer = {"code": 0, "on": True, "rows": [1], "part": {"name": "x"}}
    assert (text(answer, "code"), flag(answer, "on"), items(answer, "rows")) == ("0", True, [1])
    assert (fields(answer, "part"), needed(answer, "part", "name")) == ({"name": "x"}, "x")
    assert (fields(answer, "rows"), items(answer, "part")) == ({}, ())


def test_bare_engine(shape: Shape) -> None:
    """An engine that has nothing but a version is reported as such."""
    info = {"Runtimes": {}, "SecurityOptions": [], "CgroupVersion": "", "CgroupDriver": "", "MemoryLimit": False}
    report = report_of(shape(info), shape({"Version": "28.2.2", "Components": []}))
    assert report.runtimes == ()
    assert [(part.name, part.version, part.good) for part in report.parts] == [
        ("Docker engine", "28.2.2", True),
        ("runc", "unknown", False),
        ("seccomp", "", False),
        ("runsc (gVisor)", "not registered", False),
        ("cgroup", "v? ", False),
        ("disk reads", "not limited", False),
    ]


def test_no_runtime(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine without a single runtime is refused, not tripped over."""
    monkeypatch.setattr("sandbox.backends.docker.backend.Engine", lambda *_, **__: engine(shape, info={"Runtimes": {}}))
    with pytest.raises(Refused, match=r"no runtime 'runc' .it has none.; register it first"):
        asyncio.run(DockerBackend.connect(DockerConfig()))


@pytest.mark.parametrize(("killed", "death"), [(True, Death.MEMORY), (False, Death.ITS_OWN_DOING)])
def test_how_it_died(shape: Shape, killed: bool, death: Death) -> None:
    """Who died of its memory limit is told from who died by itself."""
    answers = engine(shape, inspect={"State": {"OOMKilled": killed, "Running": False}}, events=["start", "die"])
    hold = DockerHold(answers, "id", "name", cast(Any, None), 0.0, cast(Any, None))
    assert asyncio.run(hold.cause_of_death(1.0)) is death


class Late(Answering):
    """An engine that sees a death before it sees what it was of."""

    looks = 0

    async def events(self, _: str) -> list[str]:
        self.looks += 1
        return ["start", "die", *(["oom"] if self.looks > self._answers["late"] else [])]


@pytest.mark.parametrize(
    ("code", "late", "death", "looks"),
    [
        (137, 0, Death.MEMORY, 1),
        (137, 3, Death.MEMORY, 4),
        (137, 10**6, Death.ITS_OWN_DOING, LOOKS),
        (1, 10**6, Death.ITS_OWN_DOING, 1),
    ],
    ids=["oom after die", "oom later still", "no oom", "no kill"],
)
def test_death_is_seen_before_its_cause(
    monkeypatch: pytest.MonkeyPatch, code: int, late: int, death: Death, looks: int
) -> None:
    """A sandbox that the kernel ended for its memory is out of memory, although the engine noted its death first.

    runsc dies whole, so both come at once, and an engine that reads the death first never says OOMKilled.
    """
    monkeypatch.setattr("sandbox.backends.docker.hold.LOOK_S", 0.0)
    record = {"State": {"OOMKilled": False, "Running": False, "ExitCode": code}}
    answers = Late(as_written, inspect=record, late=late)
    hold = DockerHold(cast(Engine, answers), "id", "name", cast(Any, None), 0.0, cast(Any, None))
    assert asyncio.run(hold.cause_of_death(1.0)) is death
    assert answers.looks == looks


def test_reaped_without_a_name(shape: Shape) -> None:
    """A container that lost its name is reaped and told by its id; one without an owner is nobody's to reap."""
    containers = [{"Id": "one", "Names": [], "Labels": {OWNER_LABEL: "gone"}}, {"Id": "two", "Names": [], "Labels": {}}]
    answers = engine(shape, containers=containers, volumes=[])
    assert asyncio.run(reap(answers)) == (["one"], [])
    assert cast(Answering, answers).removed == ["one"]


def test_gpus_of_others(shape: Shape) -> None:
    """A container without labels has no GPU; one with a label has those that it names."""
    others = [{"Id": "one", "Labels": {}}, {"Id": "two", "Labels": {"blastdoor.gpus": "GPU-1"}}]
    found = asyncio.run(claims(engine(shape, containers=others)))
    refuse_taken("mine", ["GPU-2"], found)
    with pytest.raises(Taken):
        refuse_taken("mine", ["GPU-1"], found)


def test_image_without_settings(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that sets nothing is an image like any other."""
    record = {"Id": "sha256:1", "Config": {"Env": [], "Volumes": {}, "Labels": {}, "User": "", "Entrypoint": []}}
    monkeypatch.setattr("sandbox.backends.docker.bake.Engine", lambda *_, **__: engine(shape, image=record))
    assert asyncio.run(bake("", ImageSpec(base="x"), print)) == BakedImage("x", "sha256:1")


@pytest.mark.parametrize(
    ("reported", "why"),
    [({"Image": ""}, "Image: not the one"), ({"Image": "i", "Mounts": [{"Destination": "/x"}]}, "mount /x")],
)
def test_another_posture_is_seen(shape: Shape, reported: Mapping[str, Any], why: str) -> None:
    """What the engine leaves out never passes for what was asked for."""
    config: dict[str, Any] = {"Image": "i", "HostConfig": {"Mounts": [], "NetworkMode": "none"}}
    answers = engine(shape, inspect={"HostConfig": {"NetworkMode": "none"}, **reported})

    async def compare() -> None:
        backend = DockerBackend(DockerConfig(), answers, Lease(answers, 60.0), FULL)
        await backend.compare(config, "id")

    with pytest.raises(Refused, match=why):
        asyncio.run(compare())


@pytest.mark.parametrize("volumes", [{"Volumes": []}, {"Volumes": None}, {}])
def test_no_volumes(volumes: Mapping[str, Sequence[object]], monkeypatch: pytest.MonkeyPatch) -> None:
    """No leases are no leases; a container that the engine has no figures of has used no known time."""

    class Api:
        api_version = "1.50"

        def volumes(self, **_: object) -> object:
            return volumes

        def stats(self, *_: object, **__: object) -> object:
            return {"cpu_stats": {}}

        def close(self) -> None: ...

    monkeypatch.setattr("sandbox.backends.docker.engine.Client", lambda **_: Api())
    opened = Engine("unix:///nowhere")
    try:
        assert list(asyncio.run(opened.volumes("label"))) == []
        hold = DockerHold(opened, "id", "name", cast(Any, None), 0.0, cast(Any, None))
        assert asyncio.run(hold.processor_seconds()) is None
    finally:
        opened.close()
