"""The only file that knows SkyPilot's package: plain calls in threads, each with a deadline, errors translated once.

Its client talks to an API server on this machine, which is started when there is none, as SkyPilot's own tools do.
Files and commands go over the cluster's own ssh connection from here, so a server elsewhere is refused.
"""

import asyncio
import contextlib
import logging
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")  # it is read at import; what a search does is private

import requests
from sky import check as sky_check
from sky import dag as sky_dag
from sky import exceptions, optimizer, skypilot_config
from sky import task as sky_task
from sky.client import sdk
from sky.server import common as server_common
from sky.utils import command_runner, registry

from sandbox.backends.skypilot.pipe import bounded_output
from sandbox.backends.skypilot.places import SWITCHABLE, Kind, admitted, cloud_of
from sandbox.backends.skypilot.provisioner import Ask, Landed, Wanted
from sandbox.backends.skypilot.ssh import refuse_forwarded_agent, unheard, without_agent
from sandbox.errors import Denied, Lost, Refused, SandboxError, Unavailable
from sandbox.wire.log import printable

QUICK_S = 120.0
CHECK_S = 300.0  # its server may have to start, and looks at every account that it knows
DOWN_S = 600.0
_MAKING = {"launch", "exec", "start"}
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
NO_UPLOAD = {cloud: {"remote_identity": "NO_UPLOAD"} for cloud in SWITCHABLE}

_GONE = (exceptions.ClusterDoesNotExist, exceptions.ClusterNotUpError)
_STRANGERS = (
    exceptions.ApiServerAuthenticationError,
    exceptions.CloudUserIdentityError,
    exceptions.ClusterOwnerIdentityMismatchError,
    exceptions.InvalidCloudCredentials,
    exceptions.PermissionDeniedError,
)
_NEVER = (
    exceptions.APINotSupportedError,
    exceptions.APIVersionMismatchError,
    exceptions.InvalidCloudConfigs,
    exceptions.InvalidClusterNameError,
    exceptions.InvalidSkyPilotConfigError,
    exceptions.NoCloudAccessError,
    exceptions.NotSupportedError,
    exceptions.ProvisionUnsupportedError,
    exceptions.ResourcesMismatchError,
    exceptions.UserRequestRejectedByPolicy,
)

T = TypeVar("T")


@contextlib.contextmanager
def translating_sky_errors(doing: str) -> Iterator[None]:
    """Whatever SkyPilot raises leaves as Unavailable, Denied, Refused or Lost."""
    try:
        yield
    except SandboxError:
        raise
    except SystemExit as error:
        raise Unavailable(f"{doing}: SkyPilot gave up ({error.code})") from error
    except Exception as error:  # its calls raise what its server raised, builtin errors among them
        raise _translated(error, doing) from error
    finally:
        # SkyPilot hides traces when it raises, and forgets to show them again: everybody else's would be lost.
        if hasattr(sys, "tracebacklimit"):
            del sys.tracebacklimit


def _translated(error: Exception, doing: str) -> SandboxError:
    said = _said(error)
    if isinstance(error, exceptions.ResourcesUnavailableError):
        if getattr(error, "failover_history", None):
            return Unavailable(f"{doing}: no capacity now: {said}")
        return Refused(f"{doing}: there is no such machine: {said}")
    if isinstance(error, _GONE):
        return Lost(f"{doing}: the cluster is gone")
    if isinstance(error, _STRANGERS):
        return Denied(f"{doing}: SkyPilot or the cloud does not know us; log in again and run sky check: {said}")
    if isinstance(error, _NEVER):
        return Refused(f"{doing}: {said}")
    if isinstance(error, exceptions.RequestCancelled):
        return Unavailable(f"{doing}: somebody cancelled the request")
    if isinstance(error, exceptions.ApiServerConnectionError | requests.ConnectionError):
        return Unavailable(f"{doing}: SkyPilot's server does not answer; start it with sky api start")
    return Unavailable(f"{doing}: SkyPilot failed ({type(error).__name__}): {said}")


def _said(error: Exception) -> str:
    try:
        text = str(error)
    except AttributeError:  # some lose what they print on their way from the server
        text = " ".join(map(str, error.args))
    lines = [line.strip() for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    return printable((lines or ["no reason given"])[0].encode())[:300]


async def bounded(doing: str, work: Callable[[], T], timeout: float) -> T:
    """In a thread that nobody waits for at exit: SkyPilot's client has no deadline, and a server can hang."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # a result is there when no error is

    def run() -> None:
        result, error = None, None
        try:
            with translating_sky_errors(doing):
                result = work()
        except BaseException as problem:  # noqa: BLE001  handed on whole, to whoever waits
            error = problem
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name=f"skypilot {doing}", daemon=True).start()
    try:
        async with asyncio.timeout(timeout):
            return await answer
    except TimeoutError:
        raise Unavailable(f"{doing}: SkyPilot did not answer within {timeout:g} s") from None


class _Quiet:
    """SkyPilot's client prints to the terminal of whoever imports it; what we say there is ours."""

    def __init__(self, click: Any) -> None:
        self._click = click

    def secho(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._click, name)


command_runner.ssh_options_list = without_agent(command_runner.ssh_options_list)


class SkyPilot:
    """Implements `Provisioner`."""

    def __init__(self) -> None:
        # Its progress is for terminals, and would be mixed with ours.
        logging.getLogger("sky").setLevel(logging.CRITICAL)
        sdk.click = _Quiet(sdk.click)
        self._submitting = threading.Lock()
        self._handles: dict[str, Any] = {}

    async def check(self, place: str) -> None:
        await bounded("check", lambda: _check(place), CHECK_S)

    async def quote(self, place: str, ask: Ask) -> float | None:
        def work() -> float | None:
            plan = sky_dag.Dag()
            plan.add(sky_task.Task.from_yaml_config({"resources": resources(place, ask)}))
            best = optimizer.Optimizer.optimize(plan, quiet=True).tasks[0].best_resources
            return _known(best.get_cost(3600))

        return await bounded("price", work, QUICK_S)

    async def launch(self, name: str, place: str, wanted: Wanted, timeout: float) -> Landed:
        given_up, asked = threading.Event(), threading.Event()

        def submit() -> Any:
            task = sky_task.Task.from_yaml_config(task_of(place, wanted, time.time()))
            # The setting is the process's, not the thread's: one at a time, and back to what it was.
            with self._submitting, skypilot_config.override_skypilot_config(NO_UPLOAD):
                if given_up.is_set():
                    raise Lost(f"{name} is no longer wanted")
                return sdk.launch(task, cluster_name=name)

        def work() -> Landed:
            try:
                request = submit()
            finally:
                asked.set()
            _, handle = sdk.get(request)
            self._handles[name] = handle
            machine = handle.launched_resources
            return Landed(_known(machine.get_cost(3600)) or 0.0, _said(Exception(repr(machine))))

        try:
            return await bounded("launch", work, timeout)
        except BaseException:
            # From here on no request comes any more that whoever ends the cluster could not see.
            given_up.set()
            await bounded("launch", lambda: asked.wait(QUICK_S), 2 * QUICK_S)
            raise

    async def clusters(self) -> list[str]:
        return await bounded("status", lambda: [record["name"] for record in sdk.get(sdk.status())], QUICK_S)

    async def requests(self) -> dict[str, str]:
        def work() -> dict[str, str]:
            under_way = sdk.api_status(fields=["request_id", "name", "cluster_name", "status"])
            return {
                request.request_id: request.cluster_name
                for request in under_way
                if request.cluster_name and request.name.rpartition(".")[2] in _MAKING
            }

        return await bounded("requests", work, QUICK_S)

    async def cancel_requests(self, ids: list[str]) -> None:
        await bounded("cancel requests", lambda: sdk.get(sdk.api_cancel(ids, silent=True)), QUICK_S)

    async def down(self, name: str) -> None:
        def work() -> None:
            with contextlib.suppress(exceptions.ClusterDoesNotExist):
                sdk.get(sdk.down(name))
            self._handles.pop(name, None)

        await bounded("down", work, DOWN_S)

    async def submit(self, name: str, command: str) -> int:
        def work() -> int:
            number, _ = sdk.get(sdk.exec(sky_task.Task(run=command), cluster_name=name))
            return int(number)

        return await bounded("exec", work, QUICK_S)

    async def is_over(self, name: str, number: int) -> bool:
        def work() -> bool:
            status = sdk.get(sdk.job_status(name, [number])).get(number)
            return status is None or bool(status.is_terminal())

        return await bounded("job status", work, QUICK_S)

    async def send(self, name: str, source: Path, target: str, timeout: float) -> None:
        def work() -> None:
            runner = self._runner(name)
            runner.rsync(str(source), target, up=True, stream_logs=False, timeout=math.ceil(timeout))

        await bounded("send", work, timeout + QUICK_S)

    async def call(self, name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        def work() -> tuple[int, bytes]:
            runner = unheard(self._runner(name))

            def run(line: str, output: Path) -> int:
                try:
                    return int(
                        runner.run(
                            line,
                            log_path=str(output),
                            process_stream=False,
                            stream_logs=False,
                            separate_stderr=True,
                            timeout=math.ceil(timeout),
                        )
                    )
                except subprocess.TimeoutExpired:
                    raise Unavailable(f"the machine did not answer within {timeout:g} s") from None

            return bounded_output(command, cap, run)

        return await bounded("call", work, timeout + QUICK_S)

    def _runner(self, name: str) -> Any:
        """SkyPilot's own connection to the cluster's first machine; clusters of ours have no other."""
        if name not in self._handles:
            records = sdk.get(sdk.status([name]))
            if not records or records[0]["handle"] is None:
                raise Lost(f"the cluster {name} is gone")
            self._handles[name] = records[0]["handle"]
        return self._handles[name].get_command_runners()[0]


def resources(place: str, ask: Ask, most_usd_per_hour: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"infra": place, "cpus": f"{ask.cpus}+", "memory": f"{ask.memory_gib}+"}
    if ask.gpu:
        found["accelerators"] = {ask.gpu.kind: ask.gpu.count}
    if most_usd_per_hour is not None:
        found["max_hourly_cost"] = most_usd_per_hour
    return found


def task_of(place: str, wanted: Wanted, now: float) -> dict[str, Any]:
    """A launch in SkyPilot's own words. No workdir, no file mounts, no secrets: nothing of this machine goes along."""
    idle = {"idle_minutes": max(1, math.ceil(wanted.idle_s / 60)), "down": True, "wait_for": "none"}
    minutes = max(1, math.ceil((wanted.ends - now) / 60))
    task: dict[str, Any] = {
        "resources": resources(place, wanted.ask, wanted.most_usd_per_hour) | {"autostop": idle},
    }
    if admitted(place).kind is Kind.NODE:
        task["config"] = {"slurm": {"sbatch_options": {"time": str(minutes)}}}
    else:
        # By the machine's own clock, whenever it comes up. Our own setup looks whether it is set.
        task["setup"] = f'sudo -n shutdown -P "+$(( ({int(wanted.ends)} - $(date +%s) + 59) / 60 ))"'
    return task


def _known(usd: float | None) -> float | None:
    """Places without a price list say 0, or no number at all."""
    return float(usd) if usd and math.isfinite(usd) else None


def _check(place: str) -> None:
    if not server_common.is_api_server_local():
        raise Refused(
            "SkyPilot's API server is on another machine, but files go to rented machines from here; "
            "use a local one (sky api start, without api_server in ~/.sky/config.yaml)"
        )
    refuse_forwarded_agent()
    cloud = cloud_of(place)
    if cloud not in _enabled():
        sdk.get(sdk.check((cloud,), verbose=False))  # nobody may have asked yet
    if cloud not in _enabled():
        raise Denied(f"SkyPilot has no access to {cloud}; set it up and run sky check {cloud}")
    switched = [registry.CLOUD_REGISTRY.from_str(name) for name in SWITCHABLE]
    if left := sky_check.get_cloud_credential_file_mounts(switched):
        path = sorted(left)[0]
        raise Refused(
            f"SkyPilot would copy {path} of this account to every rented machine, and has no switch against it; "
            "move it away, or use SkyPilot from an account without it"
        )


def _enabled() -> list[str]:
    return [str(name).lower() for name in sdk.get(sdk.enabled_clouds())]
