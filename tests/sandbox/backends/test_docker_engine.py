"""Whatever the docker package and what it stands on may raise leaves as an error of ours, in one line."""

import email.errors
import http.client
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import docker.errors
import pytest
import requests
import requests.exceptions
import urllib3.exceptions

from sandbox.backends.docker.engine import Engine, translating_docker_errors
from sandbox.errors import Lost, NoSuchGpu, Refused, SandboxError, Unavailable

# Never raised: warnings are shown, and urllib3 only keeps the parser's defects in an error of its own.
NOT_RAISED = (Warning, email.errors.MessageDefect)


def exceptions_of(module: ModuleType) -> list[type[Exception]]:
    found = [item for _, item in inspect.getmembers(module, inspect.isclass) if issubclass(item, Exception)]
    return [item for item in found if not issubclass(item, NOT_RAISED)]


EVERY = [
    *exceptions_of(docker.errors),
    *exceptions_of(requests.exceptions),
    *exceptions_of(urllib3.exceptions),
    *exceptions_of(http.client),
    *(OSError, TimeoutError, BrokenPipeError, ConnectionResetError, PermissionError, FileNotFoundError),
]


def made(kind: type[Exception]) -> Exception:
    """An instance, with something in each place that its constructor asks for."""
    if issubclass(kind, json.JSONDecodeError | requests.exceptions.JSONDecodeError):
        return kind("bad", "document", 0)
    if issubclass(kind, urllib3.exceptions.InvalidChunkLength):
        return kind(urllib3.HTTPResponse(), b"bad")
    try:
        parameters = inspect.signature(kind).parameters.values()
    except ValueError:
        return kind("bad")
    wanted = [item for item in parameters if item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD]
    values: dict[str, Any] = {"partial": b"", "headers": [], "defects": [], "unparsed_data": b"", "stderr": b""}
    return kind(*[values.get(item.name, "bad") for item in wanted])


def translated(error: Exception) -> SandboxError:
    with pytest.raises(SandboxError) as caught, translating_docker_errors("doing"):
        raise error
    return caught.value


def test_none_is_left_unmapped() -> None:
    """Every exception class of the packages, which are found and not written down, comes out as Unavailable, Refused
    or Lost, in one line; errors that refer to each other do, too.
    """
    assert len(EVERY) > 70
    first, second = OSError("a"), OSError("b")
    first.__cause__, second.__cause__ = second, first
    for raised in (*map(made, EVERY), first):
        error = translated(raised)
        assert type(error) in (Unavailable, Refused, Lost), raised
        assert str(error).startswith("doing: ")
        assert "\n" not in str(error)


def test_our_own_errors_pass_through() -> None:
    """What is translated already is left alone, and so is a mistake of our own."""
    for error in (Refused("no"), Lost("gone"), Unavailable("away")):
        assert translated(error) is error
    with pytest.raises(ZeroDivisionError), translating_docker_errors("doing"):
        raise ZeroDivisionError


def api_error(status: int, text: str = "") -> docker.errors.APIError:
    response = requests.Response()
    response.status_code = status
    return docker.errors.APIError("failed", response, text or None)


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (docker.errors.ImageNotFound("x"), Refused, "image is missing"),
        (docker.errors.NotFound("x"), Lost, "no longer knows it"),
        (api_error(400, "bad\nrequest"), Refused, "the engine refused: bad request"),
        (api_error(409, "name in use"), Refused, "name in use"),
        (api_error(500, "on fire"), Unavailable, "the engine failed: on fire"),
        (api_error(501, "not here"), Refused, "not here"),
        (api_error(500, 'could not select device driver "nvidia"'), NoSuchGpu, "NVIDIA container toolkit"),
        (api_error(500, "failed to discover GPU vendor from CDI: no known GPU"), NoSuchGpu, "NVIDIA container toolkit"),
        (api_error(500, "nvidia-container-cli: device error: GPU-1: unknown device"), Refused, "has no such GPU"),
        (api_error(500, "unresolvable CDI devices nvidia.com/gpu=GPU-1"), Refused, "does nvidia-smi work there?"),
        (api_error(400, "Unknown runtime specified runsc"), Refused, "lacks the runtime"),
        (api_error(500, "x" * 10_000), Unavailable, "the engine failed"),
        (requests.exceptions.ReadTimeout("slow"), Unavailable, "does not answer"),
    ],
)
def test_whose_fault_it_is(error: Exception, kind: type[SandboxError], line: str) -> None:
    """What the engine says decides between its failure, our mistake and a loss."""
    found = translated(error)
    assert type(found) is kind
    assert line in str(found)
    assert len(str(found)) < 500


@pytest.mark.parametrize("how", ["cause", "context", "argument", "reason", "alone"])
@pytest.mark.parametrize(
    ("inner", "line"),
    [
        (PermissionError(13, "denied"), "run as root or join its group"),
        (FileNotFoundError(2, "no socket"), "no Docker engine answers"),
        (ConnectionRefusedError(111, "refused"), "no Docker engine answers"),
    ],
)
def test_reasons_inside_get_their_own_line(how: str, inner: OSError, line: str) -> None:
    """However deep the packages wrap the reason, a person is told what to do about it."""
    outer: Exception = requests.exceptions.ConnectionError("wrapped")
    match how:
        case "cause":
            outer.__cause__ = urllib3.exceptions.ProtocolError("twice")
            outer.__cause__.__cause__ = inner
        case "context":
            outer.__context__ = inner
        case "argument":
            outer = docker.errors.DockerException(urllib3.exceptions.ProtocolError("aborted", inner))
        case "reason":
            outer = requests.exceptions.ConnectionError(urllib3.exceptions.MaxRetryError(None, "/", inner))  # type: ignore[arg-type]  # a pool is not needed here
        case "alone":
            outer = inner
    found = translated(outer)
    assert type(found) is Unavailable
    assert line in str(found)


def test_hosts_that_can_not_be_used(tmp_path: Path) -> None:
    """An address of another kind is refused with what to do instead; a socket that is not there, and one that is a
    plain file, are Unavailable.
    """
    for host in ("ssh://me@there", "npipe:////./pipe/docker", "/var/run/docker.sock", "fd://", ""):
        with pytest.raises(Refused, match="forward the socket"):
            Engine(host)
    with pytest.raises(Unavailable, match="no Docker engine answers; start Docker"):
        Engine(f"unix://{tmp_path}/nonexistent")
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable):
        Engine(f"unix://{tmp_path}/file")
