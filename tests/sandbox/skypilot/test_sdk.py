"""The one file that knows SkyPilot's package, without a server: what is asked for, and what its errors become."""

import asyncio
import contextlib
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from sandbox.backends.skypilot.order import NO_UPLOAD, task_of
from sandbox.backends.skypilot.places import PLACES, SWITCHABLE, Kind
from sandbox.backends.skypilot.provisioner import Ask, Wanted
from sandbox.errors import Denied, Lost, Refused, SandboxError, Unavailable
from sandbox.job import Gpu

WANTED = Wanted(Ask(2, 4, Gpu(kind="A10", count=1)), idle_s=901, ends=10_000.0, most_usd_per_hour=1.5)


def translating(doing: str) -> contextlib.AbstractContextManager[None]:
    """Imported by who has `sdk`: the package reads the home folder."""
    from sandbox.backends.skypilot.errors import translating_sky_errors

    return translating_sky_errors(doing)


def test_every_place_is_decided_upon(sdk: Any) -> None:
    """The matrix knows each place that this version of SkyPilot knows, and no other."""
    from sky import clouds
    from sky.utils import registry

    known = [str(cloud).lower() for cloud in registry.CLOUD_REGISTRY.values() if isinstance(cloud, clouds.Cloud)]
    assert sorted(PLACES) == sorted(known)


def test_a_cluster_that_another_thread_ends(sdk: Any) -> None:
    """Who is about to call a cluster that is ended at this moment gets its connection, or hears that it is gone."""

    class Ending(dict[str, Any]):
        """Another thread ends the cluster as soon as somebody has looked for it."""

        def __contains__(self, name: object) -> bool:
            there = super().__contains__(name)
            self.clear()
            return there

    connected = sdk.SkyPilot()
    connected.handles = Ending(one=SimpleNamespace(get_command_runners=lambda: ["runner"]))
    assert connected.runner("one") == "runner"


def test_the_switch_against_uploads_is_taken_everywhere_it_exists(sdk: Any) -> None:
    """SkyPilot's own schema accepts the setting for these clouds, and for none that we forgot. No key travels, and
    autodown needs an identity of the machine's own all the same: clouds where SkyPilot has none are refused.
    """
    from sky.utils import registry, schemas

    properties = schemas.get_config_schema()["properties"]
    known = {name for name, entry in properties.items() if "remote_identity" in entry.get("properties", {})}
    assert set(SWITCHABLE) == set(NO_UPLOAD) == known
    allowed = {name: place for name, place in PLACES.items() if not place.refused}
    assert allowed.keys() <= known, "keys would be copied to its machines"
    rented = [name for name, place in allowed.items() if place.kind is Kind.VM]
    assert rented == ["aws", "gcp"]
    assert all(registry.CLOUD_REGISTRY.from_str(name).supports_service_account_on_remote() for name in rented)


@pytest.mark.parametrize("place", ["aws/us-east-1", "slurm/yard"])
def test_what_is_launched(sdk: Any, place: str) -> None:
    """SkyPilot's own parser takes it: autodown that waits for nothing, an absolute end, a ceiling, nothing uploaded."""
    from sky import task as sky_task

    task = sky_task.Task.from_yaml_config(task_of(place, WANTED, 4_000.0))
    (wanted,) = task.resources
    autostop = wanted.autostop_config
    assert (autostop.idle_minutes, autostop.down, autostop.wait_for.value) == (16, True, "none")
    assert wanted.max_hourly_cost == 1.5
    assert wanted.image_id is None
    assert (task.workdir, task.file_mounts, task.storage_mounts or {}) == (None, None, {})
    if place.startswith("slurm"):
        assert wanted.cluster_config_overrides == {"slurm": {"sbatch_options": {"time": "100"}}}
    else:
        assert "shutdown -P" in task.setup
        assert "10000" in task.setup


def test_the_timer_is_absolute_by_the_machines_clock(sdk: Any, tmp_path: Path) -> None:
    """However late the machine comes up, it is powered off at the same minute."""
    fake = tmp_path / "sudo"
    fake.write_text('#!/bin/sh\nprintf "%s " "$@"\n')
    fake.chmod(0o755)
    (tmp_path / "date").write_text("#!/bin/sh\necho 9000\n")
    (tmp_path / "date").chmod(0o755)
    ran = subprocess.run(
        ["bash", "-c", task_of("aws", WANTED, 4_000.0)["setup"]],
        env={"PATH": f"{tmp_path}:/bin:/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["-n", "shutdown", "-P", "+17"]


def made(sdk: Any, name: str, *words: str, **attributes: object) -> Exception:
    """One of SkyPilot's own without its constructor: those want all kinds of things."""
    kind = getattr(sdk.exceptions, name)
    error: Exception = kind.__new__(kind)
    error.args = words
    vars(error).update(attributes)
    return error


def translated(error: Exception) -> SandboxError:
    with pytest.raises(SandboxError) as caught, translating("doing"):
        raise error
    return caught.value


def test_no_error_is_left_unmapped(sdk: Any) -> None:
    """Whatever SkyPilot raises leaves as one of ours, in one line without colours; traces are shown again, for
    SkyPilot hides them when it raises, and --verbose must show those of everybody else.
    """
    from sky.utils import ux_utils

    kinds = vars(sdk.exceptions).items()
    names = [name for name, kind in kinds if inspect.isclass(kind) and issubclass(kind, Exception)]
    assert len(names) > 55
    theirs = [made(sdk, name, "\x1b[31mwhat happened\x1b[0m\nand more") for name in names]
    for error in [*theirs, ValueError("x"), KeyError("x"), OSError("x"), RuntimeError("x"), TypeError("x")]:
        said = str(translated(error))
        assert "\n" not in said
        assert "\x1b" not in said
    with pytest.raises(SandboxError), translating("look"), ux_utils.print_exception_no_traceback():
        raise ValueError("of its own")
    assert not hasattr(sys, "tracebacklimit")


@pytest.mark.parametrize(
    ("name", "attributes", "kind", "said"),
    [
        ("ResourcesUnavailableError", {"failover_history": [Exception()]}, Unavailable, "capacity"),
        ("ResourcesUnavailableError", {"failover_history": []}, Refused, ""),
        ("ClusterNotUpError", {}, Lost, ""),
        ("ClusterDoesNotExist", {}, Lost, ""),
        ("NotSupportedError", {}, Refused, ""),
        ("RequestCancelled", {}, Unavailable, ""),
        ("ApiServerConnectionError", {}, Unavailable, "sky api start"),
        *(
            (name, {}, Denied, "log in again and run sky check")
            for name in (
                "ApiServerAuthenticationError",
                "CloudUserIdentityError",
                "ClusterOwnerIdentityMismatchError",
                "InvalidCloudCredentials",
                "PermissionDeniedError",
            )
        ),
    ],
)
def test_what_errors_mean(
    sdk: Any, name: str, attributes: dict[str, object], kind: type[SandboxError], said: str
) -> None:
    """Capacity may be tried again, what can never be is refused, what is gone is lost, and a login is for a person to
    mend: no retry is used up on it, and one line says what to do.
    """
    error = translated(made(sdk, name, **attributes))
    assert type(error) is kind
    assert said in str(error)


def test_a_server_that_is_not_there(sdk: Any) -> None:
    pool = "HTTPConnectionPool(host='127.0.0.1', port=46580): Max retries exceeded"
    error = translated(requests.ConnectionError(pool))
    assert type(error) is Unavailable
    assert "sky api start" in str(error)


async def test_a_server_that_hangs(sdk: Any) -> None:
    """Bounded in time, and no thread that hangs keeps the process from ending."""
    release = threading.Event()
    with pytest.raises(Unavailable, match="did not answer within"):
        await sdk.bounded("status", lambda: release.wait(60), 0.05)
    hanging = [thread for thread in threading.enumerate() if thread.name == "skypilot status"]
    assert all(thread.daemon for thread in hanging)
    release.set()


async def test_a_launch_given_up_before_it_was_asked_for(sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives up before the request went out sends none: nobody who looks afterwards could have seen it."""
    asked: list[str] = []
    ordering, go_on = threading.Event(), threading.Event()

    def slowly(*words: Any) -> dict[str, Any]:
        ordering.set()
        go_on.wait(60)
        return task_of(*words)

    monkeypatch.setattr(sdk, "task_of", slowly)
    monkeypatch.setattr(sdk.sdk, "launch", lambda task, cluster_name: asked.append(cluster_name))
    monkeypatch.setattr(sdk.sdk, "get", lambda request: (None, None))
    launching = asyncio.create_task(sdk.SkyPilot().launch("bd-x", "slurm/yard", WANTED, 60))
    await asyncio.to_thread(ordering.wait, 60)
    launching.cancel()
    await asyncio.sleep(0.05)  # it has heard so
    go_on.set()
    with pytest.raises((asyncio.CancelledError, SandboxError)):
        await launching
    assert asked == []


async def test_all_that_is_under_way_is_cancelled_but_its_end(sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that asks a machine something takes in whatever it says, for as long as the server lets it."""
    names = ["launch", "exec", "job_status", "queue", "logs", "jobs.launch", "down", "status"]
    under_way = [SimpleNamespace(request_id=name, name=name, cluster_name="bd-x") for name in names]
    under_way[-1].cluster_name = None
    monkeypatch.setattr(sdk.sdk, "api_status", lambda fields: under_way)
    assert list(await sdk.SkyPilot().requests()) == names[:-2]


def test_a_missing_package_says_what_to_install() -> None:
    """Without SkyPilot, connecting is refused with the line that installs it; nothing else here imports it."""
    script = (
        "import asyncio, sys\n"
        "sys.modules['sky'] = None\n"
        "from sandbox import SkyPilotConfig, Refused\n"
        "try: asyncio.run(SkyPilotConfig(infra='aws').connect())\n"
        "except Refused as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "with its extra skypilot" in ran.stdout


async def test_a_place_that_does_not_let_us_in(sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked once more, since nobody may have asked yet; then it is the provider that denies, not we."""
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(sdk.server_common, "is_api_server_local", lambda: True)
    monkeypatch.setattr(sdk, "refuse_forwarding", lambda: None)
    monkeypatch.setattr(sdk.sdk, "enabled_clouds", lambda: ["gcp"])
    monkeypatch.setattr(sdk.sdk, "check", lambda clouds, *, verbose: asked.append(clouds))
    monkeypatch.setattr(sdk.sdk, "get", lambda request: request)
    with pytest.raises(Denied, match="run sky check aws"):
        await sdk.SkyPilot().check("aws/us-east-1")
    assert asked == [("aws",)]


async def test_how_long_clusters_lived_by_its_history(sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first launch of a name to its last end; nothing of one that is up, or that was never counted."""
    rows = [
        {"name": "one", "usage_intervals": [(100, 118)]},
        {"name": "one", "usage_intervals": [(130, 131)]},
        {"name": "up", "usage_intervals": [(100, 118), (120, None)]},
        {"name": "none", "usage_intervals": None},
    ]
    monkeypatch.setattr(sdk.sdk, "cost_report", lambda: rows)
    monkeypatch.setattr(sdk.sdk, "get", lambda request: request)
    assert await sdk.SkyPilot().lived() == {"one": 33.0, "up": None, "none": None}
